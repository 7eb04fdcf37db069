"""sqlstress, stopped as by Ctrl-C or Ctrl-Break when a phase begins. Run it with Windows' Python.

Usage: python tests/windows/strikes.py SIGINT|SIGBREAK PHASE ARGUMENTS OF SQLSTRESS

A console passes them to the C library in a separate thread, which calls the handler of `signal`:
this program does the same, because Wine has no console for input.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlstress.engine.study import Observer, Progress

LATER_S = 0.05


class Striker(Observer):
    """Raises the signal once, a moment after the phase has begun, so that the main thread is waiting."""

    def __init__(self, name: str, phase: str) -> None:
        self._number, self._phase = signal.Signals[name], phase

    def progress(self, progress: Progress) -> None:
        self.phase(progress.label.split()[0])

    def phase(self, name: str) -> None:
        if name == self._phase:
            self._phase = ""
            threading.Thread(target=strike, args=(self._number,), daemon=True).start()


def strike(number: int) -> None:
    time.sleep(LATER_S)
    signal.raise_signal(number)


if __name__ == "__main__":
    import sqlstress.cli.measure
    from sqlstress.cli.commands import run

    @contextmanager
    def striking(*_: object) -> Iterator[Striker]:
        yield Striker(*sys.argv[1:3])

    vars(sqlstress.cli.measure)["watcher"] = striking
    sys.exit(run(sys.argv[3:]))
