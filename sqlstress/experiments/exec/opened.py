"""How much of its time a command has the database open: the rest is starting and ending.

Looked at from outside, now and then, where Linux lists the files of a process: nothing is asked of the
command, and the database is not opened. Other systems do not tell.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlstress.experiments.exec import CLOSED, MOMENTS, OPEN
from sqlstress.user_work.source import Plain

EVERY_S = 0.02
"""A look takes about 0.1 ms: half a percent of a processor."""


class Opened:
    """Looks at the commands of one worker while they run."""

    def __init__(self, database: str, pid: Callable[[], int | None]) -> None:
        """`pid` returns the command that runs now."""
        self._database, self._pid = os.path.realpath(database), pid
        self._open = self._closed = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        if sys.platform == "linux" and Path(database).is_file():  # no server's address
            self._thread.start()

    def sightings(self) -> list[Plain]:
        """End; return at how many moments a command had the database open, and at how many it had not."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()
        found = ((OPEN, self._open), (CLOSED, self._closed))
        return [(MOMENTS, what, count, "", {}) for what, count in found if count]

    def _look_on(self) -> None:
        while not self._ends.wait(EVERY_S):
            pid = self._pid()
            if pid is None:
                continue
            has_it = any(has_open(one, self._database) for one in family(pid))
            if pid == self._pid():  # else the command has ended meanwhile
                self._open += has_it
                self._closed += not has_it


def family(pid: int) -> list[int]:
    """Return a process and those that it has started, and they."""
    found = [pid]
    for one in found:  # which grows
        with suppress(OSError):
            children = Path(f"/proc/{one}/task/{one}/children").read_text(encoding="ascii")
            found += map(int, children.split())
    return found


def has_open(pid: int, database: str) -> bool:
    """Return whether a process has a database open."""
    with suppress(OSError):  # it has ended
        return any(str(one.readlink()) == database for one in Path(f"/proc/{pid}/fd").iterdir())
    return False
