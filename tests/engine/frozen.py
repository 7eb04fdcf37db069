"""The command line, which stops itself and its processes during the first loads, like a frozen machine.

Usage: python tests/engine/frozen.py LOADS ARGUMENTS OF SQLSTRESS

Another process has to continue it.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sqlstress.engine.study import Observer


class Freezer(Observer):
    """Stops all processes at the first progress report of a load: from then on stalls are detected."""

    def __init__(self, loads: int) -> None:
        self._left, self._due = loads, False

    def phase(self, name: str) -> None:
        self._due = name == "measuring"

    def tick(self, operations: int) -> None:
        if self._due and self._left and sys.platform != "win32":
            self._due, self._left = False, self._left - 1
            os.killpg(os.getpgrp(), signal.SIGSTOP)


if __name__ == "__main__":
    import sqlstress.cli.measure
    from sqlstress.cli.commands import run
    from tests.brief import make_brief

    freezer = Freezer(int(sys.argv.pop(1)))

    @contextmanager
    def freezing(*_: object) -> Iterator[Freezer]:
        """Replace the progress bar."""
        yield freezer

    make_brief()
    vars(sqlstress.cli.measure)["watcher"] = freezing
    sys.exit(run(sys.argv[1:]))
