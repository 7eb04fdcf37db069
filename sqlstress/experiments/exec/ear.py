"""Hears what commands write on standard error: one pipe for all commands of a worker, read by a thread.

Behind each command a mark is written into the pipe, with its number: what stands before it the command wrote.
So nobody waits for what is read, and a command that writes without end fills neither a disk nor the memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

_CODE = 8
_OVER = 1
_PIECE = 1 << 16
KEPT = 2048
"""Bytes of the beginning, and of the end, of what a command writes."""
_PATIENCE_S = 5.0


class Ear:
    """Hears the commands of one worker."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        """`heard` is called on another thread with what each command wrote, "" where it is nothing."""
        self._heard = heard
        self._mark = os.urandom(16)
        self._ours, self.theirs = os.pipe()
        self._before, self._begin, self._end = b"", b"", b""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def ended(self) -> None:
        """Say that a command has ended."""
        os.write(self.theirs, self._mark + bytes(_CODE))

    def close(self) -> None:
        """Wait until all of it is heard."""
        os.write(self.theirs, self._mark + _OVER.to_bytes(_CODE, "little"))
        self._thread.join(_PATIENCE_S)
        os.close(self.theirs)
        if not self._thread.is_alive():
            os.close(self._ours)

    def _listen(self) -> None:
        with suppress(OSError):  # the worker has ended
            while piece := os.read(self._ours, _PIECE):
                self._before += piece
                if self._is_over():
                    return

    def _is_over(self) -> bool:
        """Take in what has come, mark by mark; return whether the last mark was there."""
        length = len(self._mark) + _CODE
        while (place := self._before.find(self._mark)) >= 0:
            if len(self._before) < place + length:
                break
            self._keep(self._before[:place])
            code = int.from_bytes(self._before[place + len(self._mark) : place + length], "little")
            self._before = self._before[place + length :]
            if code == _OVER:
                return True
            self._heard((self._begin + self._end).decode(errors="replace"))
            self._begin = self._end = b""
        if place < 0:
            # A mark may have come in part.
            sure = max(0, len(self._before) - len(self._mark) + 1)
            self._keep(self._before[:sure])
            self._before = self._before[sure:]
        return False

    def _keep(self, text: bytes) -> None:
        room = KEPT - len(self._begin)
        self._begin += text[:room]
        self._end = (self._end + text[room:])[-KEPT:]
