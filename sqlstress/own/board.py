"""A board in shared memory, on which one process writes what another reads when it has ended."""

from __future__ import annotations

import pickle
from typing import Any

from sqlstress.system.sharing import shared_array

_WORDS = 8192
_ROOM = 8 * (_WORDS - 1)


def shared_words() -> Any:
    """Return the shared memory of a board, with nothing on it."""
    return shared_array("q", _WORDS)


class Board:
    """What stands there, pickled; one process writes."""

    def __init__(self, words: Any) -> None:
        self._length = memoryview(words).cast("B").cast("q")[:1]
        self._room = memoryview(words).cast("B")[8:]

    def write(self, told: Any) -> bool:
        """Write something in the place of what stands there; return whether there is room for it."""
        data = pickle.dumps(told)
        if len(data) > _ROOM:
            return False
        # Whoever dies in between leaves nothing that could be taken for the whole.
        self._length[0] = 0
        self._room[: len(data)] = data
        self._length[0] = len(data)
        return True

    def read(self) -> Any:
        """Return what stands there; None where nothing does."""
        length = self._length[0]
        return pickle.loads(bytes(self._room[:length])) if length else None
