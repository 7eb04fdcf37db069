"""Any exception, as one of ours that says what happened."""

from __future__ import annotations

import sys

from sqlstress.errors import EnvironmentFailure, Interrupted, SqlstressError
from sqlstress.targets import target_of

HUNG = "hung"
"""How the reason of a worker begins that got nothing done for too long."""


def as_failure(problem: Exception, driver: str) -> SqlstressError:
    """Return an exception that came while a driver of that name was in use."""
    if isinstance(problem, SqlstressError):
        return problem
    target = target_of(driver)
    known = isinstance(problem, OSError | MemoryError) or target.foresees(problem)
    hint = "" if known else f" (unexpected: please report it, with Python {sys.version.split()[0]})"
    return EnvironmentFailure(f"{target.explain(driver, problem)}{hint}")


def kept_reason(problem: Exception, driver: str, *, nothing_yet: bool) -> str:
    """Return what a study keeps in its report of a problem that ends a measurement.

    Raises it where nothing has been measured yet that it could be kept with, and Interrupted always.
    """
    if isinstance(problem, Interrupted):
        raise problem
    failure = as_failure(problem, driver)
    if nothing_yet:
        raise failure from problem
    return str(failure)


def clause(reason: str | None) -> str:
    """Return why a process failed, to stand behind its name."""
    known = ("was ", "did ", HUNG, "ended", "closed", "its ")
    return reason if reason and reason.startswith(known) else f"failed: {reason}"
