"""The count of processes in which connect failed, shared by the processes of a trial."""

from __future__ import annotations

import time
from typing import Any

from sqlstress.system.sharing import shared_array

CONNECTED, NOT_CONNECTED = 1, -1
PATIENCE_S = 10.0
"""The time that a process waits for the others after a failure, to count them."""
_LOOK_S = 0.01


class Openings:
    """A number for each process: 0 until connect has ended there."""

    def __init__(self, shared: Any) -> None:
        self._words = memoryview(shared).cast("B").cast("q")

    def tell(self, worker: int, result: int) -> None:
        """Note how connect ended in a worker; they count from 1."""
        self._words[worker - 1] = result

    def failed(self) -> int:
        """Return in how many processes connect failed, as soon as it has ended in all of them."""
        until = time.monotonic() + PATIENCE_S
        while 0 in self._words.tolist() and time.monotonic() < until:
            time.sleep(_LOOK_S)
        return self._words.tolist().count(NOT_CONNECTED)


def openings_words(processes: int) -> Any:
    """Return the shared array of these numbers."""
    return shared_array("q", processes)
