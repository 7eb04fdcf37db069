"""Writer process of a crash test, which runs until it is killed.

A record is a group of rows that lie far apart in the table record. A transaction writes all rows of a record,
and adds an entry (a row) to the table log, which is in the order of commits.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, OrderedStep
from sqlstress.engine.values import SEQUENCE_BITS, WORKER_BITS, Value, Values

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.drivers import Connection
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.views import Operation

RECORDS = 64
"""Number of records per file."""
MOST_WRITERS = (1 << WORKER_BITS) - 1
"""Largest number of a writer. Each value begins with the numbers of its writer and transaction."""

TABLES = (
    "CREATE TABLE record (key INTEGER PRIMARY KEY, value)",
    "CREATE TABLE log (id INTEGER PRIMARY KEY, writer INTEGER, number INTEGER, record INTEGER)",
    "CREATE INDEX log_by_record ON log (record)",
)
PUT = "REPLACE INTO record (key, value) VALUES (?, ?)"
LOG = "INSERT INTO log (writer, number, record) VALUES (?, ?, ?)"


class Entry(NamedTuple):
    """Row of the log table: one transaction."""

    writer: int
    """Number of the writer, from 1; 0 for the process that created the file."""
    number: int
    """Number of the transaction, from 1 for each writer."""
    record: int
    """Number of the written record (group of rows), counted over all files."""


class Records:
    """Records (groups of rows) of all files: keys, and the values that each transaction writes."""

    def __init__(self, case: Case) -> None:
        self.width = case.spec.batch
        """Number of rows per record."""
        self.count = RECORDS * case.buckets
        self._values = Values(case.seed, case.spec.value_size)

    def records_in(self, file: int) -> range:
        """Return the numbers of a file's records."""
        return range(file * RECORDS, (file + 1) * RECORDS)

    def rows(self, entry: Entry) -> list[tuple[int, Value]]:
        """Return the rows (key, value) that the transaction `entry` writes."""
        keys = range(entry.record % RECORDS, RECORDS * self.width, RECORDS)
        make, first = self._values.maker(entry.writer), entry.number * self.width
        return [(key, make(first + index)) for index, key in enumerate(keys)]

    def is_possible(self, entry: Entry) -> bool:
        """Return whether a writer can have made an entry. A damaged log may contain any values."""
        bounds = (MOST_WRITERS, (1 << SEQUENCE_BITS) // self.width - 1, self.count - 1)
        fields: tuple[object, ...] = entry
        return all(
            isinstance(value, int) and 0 <= value <= most for value, most in zip(fields, bounds, strict=True)
        )

    def created(self, record: int) -> Entry:
        """Return an entry for the creation of a record. The table log has no such entries."""
        return Entry(0, record, record)

    def writer_of(self, value: object) -> tuple[int, int] | None:
        """Return (writer, number) of the transaction that wrote a value; None if no writer wrote it."""
        stamp = self._values.read(value)
        return None if stamp is None else (stamp.worker, stamp.sequence // self.width)


def transactions(case: Case, records: Records, writer: int) -> Iterator[Entry]:
    """Yield a writer's transactions, without end."""
    random = Random(f"{case.seed}:{writer}")
    return (Entry(writer, number, random.randrange(records.count)) for number in count(1))


def writing(connection: Connection, begin: str) -> Operation:
    """Return a function that takes (rows, entry), and writes both in one transaction.

    `rows` are the keys and values of a record; `entry` is the row for the table log. `begin` is the kind of
    BEGIN, such as "IMMEDIATE".
    """
    start, end, log = (connection.writer(sql) for sql in (f"BEGIN {begin}", "COMMIT", LOG))

    def write(params: tuple[list[Any], Entry]) -> None:
        rows, entry = params
        start(())
        connection.run_many(PUT, rows)
        log(entry)
        end(())

    return write


class CrashSource(OrderedSource):
    """Source of the transactions that a writer process runs. Each step is a transaction.

    All writers open the files at the same time. The writer that is the first to open a file recovers it.
    """

    kinds = ("transaction",)

    def __init__(
        self, case: Case, place: SqlitePlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        """Set the number of the writer to `worker` + `salt`.

        `salt` is the number of writers in earlier rounds of this database, so no two writers have one number.
        """
        (words,) = shared
        self._client = place.client(worker)
        super().__init__(words, worker, self._client, self._open_and_write(case, worker + salt))

    def _open_and_write(self, case: Case, writer: int) -> Iterator[OrderedStep]:
        writes = [
            self._client.retried(writing(connection, case.spec.begin), connection.rollback)
            for connection in self._client.connect_all()
        ]
        records = Records(case)
        for entry in transactions(case, records, writer):
            write = writes[entry.record // RECORDS]
            yield OrderedStep(0, write, (records.rows(entry), entry), records.width)
