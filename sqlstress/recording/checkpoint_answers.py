"""Result row of PRAGMA wal_checkpoint. The first number is 1 if a lock prevented the checkpoint.

SQLite raises no error for such a checkpoint, and the user's code may never fetch the row. So sqlstress
fetches the row, and changes the cursor so that the user's code can still fetch the row.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import Any

from sqlstress.recording.subclasses import STATEMENTS, named_like

_FETCHES = ("fetchone", "fetchmany", "fetchall", "__next__", "__iter__")


def rows_ahead(cursor: Any) -> list[tuple[Any, ...]]:
    """Fetch and return the rows of a cursor's statement, and make the cursor return them again.

    Fetch nothing if the cursor is not sqlite3's, or its class overrides the fetch methods.
    """
    kind: Any = type(cursor)
    if not issubclass(kind, sqlite3.Cursor) or any(
        getattr(kind, name) is not getattr(sqlite3.Cursor, name) for name in _FETCHES
    ):
        return []
    factory, cursor.row_factory = cursor.row_factory, None
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    cursor.row_factory = factory
    cursor.__class__ = _with_rows(kind)
    cursor._sqlstress_rows = [factory(cursor, row) if factory else row for row in rows]
    return rows


@cache
def _with_rows(base: Any) -> Any:
    """Return a subclass of the cursor class `base` that returns prefetched rows, until the next statement."""

    class WithRows(base):  # type: ignore[misc]
        __slots__ = ()

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            if not self._sqlstress_rows:
                raise StopIteration
            return self._sqlstress_rows.pop(0)

        def fetchone(self) -> Any:
            return next(self, None)

        def fetchmany(self, size: int | None = None) -> list[Any]:
            count = self.arraysize if size is None else size
            return [row for row, _ in zip(self, range(count), strict=False)]

        def fetchall(self) -> list[Any]:
            return list(self)

    def with_plain_class(name: str) -> Any:
        def method(self: Any, *args: Any, **options: Any) -> Any:
            self.__class__ = base
            return getattr(self, name)(*args, **options)

        return method

    for name in STATEMENTS:
        setattr(WithRows, name, with_plain_class(name))
    return named_like(WithRows, base)
