"""A writer, which goes on until it is killed; what a database has that is to survive crashes.

A file holds records, and a log. A transaction writes all rows of one record, which lie far apart in their
table, and enters itself in the log. So the log says which transactions there are, and in which order they
were committed; and every record must be as the last one of them in the log has left it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, Step
from sqlstress.engine.values import SEQUENCE_BITS, WORKER_BITS, Value, Values

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.drivers import Connection
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.views import Operation

RECORDS = 64
"""Records of a file."""
MOST_WRITERS = (1 << WORKER_BITS) - 1
"""Numbers of writers that a value can name."""

TABLES = (
    "CREATE TABLE record (key INTEGER PRIMARY KEY, value)",
    "CREATE TABLE log (id INTEGER PRIMARY KEY, writer INTEGER, number INTEGER, record INTEGER)",
    "CREATE INDEX log_by_record ON log (record)",
)
PUT = "REPLACE INTO record (key, value) VALUES (?, ?)"
LOG = "INSERT INTO log (writer, number, record) VALUES (?, ?, ?)"


class Entry(NamedTuple):
    """A transaction, as the log names it."""

    writer: int
    """1 or more; 0 stands for whoever created the file."""
    number: int
    """1 for the first transaction of its writer."""
    record: int
    """The record that it wrote, numbered over all files."""


class Records:
    """The records of all files: where their rows lie, and what each transaction makes of them."""

    def __init__(self, case: Case) -> None:
        self.width = case.spec.batch
        """Rows of a record."""
        self.count = RECORDS * case.buckets
        self._values = Values(case.seed, case.spec.value_size)

    def of_file(self, file: int) -> range:
        """Return the records of a file."""
        return range(file * RECORDS, (file + 1) * RECORDS)

    def rows(self, entry: Entry) -> list[tuple[int, Value]]:
        """Return the (key, value) of every row of the record that a transaction writes."""
        keys = range(entry.record % RECORDS, RECORDS * self.width, RECORDS)
        make, first = self._values.maker(entry.writer), entry.number * self.width
        return [(key, make(first + place)) for place, key in enumerate(keys)]

    def is_possible(self, entry: Entry) -> bool:
        """Say whether a transaction can have been made at all: what a damaged log says may be anything."""
        bounds = (MOST_WRITERS, (1 << SEQUENCE_BITS) // self.width - 1, self.count - 1)
        fields: tuple[object, ...] = entry
        return all(
            isinstance(value, int) and 0 <= value <= most for value, most in zip(fields, bounds, strict=True)
        )

    def created(self, record: int) -> Entry:
        """Return what stands for the transaction that filled a record when its file was made."""
        return Entry(0, record, record)

    def writer_of(self, value: object) -> tuple[int, int] | None:
        """Return the writer and the number of the transaction that made a value; None when none did."""
        stamp = self._values.read(value)
        return None if stamp is None else (stamp.worker, stamp.sequence // self.width)


def transactions(case: Case, records: Records, writer: int) -> Iterator[Entry]:
    """Yield what a writer does, without an end."""
    random = Random(f"{case.seed}:{writer}")
    return (Entry(writer, number, random.randrange(records.count)) for number in count(1))


def writing(connection: Connection, begin: str) -> Operation:
    """Return the function of (rows, entry) that carries out one transaction; `begin` says how it begins."""
    start, end, log = (connection.writer(sql) for sql in (f"BEGIN {begin}", "COMMIT", LOG))

    def write(params: tuple[list[Any], Entry]) -> None:
        rows, entry = params
        start(())
        connection.run_many(PUT, rows)
        log(entry)
        end(())

    return write


class CrashSource(OrderedSource):
    """Opens the files when it is told to begin, not before: whoever comes first recovers them."""

    kinds = ("transaction",)

    def __init__(
        self, case: Case, place: SqlitePlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        """`salt` is the number of writers that the database has had before."""
        (words,) = shared
        self._client = place.client(worker)
        super().__init__(words, worker, self._client, self._open_and_write(case, worker + salt))

    def _open_and_write(self, case: Case, writer: int) -> Iterator[Step]:
        writes = [
            self._client.retried(writing(connection, case.spec.begin), connection.rollback)
            for connection in self._client.connect_all()
        ]
        records = Records(case)
        for entry in transactions(case, records, writer):
            write = writes[entry.record // RECORDS]
            yield Step(0, write, (records.rows(entry), entry), records.width)
