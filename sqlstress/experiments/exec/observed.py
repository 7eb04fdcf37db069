"""What is observed of commands from outside: what they write on standard error, when the database is open."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlstress.experiments.exec import CLOSED, MOMENTS, OPEN
from sqlstress.user_work.source import Plain

# What commands write on standard error goes into one pipe for all commands of a worker, read by a thread. So
# nobody waits for what is read, and a command that writes without end fills neither a disk nor the memory.

_PIECE = 1 << 16
KEPT = 2048
"""Bytes of the beginning, and of the end, of what a command writes."""
_PATIENCE_S = 5.0


class Ear:
    """Hears the commands of one worker: behind each, a mark is written into the pipe."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        """`heard` is called on another thread with what each command wrote, "" where it is nothing."""
        self._heard = heard
        self._mark = os.urandom(16)
        self._ended = self._heard_of = 0
        self._ours, self.theirs = os.pipe()
        self._unread, self._begin, self._end = b"", b"", b""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def ended(self) -> None:
        """Say that a command has ended."""
        self._ended += 1
        os.write(self.theirs, self._mark)

    def caught_up(self) -> None:
        """Wait until what has ended is heard, but not for ever: a process left behind may still write."""
        until = time.monotonic() + _PATIENCE_S
        while self._heard_of < self._ended and time.monotonic() < until:
            time.sleep(0.05)

    def close(self) -> None:
        """Wait until all of it is heard: a mark behind that of the last command says so."""
        os.write(self.theirs, self._mark)
        self._thread.join(_PATIENCE_S)
        os.close(self.theirs)
        if not self._thread.is_alive():
            os.close(self._ours)

    def _listen(self) -> None:
        with suppress(OSError):  # the worker has ended
            while piece := os.read(self._ours, _PIECE):
                *texts, self._unread = (self._unread + piece).split(self._mark)
                for text in texts:
                    if self._heard_of == self._ended:
                        return
                    self._keep(text)
                    self._heard((self._begin + self._end).decode(errors="replace"))
                    self._heard_of += 1
                    self._begin = self._end = b""
                # A mark may have come in part.
                sure = max(0, len(self._unread) - len(self._mark) + 1)
                self._keep(self._unread[:sure])
                self._unread = self._unread[sure:]

    def _keep(self, text: bytes) -> None:
        room = KEPT - len(self._begin)
        self._begin += text[:room]
        self._end = (self._end + text[room:])[-KEPT:]


# How much of its time a command has the database open: the rest is starting and ending.
#
# Looked at now and then, where Linux lists the files of a process: nothing is asked of the command, and the
# database is not opened. Other systems do not tell.


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
