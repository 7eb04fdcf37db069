"""Handling of stop signals, such as Ctrl-C.

During a measurement, a stop signal only sets a flag, which waiting code checks. An exception could interrupt
any code, even a clean-up. Before and after a measurement, the first stop signal raises
KeyboardInterrupt, and later signals have no effect.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import FrameType, TracebackType
from typing import TypeVar

from sqlstress.errors import Interrupted

_REPEAT_AFTER_S = 0.01
"""Delay before a KeyboardInterrupt in a finalizer is repeated, in seconds."""


def install_stop_handlers() -> None:
    """Let the first stop signal raise KeyboardInterrupt; ignore later stop signals."""
    for number in _stop_signals():
        signal.signal(number, _raise)
    sys.unraisablehook = _repeat_interrupt


def _repeat_interrupt(unraisable: sys.UnraisableHookArgs) -> None:
    """Repeat a KeyboardInterrupt that was raised in a finalizer. Python would only print the exception."""
    error = unraisable.exc_value
    if isinstance(error, KeyboardInterrupt) and error.args:
        signal.signal(error.args[0], _raise)
        timer = threading.Timer(_REPEAT_AFTER_S, _signal_main_thread, error.args)
        timer.daemon = True
        timer.start()
    else:
        sys.__unraisablehook__(unraisable)


def _signal_main_thread(number: int) -> None:
    """Send a signal to the main thread when it has left `_repeat_interrupt`, and so the finalizer."""
    while _is_repeating_interrupt():
        time.sleep(_REPEAT_AFTER_S)
    if sys.platform == "win32":
        signal.raise_signal(number)
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, number)


def _is_repeating_interrupt() -> bool:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code is _repeat_interrupt.__code__:
            return True
        frame = frame.f_back
    return False


def ignore_stop_signals() -> None:
    """Ignore the stop signals that we handle: during Python's own clean-up they would print a traceback."""
    for number in _stop_signals():
        if signal.getsignal(number) == _raise:
            signal.signal(number, signal.SIG_IGN)


def _raise(number: int, _frame: FrameType | None) -> None:
    ignore_stop_signals()
    raise KeyboardInterrupt(number)


def _stop_signals() -> list[signal.Signals]:
    """Return the stop signals that this thread can catch, without those that are ignored (as by nohup)."""
    if threading.current_thread() is not threading.main_thread():
        return []
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # SIGBREAK is Ctrl-Break on Windows.
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]


class StopSignals:
    """Context manager that catches stop signals (Ctrl-C, SIGTERM, a closed terminal). `check` reports them.

    If `check` has not reported a caught signal by the end of the block, the previous handler gets the signal.
    """

    def __init__(self) -> None:
        self.caught: int | None = None
        self._reported = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopSignals:
        for number in _stop_signals():
            self._before[number] = signal.signal(number, self._catch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            # After a reported signal the program is ending, and no further signal may disturb its end.
            is_ending = self._reported and handler == _raise
            signal.signal(number, signal.SIG_IGN if is_ending else handler)  # type: ignore[arg-type]
        if self.caught is not None and not self._reported and kind is None:
            signal.raise_signal(self.caught)

    def _catch(self, number: int, _frame: FrameType | None) -> None:
        self.caught = number

    def check(self) -> None:
        """Raise Interrupted if a stop signal has arrived."""
        if self.caught is not None:
            self._reported = True
            raise Interrupted(f"stopped by {signal.Signals(self.caught).name}")


T = TypeVar("T")

Pulse = Callable[[], None]
"""Function that long-running code calls often; it raises Interrupted if the work must stop."""

ITEMS_PER_PULSE = 256
"""Number of items between two calls of the pulse in `with_pulses`."""


def with_pulses(items: Iterable[T], pulse: Pulse) -> Iterator[T]:
    """Yield `items`; call `pulse` before every ITEMS_PER_PULSE items."""
    left = iter(items)
    for first in left:
        pulse()
        yield first
        yield from islice(left, ITEMS_PER_PULSE - 1)
