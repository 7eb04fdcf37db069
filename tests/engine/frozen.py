"""The command line, which stops itself with all its processes amid its first loads, as a frozen machine does.

Usage: python tests/engine/frozen.py LOADS ARGUMENTS OF SQLSTRESS

Somebody else has to let it go on.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sqlstress.engine.study import Observer


class Freezer(Observer):
    """Stops all when it is looked how far a load is: from then on the clock is watched."""

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
        """Stand in for the progress bar."""
        yield freezer

    make_brief()
    vars(sqlstress.cli.measure)["watcher"] = freezing
    sys.exit(run(sys.argv[1:]))
