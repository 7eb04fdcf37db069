"""The C extension, where it was built and can be trusted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType

from sqlstress.errors import EnvironmentFailure


class NotToBeHad(Exception):
    """Why there is no native loop here."""


@cache
def extension() -> ModuleType:
    """Import the C extension. Raises NotToBeHad."""
    try:
        native = import_module("sqlstress.targets.native._native")
    except ModuleNotFoundError as error:
        reason = "the C extension was not built (install sqlstress again where there is a C compiler)"
        raise NotToBeHad(reason) from error
    except ImportError as error:
        raise NotToBeHad(f"the C extension is not for this Python ({error})") from error
    before = time.perf_counter_ns()
    now = native.now_ns()
    if not before <= now <= time.perf_counter_ns():
        raise NotToBeHad("its clock is not Python's")
    return native


def lacking(reach: Callable[[], object]) -> str | None:
    """Say why what a native loop needs can't be reached; None where it can."""
    try:
        reach()
    except NotToBeHad as reason:
        return str(reason)
    return None


@contextmanager
def needed(driver: str) -> Iterator[None]:
    """Let what is not to be had be an EnvironmentFailure, for a worker that was promised it."""
    try:
        yield
    except NotToBeHad as reason:
        raise EnvironmentFailure(
            f"the native loop is not to be had with {driver}: {reason}. Use --loop python."
        ) from reason
