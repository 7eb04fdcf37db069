"""The native loop: a C extension that runs a timed window of kv inside a driver's own library.

Files in C, each of one subject; loop.h says what each is for. `extension` finds it, a `NativeStore` hands it
a plan. How a driver's library and its connections are reached is each target's own business.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sqlstress.errors import EnvironmentFailure

if TYPE_CHECKING:
    from sqlstress.targets.views import Connected

# The C extension, where it was built and can be trusted.


class NotToBeHad(Exception):
    """Why there is no native loop here."""


_FROM_SOURCE = (
    "this is the source folder of sqlstress: run it in another folder, or use python -m pip install -e . "
    "with a C compiler"
)
_WITH_COMPILER = (
    "install a C compiler, then reinstall sqlstress with pip install --force-reinstall --no-cache-dir"
)


def _is_source() -> bool:
    """Return whether this package lies where it is built, and not where it was installed."""
    return Path(__file__).with_name("loop.h").exists()


@cache
def extension() -> ModuleType:
    """Import the C extension. Raises NotToBeHad."""
    try:
        native = import_module("sqlstress.targets.native._native")
    except ModuleNotFoundError as error:
        remedy = _FROM_SOURCE if _is_source() else _WITH_COMPILER
        raise NotToBeHad(f"the C extension was not built ({remedy})") from error
    except ImportError as error:
        raise NotToBeHad(f"the C extension is not for this Python ({error})") from error
    before = time.perf_counter_ns()
    now = native.now_ns()
    if not before <= now <= time.perf_counter_ns():
        raise NotToBeHad("its clock differs from Python's")
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
            f"--loop native is not available with --driver {driver}: {reason}. Use --loop python."
        ) from reason


# Carry out a plan in C, and say what stopped it.


RAN, STOPPED, OUT_OF_PATIENCE = range(3)
"""How a loop ended, as loop.h has it."""
OF_NO_STORE: dict[str, Any] = {
    "connections": [],
    "statements": (),
    "mean_wait_ns": 0,
    "least_wait_ns": 0,
    "jitter": 1,
}
"""What a plan says of the stores that it is not for."""


class NativeStore:
    """A worker's half of keys and values in C, whose loop runs there as a whole."""

    def __init__(self, view: Connected, plan: dict[str, Any], explained: Callable[[int, str], str]) -> None:
        """`plan` says how C gets at what `view` has connected. Raises NotToBeHad.

        `explained` makes a sentence of a code, as SQLite has them, and of what the store said.
        """
        self.effective, self.close = view.effective, view.close
        self._native, self._explained = extension(), explained
        self.plan = {**OF_NO_STORE, **plan}

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Carry out a plan of `kv.native_loop`, and return what was done.

        Raises EnvironmentFailure where something stopped it.
        """
        done: dict[str, Any] = self._native.run({**plan, **self.plan})
        if done["ending"] == STOPPED:
            raise EnvironmentFailure(self._explained(done["code"], done["said"]))
        if done["ending"] == OUT_OF_PATIENCE:
            raise EnvironmentFailure(f"{done['given_up']} writes in a row failed, and none succeeded")
        return done
