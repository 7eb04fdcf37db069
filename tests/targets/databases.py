"""Database files of every shape, for tests of their space."""

import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlstress.experiments.classics.spec import Picks
from sqlstress.experiments.classics.work import definitions

ID_TYPES = ("int", "uuid4")
USERS, ITEMS, PICKS = 40, 400, 80

TABLES = {
    "with rowid": "CREATE TABLE t (a INTEGER PRIMARY KEY, b)",
    "without rowid": "CREATE TABLE t (a INTEGER, b, PRIMARY KEY (b, a)) WITHOUT ROWID",
    "with an index": "CREATE TABLE t (a INTEGER, b UNIQUE)",
}
FILL = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
    "INSERT INTO t SELECT i, zeroblob(i * {size}) FROM n"
)
"""A template: `rows` is the number of rows; each is `size` bytes longer than the previous row."""


def create(path: Path, *statements: str, pragmas: Iterable[str] = ()) -> None:
    """Create a database by statements, and check its integrity."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("synchronous=off", *pragmas):
            connection.execute(f"PRAGMA {pragma}")
        for statement in statements:
            connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        check(connection)


def check(connection: sqlite3.Connection) -> None:
    """Check that SQLite finds no fault in a database."""
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def create_picks(path: Path, schema: str, id_type: str, pragmas: Iterable[str] = ()) -> None:
    """Create users, items, and PICKS picks of each user, with a schema of the `keys` experiment."""
    draw = random.Random(f"{schema} {id_type}")

    def ids(count: int) -> list[object]:
        return [number if id_type == "int" else draw.randbytes(16) for number in range(count)]

    users, items, pick_ids = ids(USERS), ids(ITEMS), ids(USERS * PICKS)
    columns: list[Any] = [pick_ids] if schema.startswith("id-") else []
    columns += zip(*((user, item) for user in users for item in draw.sample(items, PICKS)), strict=True)
    names = ("id", "user", "item")[-len(columns) :]
    definitions_of = definitions(Picks(schema=schema, id_type=id_type))
    create(path, *definitions_of, pragmas=pragmas)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=off")
        connection.executemany("INSERT INTO users VALUES (?, 'somebody')", ((user,) for user in users))
        connection.executemany("INSERT INTO items VALUES (?, 'something', NULL)", ((item,) for item in items))
        connection.executemany(
            f"INSERT INTO picks ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
            zip(*columns, strict=True),
        )
        connection.commit()
        check(connection)
