"""What one database file goes through: its transactions, in their order, and what it holds after each.

Most transactions write several rows over, which lie on as many pages and keep their size: if only some of
these pages were there after a power cut, the file could still be a sound database. Some let rows grow and
shrink, insert and remove: then pages are linked anew, taken into use and freed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

from sqlstress.targets.sqlite.drivers import Connection

ROWS = 24
"""Rows of a full table."""
MOST_CHANGES = 6
RESHAPING = 0.3
"""Share of the transactions that insert, remove and change sizes."""

TABLES = (
    "CREATE TABLE record (id INTEGER PRIMARY KEY, class INTEGER, version INTEGER, filler BLOB)",
    "CREATE INDEX record_by_class ON record (class)",
)
PUT = (
    "INSERT INTO record (id, class, version, filler) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET version = excluded.version, filler = excluded.filler"
)
REMOVE = "DELETE FROM record WHERE id = ?"
READ = "SELECT id, class, version, filler FROM record ORDER BY id"


class Row(NamedTuple):
    """A row, as the table has it."""

    id: int
    kind: int
    version: Any
    """Number of the transaction that wrote it; in a damaged file it may be anything."""
    filler: bytes


class Transaction(NamedTuple):
    """What one transaction changes."""

    put: tuple[Row, ...]
    removed: tuple[int, ...] = ()


Contents = tuple[Row, ...]
"""All rows, by id."""


def transactions(random: Random, count: int, page_size: int) -> Iterator[Transaction]:
    """Yield transactions number 1 to `count`; the first one fills the table."""
    sizes: dict[int, int] = {}

    def row(number: int, key: int) -> Row:
        size = sizes.setdefault(key, _size(random, page_size))
        return Row(key, key % 5, number, f"{key}:{number};".encode().ljust(8, b".") * (size // 8))

    yield Transaction(tuple(row(1, key) for key in range(ROWS)))
    for number in range(2, count + 1):
        keys = sorted(random.sample(range(ROWS), random.randint(2, MOST_CHANGES)))
        removed: tuple[int, ...] = ()
        if random.random() < RESHAPING:
            removed = tuple(key for key in keys[1:] if random.random() < 0.4)
            for key in keys:
                sizes[key] = _size(random, page_size)
        yield Transaction(tuple(row(number, key) for key in keys if key not in removed), removed)


def _size(random: Random, page_size: int) -> int:
    """Return the bytes of a filler: mostly half a page or more, so that few rows share one."""
    return int(page_size * random.choice((0.3, 0.6, 0.7, 0.8, 0.9, 2.2)))


def contents_after(changes: Iterable[Transaction]) -> list[Contents]:
    """Return what the table holds after 0, 1, 2, ... transactions."""
    stages: Iterator[dict[int, Row]] = accumulate(changes, _changed, initial={})
    return [tuple(rows[key] for key in sorted(rows)) for rows in stages]


def _changed(rows: dict[int, Row], change: Transaction) -> dict[int, Row]:
    left = {key: row for key, row in rows.items() if key not in change.removed}
    return left | {row.id: row for row in change.put}


def carry_out(connection: Connection, change: Transaction, *, first: bool) -> None:
    """Carry out a transaction; the first one creates the tables, too."""
    connection.rows("BEGIN IMMEDIATE")
    for definition in TABLES if first else ():
        connection.rows(definition)
    connection.run_many(PUT, change.put)
    connection.run_many(REMOVE, ((key,) for key in change.removed))
    connection.rows("COMMIT")
