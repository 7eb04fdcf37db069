"""Shared results of connect: the processes of a trial connect at once, and count the failures."""

from __future__ import annotations

import time
from typing import Any

from sqlstress.system.sharing import shared_array

CONNECTED, NOT_CONNECTED, _READY = 1, -1, 2
PATIENCE_S = 10.0
"""Maximum time that a process waits for the others, before connect and after a failure, in seconds."""
_LOOK_S = 0.01
_START_LOOK_S = 0.0005
"""Seconds between two looks before the start. The processes connect within this time of each other."""


class Openings:
    """States of the processes in shared memory: _READY (about to connect), CONNECTED or NOT_CONNECTED.

    0 means that the process is not yet about to connect.
    """

    def __init__(self, shared: Any) -> None:
        self._words = memoryview(shared).cast("B").cast("q")

    def tell(self, worker: int, result: int) -> None:
        """Store the result of connect in a worker, counted from 1."""
        self._words[worker - 1] = result

    def meet(self, worker: int) -> None:
        """Wait until all processes are about to connect, or until PATIENCE_S have passed."""
        self.tell(worker, _READY)
        deadline = time.monotonic() + PATIENCE_S
        while 0 in self._words.tolist() and time.monotonic() < deadline:
            time.sleep(_START_LOOK_S)

    def failed(self) -> int:
        """Return the number of processes in which connect failed, after it has ended in all of them.

        Gives up after PATIENCE_S.
        """
        deadline = time.monotonic() + PATIENCE_S
        while {0, _READY} & {*self._words.tolist()} and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return self._words.tolist().count(NOT_CONNECTED)


def openings_memory(processes: int) -> Any:
    """Return the shared array of the states, one for each process."""
    return shared_array("q", processes)
