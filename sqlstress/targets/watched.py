"""What may take long in a database, and can be ended all the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Protocol, TypeVar

from sqlstress.errors import EnvironmentFailure

if TYPE_CHECKING:
    from sqlstress.system.interrupt import Pulse

T = TypeVar("T")
_TICK_S = 0.05


class Interruptible(Protocol):
    """A connection."""

    def interrupt(self) -> None:
        """Let a statement that runs in another thread fail soon."""


def run_watched(connection: Interruptible, task: Callable[[], T], pulse: Pulse) -> T:
    """Return what a task returns that may take long in a database; it is interrupted when `pulse` raises.

    It runs in a thread of its own: a signal is heard by the main thread only, and not inside a library.
    """
    with ThreadPoolExecutor(1) as executor:
        try:
            answer = executor.submit(task)
        except RuntimeError as error:
            raise EnvironmentFailure(f"{error}: close other programs.") from error
        try:
            while wait([answer], _TICK_S).not_done:
                pulse()
        except BaseException:
            while wait([answer], _TICK_S).not_done:
                connection.interrupt()
            raise
        return answer.result()
