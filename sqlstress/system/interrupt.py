"""Stopping at the user's word.

While something is measured a signal sets a flag, and whoever waits asks for it: raising from a signal
handler could strike anywhere, also inside a clean-up. Before and after, the first signal raises
KeyboardInterrupt, whichever it is, and those that follow it do nothing.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import FrameType, TracebackType
from typing import TypeVar

from sqlstress.errors import Interrupted

_AGAIN_S = 0.01
"""Until then a finalizer has ended, and nobody has noticed the wait."""


def stop_once() -> None:
    """Let the first of the signals to stop raise KeyboardInterrupt, and nobody disturb the way out."""
    for number in _heard():
        signal.signal(number, _raise)
    sys.unraisablehook = _ignored


def _ignored(unraisable: sys.UnraisableHookArgs) -> None:
    """Let a KeyboardInterrupt come again that struck in a finalizer, which Python would only show."""
    error = unraisable.exc_value
    if isinstance(error, KeyboardInterrupt) and error.args:
        signal.signal(error.args[0], _raise)
        again = threading.Timer(_AGAIN_S, _strike_main, error.args)
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(unraisable)


def _strike_main(number: int) -> None:
    if sys.platform == "win32":
        signal.raise_signal(number)
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, number)


def stop_no_more() -> None:
    """Ignore from now on the signals that `stop_once` has made us hear: all is done, or we are told already.

    Python's own end would show a traceback.
    """
    for number in _heard():
        if signal.getsignal(number) == _raise:
            signal.signal(number, signal.SIG_IGN)


def _raise(number: int, _frame: FrameType | None) -> None:
    stop_no_more()
    raise KeyboardInterrupt(number)


def _heard() -> list[signal.Signals]:
    """Return the signals to stop that can be caught here.

    One that was ignored from outside (nohup) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return []
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # the last one is Ctrl-Break, on Windows
    known = [getattr(signal, name) for name in names if hasattr(signal, name)]
    return [number for number in known if signal.getsignal(number) != signal.SIG_IGN]


class StopSignals:
    """Catches what asks us to stop (Ctrl-C, SIGTERM, a closed terminal) while it is entered.

    One that nobody has asked for by the end is handed on then, to whoever would have heard it.
    """

    def __init__(self) -> None:
        self.caught: int | None = None
        self._heeded = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopSignals:
        for number in _heard():
            self._before[number] = signal.signal(number, self._catch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            # Where it has been heeded we are on the way out, on which nobody disturbs us.
            on_the_way = self._heeded and handler == _raise
            signal.signal(number, signal.SIG_IGN if on_the_way else handler)  # type: ignore[arg-type]
        if self.caught is not None and not self._heeded and kind is None:
            signal.raise_signal(self.caught)

    def _catch(self, number: int, _frame: FrameType | None) -> None:
        self.caught = number

    def check(self) -> None:
        """Raise Interrupted once a signal has come."""
        if self.caught is not None:
            self._heeded = True
            raise Interrupted(f"stopped by {signal.Signals(self.caught).name}")


# Pulses: whoever works long calls one often, so that the user's word to stop is soon heard.


T = TypeVar("T")

Pulse = Callable[[], None]
"""Says that the work goes on; raises Interrupted when it must not."""

PACE = 256
"""Items that are worked through between two pulses."""


def paced(items: Iterable[T], pulse: Pulse) -> Iterator[T]:
    """Yield items, with a pulse before the first one and then every so often."""
    left = iter(items)
    for first in left:
        pulse()
        yield first
        yield from islice(left, PACE - 1)
