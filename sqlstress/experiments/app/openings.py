"""Shared memory by which the workers call the user's `connect` at once, and count the failed calls."""

from __future__ import annotations

import time
from typing import Any

from sqlstress.system.sharing import shared_array

CONNECTED, NOT_CONNECTED, _READY = 1, -1, 2
PATIENCE_S = 10.0
"""Maximum time that a worker waits for the other workers, before connect and after a failure, in seconds."""
_LOOK_S = 0.01
"""Time between two looks at the states of other workers after a failure, in seconds."""
_START_LOOK_S = 0.0005
"""Time between two looks before connect, in seconds. The workers' calls of connect start within this time."""


class Openings:
    """States of the workers in shared memory: 0 (preparing), _READY, CONNECTED or NOT_CONNECTED."""

    def __init__(self, shared: Any) -> None:
        self._words = memoryview(shared).cast("B").cast("q")

    def tell(self, worker: int, result: int) -> None:
        """Store the state of a worker: CONNECTED or NOT_CONNECTED. Workers are counted from 1."""
        self._words[worker - 1] = result

    def meet(self, worker: int) -> None:
        """Wait until all workers are about to connect, at most for PATIENCE_S."""
        self.tell(worker, _READY)
        deadline = time.monotonic() + PATIENCE_S
        while 0 in self._words.tolist() and time.monotonic() < deadline:
            time.sleep(_START_LOOK_S)

    def failed(self) -> int:
        """Wait for all workers, at most PATIENCE_S. Return the number of workers in which connect failed."""
        deadline = time.monotonic() + PATIENCE_S
        while {0, _READY} & {*self._words.tolist()} and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return self._words.tolist().count(NOT_CONNECTED)


def openings_memory(processes: int) -> Any:
    """Return shared memory for the states of this number of processes."""
    return shared_array("q", processes)
