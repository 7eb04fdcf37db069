"""What programs say on standard error, heard command by command."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

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
