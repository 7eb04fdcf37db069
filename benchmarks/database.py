"""The database of the C loop and of the bare loops: the same state as sqlstress measures in."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlstress.engine.values import Values

SALT = 0
"""Number of the trial that sqlstress's own loops take what is preloaded for."""
WAL_FRAMES = 1_000
_FRAME_HEADER, _WAL_HEADER = 24, 32
_FIRST_VALUE = Values(SALT, 8).base(0)


@contextmanager
def preloaded(path: Path, key_space: int) -> Iterator[Path]:
    """Create the database with the keys 0 to key_space - 1, its WAL at its working size.

    A connection is kept open meanwhile: the last one to close would delete the WAL, whose first fill
    costs more than every later one.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=wal")
        connection.execute("PRAGMA synchronous=off")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("CREATE TABLE kv (key INTEGER PRIMARY KEY, value INTEGER) WITHOUT ROWID")
        connection.execute("BEGIN")
        rows = ((key, _FIRST_VALUE + key) for key in range(key_space))
        connection.executemany("INSERT INTO kv VALUES (?, ?)", rows)
        connection.execute("COMMIT")
        _fill_wal(connection, path, key_space)
        # Syncs what was written, so that the first checkpoint inside the window does not have to.
        connection.execute("PRAGMA synchronous=full")
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        yield path
    finally:
        connection.close()


def _fill_wal(connection: sqlite3.Connection, path: Path, key_space: int) -> None:
    page_size = connection.execute("PRAGMA page_size").fetchone()[0]
    wanted = _WAL_HEADER + WAL_FRAMES * (page_size + _FRAME_HEADER)
    wal = path.with_name(path.name + "-wal")
    draw = random.Random(0).randrange
    value = _FIRST_VALUE + key_space
    while wal.stat().st_size < wanted:
        value += 1
        connection.execute("REPLACE INTO kv VALUES (?, ?)", (draw(key_space), value))
