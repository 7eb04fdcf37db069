"""Stopping at the user's word: a signal sets a flag, and whoever waits asks for it.

Raising from a signal handler could strike anywhere, also inside a clean-up. A flag can't.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

from sqlstress.errors import Interrupted


class StopSignals:
    """Catches SIGINT, SIGTERM and (where there is one) SIGHUP while it is entered."""

    def __init__(self) -> None:
        self.caught: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                # A signal that was ignored from outside (nohup) stays ignored.
                if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._catch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _catch(self, number: int, _frame: FrameType | None) -> None:
        self.caught = number

    def check(self) -> None:
        """Raise Interrupted once a signal has come."""
        if self.caught is not None:
            raise Interrupted(f"stopped by {signal.Signals(self.caught).name}")
