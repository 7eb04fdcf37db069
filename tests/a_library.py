"""A library that programs in tests/races call: its code does not count as the user's code."""

import sqlite3
import time
from collections.abc import Callable
from typing import Any


class Dictionary:
    """The table `job` as a dictionary, which has a lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.taken = 0

    def _first(self) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._connection.execute("SELECT id FROM job LIMIT 1").fetchone()
        return found

    def _delete(self, key: tuple[Any, ...]) -> sqlite3.Cursor:
        return self._connection.execute("DELETE FROM job WHERE id = ?", key)

    def popitem(self) -> tuple[Any, ...]:
        """Return an item that no other caller has got, or raise KeyError."""
        key = self._first()
        deleted = self._delete(key)
        if not deleted.rowcount:
            raise KeyError(key)
        return key

    def work(self, on: Callable[[int], object]) -> None:
        """Work on an item. Afterwards raise KeyError if another caller has worked on it."""
        (job,) = key = self._first()
        on(job)
        if not self._delete(key).rowcount:
            raise KeyError(key)

    def popitem_and_count(self) -> tuple[Any, ...]:
        """Return an item that another caller may also have got."""
        key = self._first()
        if key is None:
            raise KeyError
        if self._delete(key).rowcount:
            self.taken += 1
        return key

    def lock(self) -> None:
        """Take the lock; wait while another caller has it."""
        take = "INSERT OR IGNORE INTO held VALUES ('hits', 'me')"
        while not self._connection.execute(take).rowcount:
            time.sleep(0.01)
