"""The native loop: a C extension that runs the timed loop of the experiment kv on a driver's SQLite library.
The experiment kv measures operations on keys and values. A plan is a dict with the parameters of the C code,
such as {"statements": ("SELECT …", …), "connections": [(address, address), …]}.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sqlstress.errors import EnvironmentFailure

if TYPE_CHECKING:
    from sqlstress.targets.views import Connections, Refusal


class NativeUnavailable(Exception):
    """The native loop is not available; the message is the reason."""


_FROM_SOURCE = (
    "this is the source folder of sqlstress: run it in another folder, or use python -m pip install -e . "
    "with a C compiler"
)
_WITH_COMPILER = (
    "install a C compiler, then reinstall sqlstress with pip install --force-reinstall --no-cache-dir"
)


def _is_source_folder() -> bool:
    return Path(__file__).with_name("loop.h").exists()


@cache
def extension() -> ModuleType:
    """Return the C extension. Raises NativeUnavailable if it is missing or its clock is not perf_counter."""
    try:
        native = import_module("sqlstress.targets.native._native")
    except ModuleNotFoundError as error:
        remedy = _FROM_SOURCE if _is_source_folder() else _WITH_COMPILER
        raise NativeUnavailable(f"the C extension was not built ({remedy})") from error
    except ImportError as error:
        raise NativeUnavailable(f"the C extension is not for this Python ({error})") from error
    python_ns = time.perf_counter_ns()
    native_ns = native.now_ns()
    if not python_ns <= native_ns <= time.perf_counter_ns():
        raise NativeUnavailable("its clock differs from Python's")
    return native


def unavailable_reason(use_native: Callable[[], object]) -> str | None:
    """Return the reason why the native loop is not available, or None.

    `use_native` is called, and raises NativeUnavailable with the reason if the loop is not available.
    """
    try:
        use_native()
    except NativeUnavailable as reason:
        return str(reason)
    return None


@contextmanager
def require_native(driver: str) -> Iterator[None]:
    """If the block raises NativeUnavailable, raise EnvironmentFailure instead, which names `driver`."""
    try:
        yield
    except NativeUnavailable as reason:
        raise EnvironmentFailure(
            f"--loop native is not available with --driver {driver}: {reason}. Use --loop python."
        ) from reason


RAN, STOPPED, OUT_OF_PATIENCE = range(3)
"""Values of "ending" in the results of the C loop (see loop.h).

RAN: all operations were run. STOPPED: an error ended the loop. OUT_OF_PATIENCE: too many
writes failed in a row.
"""
PLAN_WITHOUT_STORE: dict[str, Any] = {
    "connections": [],
    "statements": (),
    "mean_wait_ns": 0,
    "least_wait_ns": 0,
    "jitter": 1,
}
"""Parameters of the C loop for a store without connections, such as the store of the driver dry."""


class NativeStore:
    """A worker's access to the key-value data, with a loop in C that runs the worker's operations."""

    def __init__(
        self,
        view: Connections,
        plan: dict[str, Any],
        explained: Callable[[int, str], str],
        histories: Sequence[tuple[str, ...]] = (),
    ) -> None:
        """`plan` has the addresses of the connections that `view` opened. Raises NativeUnavailable.

        `explained` returns a text for the user from SQLite's result code and message. `histories` has an item
        for each statement of the plan: the earlier statements of its transaction, such as ("BEGIN",).
        """
        self.effective, self.close = view.effective, view.close
        self._native, self._explained, self._histories = extension(), explained, histories
        self._refused: list[tuple[int, bool, int, int, list[int], int]] = []
        self.plan = {**PLAN_WITHOUT_STORE, **plan}

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Run the loop with the parameters in `plan` and in the constructor's plan. Return its results.

        Raises EnvironmentFailure after an error, or too many failed writes in a row.
        """
        result: dict[str, Any] = self._native.run({**plan, **self.plan})
        if result["ending"] == STOPPED:
            raise EnvironmentFailure(self._explained(result["code"], result["said"]))
        if result["ending"] == OUT_OF_PATIENCE:
            raise EnvironmentFailure(f"{result['given_up']} writes in a row failed, and none succeeded")
        self._refused = result["refusals"]
        return result

    def refusals(self) -> list[Refusal]:
        """Return the last run's failures, counted by statement and result code; empty without a failure."""
        if not self._refused:
            return []
        from sqlstress.targets.views import Refusal

        return [
            Refusal(
                self.plan["statements"][which],
                self._histories[which] if in_transaction else (),
                code,
                count,
                [wait_ns / 1e9 for wait_ns in waits_ns],
                longest_ns / 1e9,
            )
            for which, in_transaction, code, count, waits_ns, longest_ns in self._refused
        ]
