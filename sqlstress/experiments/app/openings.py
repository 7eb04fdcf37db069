"""Shared memory with each worker's state: all workers call @connect at the same time and count failures."""

from __future__ import annotations

import time
from typing import Any

from sqlstress.system.sharing import shared_array

CONNECTED, NOT_CONNECTED, _READY = 1, -1, 2
PATIENCE_S = 10.0
"""Maximum wait for the other workers, in seconds: before @connect, and again after a failed @connect."""
_LOOK_S = 0.01
"""Interval between two reads of the workers' states after a failed @connect, in seconds."""
_START_LOOK_S = 0.0005
"""Interval between two reads of the workers' states before @connect, in seconds.

The workers' calls of @connect start within this time of each other.
"""


class Openings:
    """States of the workers in shared memory: 0 (preparing), _READY, CONNECTED or NOT_CONNECTED."""

    def __init__(self, shared: Any) -> None:
        self._words = memoryview(shared).cast("B").cast("q")

    def set_state(self, worker: int, state: int) -> None:
        """Store the state of a worker. `worker` is its number, from 1."""
        self._words[worker - 1] = state

    def meet(self, worker: int) -> None:
        """Mark a worker as ready for @connect. Wait until all workers are ready, at most PATIENCE_S."""
        self.set_state(worker, _READY)
        deadline = time.monotonic() + PATIENCE_S
        while 0 in self._words.tolist() and time.monotonic() < deadline:
            time.sleep(_START_LOOK_S)

    def failed(self) -> int:
        """Wait for all calls of @connect to end, at most PATIENCE_S. Return the number of failed calls."""
        deadline = time.monotonic() + PATIENCE_S
        while {0, _READY} & {*self._words.tolist()} and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return self._words.tolist().count(NOT_CONNECTED)


def openings_memory(processes: int) -> Any:
    """Return shared memory for the states (`Openings`) of `processes` workers."""
    return shared_array("q", processes)
