"""The processes of a trial connect at the same moment, and count in how many of them connect failed."""

from __future__ import annotations

import time
from typing import Any

from sqlstress.system.sharing import shared_array

CONNECTED, NOT_CONNECTED, _READY = 1, -1, 2
PATIENCE_S = 10.0
"""Time that a process waits for the others, to begin with them and to count them after a failure."""
_LOOK_S = 0.01
_START_LOOK_S = 0.0005
"""Seconds between two looks before the start: so far apart may the processes connect."""


class Openings:
    """A number for each process: 0 until connect is about to be called there."""

    def __init__(self, shared: Any) -> None:
        self._words = memoryview(shared).cast("B").cast("q")

    def tell(self, worker: int, result: int) -> None:
        """Note how connect ended in a worker; they count from 1."""
        self._words[worker - 1] = result

    def meet(self, worker: int) -> None:
        """Wait until all processes are about to connect, or until PATIENCE_S have passed."""
        self.tell(worker, _READY)
        until = time.monotonic() + PATIENCE_S
        while 0 in self._words.tolist() and time.monotonic() < until:
            time.sleep(_START_LOOK_S)

    def failed(self) -> int:
        """Return in how many processes connect failed, as soon as it has ended in all of them."""
        until = time.monotonic() + PATIENCE_S
        while {0, _READY} & {*self._words.tolist()} and time.monotonic() < until:
            time.sleep(_LOOK_S)
        return self._words.tolist().count(NOT_CONNECTED)


def openings_words(processes: int) -> Any:
    """Return the shared array of these numbers."""
    return shared_array("q", processes)
