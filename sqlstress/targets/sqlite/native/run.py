"""Carry out a plan in C, and say what stopped it."""

from __future__ import annotations

from typing import Any

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.sqlite.native.reach import NotToBeHad, extension

RAN, STOPPED_BY_SQLITE, OUT_OF_PATIENCE = range(3)
"""How a loop ended, as loop.h has it."""


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """Run a plan, and return what was done. Raises EnvironmentFailure, with SQLite's code if it has one."""
    try:
        native = extension()
    except NotToBeHad as reason:
        raise EnvironmentFailure(
            f"the native loop is not to be had: {reason}. Use --loop python."
        ) from reason
    done: dict[str, Any] = native.run(plan)
    if done["ending"] == STOPPED_BY_SQLITE:
        from sqlstress.targets.sqlite.drivers.codes import explained

        raise EnvironmentFailure(explained(done["code"], done["said"]))
    if done["ending"] == OUT_OF_PATIENCE:
        raise EnvironmentFailure(f"{done['given_up']} writes in a row were given up, and none was done")
    return done
