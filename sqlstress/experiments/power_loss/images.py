"""Images: what a power cut could leave of a recorded run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.report.case import Case
from sqlstress.report.power_failure import CORRUPT, GOOD, KINDS, LOST, TORN
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.disk_model import (
    FATES,
    SECTORS,
    Device,
    Disk,
    Effect,
    Operation,
    Write,
    WriteBack,
)
from sqlstress.targets.sqlite.drivers import Connection
from sqlstress.targets.sqlite.drivers import settings as pragmas

if TYPE_CHECKING:
    from sqlstress.targets.sqlite.disk_vfs import Recorder


@dataclass(frozen=True, slots=True)
class Image:
    """The disk as it could be after a power cut."""

    files: dict[str, bytes]
    """What the files hold, by name."""
    cut: int
    """Operations that had been done."""
    sector: int
    """Bytes of a sector."""
    fate: str
    """What became of what was not durable, by its name in FATES."""
    kept: int
    """How many of the effects that were not durable became it."""
    unsynced: int
    """How many there were."""

    def __str__(self) -> str:
        what = f"{self.kept} of {self.unsynced} unsynced effects kept ({self.fate})"
        return f"cut after operation {self.cut}, sectors of {self.sector} bytes, {what}"


def images(log: Sequence[Operation], count: int, device: Device, seed: str) -> Iterator[Image]:
    """Yield so many images of a run, each cut anywhere in it; those of one cut differ from each other.

    The log is gone through once, or a few times where a cut leaves little to choose.
    """
    random = Random(seed)
    while count > 0:
        disk, done = Disk(), 0
        cuts = -(-count // len(FATES))
        for cut in sorted(random.randint(0, len(log)) for _ in range(cuts)):
            for operation in log[done:cut]:
                disk.apply(operation)
            done = cut
            for image in _of_one_cut(disk, cut, device, random):
                yield image
                count -= 1
                if not count:
                    return


def _of_one_cut(disk: Disk, cut: int, device: Device, random: Random) -> Iterator[Image]:
    sector = random.choice(SECTORS)
    effects = disk.unsynced(sector)
    seen = set()
    for name, fate in FATES.items():
        chosen = tuple(fate(len(effects), random))
        if chosen in seen:
            continue
        seen.add(chosen)
        kept = [effect for effect, is_kept in zip(effects, chosen, strict=True) if is_kept]
        filler = random.choice((bytes, random.randbytes))
        spoilt: list[Effect] = []
        if device.spoils and (writes := [effect for effect in effects if isinstance(effect, Write)]):
            # A sector that was just being written, with anything in it.
            (hit,) = random.sample(writes, 1)
            spoilt = [replace(hit, data=random.randbytes(len(hit.data)))]
        yield Image(disk.image([*kept, *spoilt], filler), cut, sector, name, len(kept), len(effects))


# What one database file goes through: its transactions, in their order, and what it holds after each.
#
# Most transactions write several rows over, which lie on as many pages and keep their size: if only some of
# these pages were there after a power cut, the file could still be a sound database. Some let rows grow and
# shrink, insert and remove: then pages are linked anew, taken into use and freed.


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
    rows: dict[int, Row] = {}
    stages: list[Contents] = [()]
    for change in changes:
        rows = {key: row for key, row in rows.items() if key not in change.removed}
        rows |= {row.id: row for row in change.put}
        stages.append(tuple(rows[key] for key in sorted(rows)))
    return stages


def carry_out(connection: Connection, change: Transaction, *, first: bool) -> None:
    """Carry out a transaction; the first one creates the tables, too."""
    connection.rows("BEGIN IMMEDIATE")
    for definition in TABLES if first else ():
        connection.rows(definition)
    connection.run_many(PUT, change.put)
    connection.run_many(REMOVE, ((key,) for key in change.removed))
    connection.rows("COMMIT")


# Is what a power cut left of a file what the file held after one of its transactions, and after which?


class Span(NamedTuple):
    """When a transaction was carried out, as numbers of operations of the disk that came before."""

    begun: int
    acknowledged: int


class Remains(NamedTuple):
    """What SQLite found in a file."""

    contents: Contents | None
    """Every row; none when the table isn't there; None when it can't be read."""
    complaints: tuple[str, ...] = ()
    """What SQLite complained of."""


class Finding(NamedTuple):
    """What is to be said of a file."""

    kind: str
    """One of KINDS."""
    lost: int = 0
    """Acknowledged transactions that are gone."""
    text: str = ""
    """What is wrong, in a sentence; empty when nothing is."""


class History:
    """A file's transactions, in their order, and when each was begun and acknowledged."""

    def __init__(self, name: str, transactions: Sequence[Transaction]) -> None:
        self.name, self.transactions = name, transactions
        self.spans: list[Span] = []
        """Of the transactions carried out by now."""
        self._stages = contents_after(transactions)
        self._numbers = {contents: number for number, contents in enumerate(self._stages)}

    def acknowledged(self, cut: int) -> int:
        """Return how many transactions were acknowledged when so many operations had been done."""
        return sum(span.acknowledged <= cut for span in self.spans)

    def begun(self, cut: int) -> int:
        """Return how many had begun by then."""
        return sum(span.begun < cut for span in self.spans)

    def judge(self, remains: Remains, cut: int) -> Finding:
        """Say what is to be said of the file, if power was cut after so many operations."""
        if remains.contents is None or remains.complaints:
            return Finding(CORRUPT, text=f"{self.name}: {'; '.join(remains.complaints)}")
        number = self._numbers.get(remains.contents)
        if number is None or number > self.begun(cut):
            return Finding(TORN, text=f"{self.name}: {self._describe(remains.contents)}")
        acknowledged = self.acknowledged(cut)
        if number < acknowledged:
            first = f"transaction {acknowledged} was"
            if number + 1 < acknowledged:
                first = f"each of the transactions {number + 1} to {acknowledged} was"
            return Finding(LOST, acknowledged - number, f"{self.name}: {first} acknowledged and is gone")
        return Finding(GOOD)

    def _describe(self, contents: Contents) -> str:
        """Return why a file never held this: a row that isn't as the newest transaction in it left it."""
        versions = [row.version for row in contents if isinstance(row.version, int)]
        newest = max(versions, default=0)
        if not 0 <= newest < len(self._stages):
            return f"there is a row of transaction {newest}, which nobody made"
        found, left = ({row.id: row for row in rows} for rows in (contents, self._stages[newest]))
        wrong = [key for key in sorted(found.keys() | left.keys()) if found.get(key) != left.get(key)]
        if not wrong:
            return f"transaction {newest} is there, which had not begun"
        there = f"transaction {newest} is there, but not all that it left: row {wrong[0]}"
        row = found.get(wrong[0])
        if row is None:
            return f"{there} is gone"
        return f"{there} is of transaction {row.version!r:.40}"


def worst(findings: Iterable[Finding]) -> Finding:
    """Return what is to be said of several files together: the worst of it, and all that was lost."""
    found = sorted(findings, key=lambda finding: KINDS.index(finding.kind))
    return found[-1]._replace(lost=sum(finding.lost for finding in found))


# Carries out the transactions of one or more files, by several connections of one thread.
#
# One thread makes a run reproducible, and loses little: only one connection of a file can write at a time
# anyway. What else happens to a file happens on the way: connections close and open again; in WAL mode a
# reader keeps its snapshot, so that checkpoints end halfway, and checkpoints of every kind are asked for.


TRANSACTIONS = 100
"""Transactions of a run, over all files."""
FEWEST = 12
"""Transactions of each file, if there are many files."""
DEFAULT_PAGE = 4096

_REOPENED_EVERY = 11
_PAUSED_EVERY = 2 * _REOPENED_EVERY
_PINNED_EVERY, _PINNED_FOR = 9, 4
_CHECKPOINTED = 0.1
"""Share of the transactions after which a checkpoint is asked for."""


def run_load(case: Case, folder: Path, disk: Recorder) -> tuple[list[History], dict[str, str]]:
    """Carry out the transactions of all files of a case, each file's in their order, and close the files.

    Returns what was done to each, and the settings as SQLite answered them after the first write.
    """
    random, effective = Random(f"{case.seed}:load"), dict[str, str]()
    each = max(FEWEST, TRANSACTIONS // case.buckets)
    loaded = [_File(case, path, each, disk) for path in files.paths(case, folder)]
    turns = [file for file in loaded for _ in file.history.transactions]
    random.shuffle(turns)
    try:
        for file in turns:
            file.step(random)
            effective = effective or file.read_back()
    finally:
        for file in loaded:
            file.close()
    return [file.history for file in loaded], effective


class _File:
    """One file, its connections, and how far it has come."""

    def __init__(self, case: Case, path: Path, count: int, disk: Recorder) -> None:
        self._case, self._path, self._disk = case, path, disk
        random, page_size = Random(f"{case.seed}:{path.name}"), case.settings.page_size or DEFAULT_PAGE
        self.history = History(path.name, list(transactions(random, count, page_size)))
        self._connections: list[Connection] = []
        self._pinned: Connection | None = None

    def step(self, random: Random) -> None:
        """Carry out the next transaction, by one connection or the other, and what else is due."""
        number = len(self.history.spans)
        if number % _REOPENED_EVERY == 0:
            self.close()
            if number and number % _PAUSED_EVERY == 0:
                self._disk.log.append(WriteBack())
            for _ in range(self._case.concurrency):
                self._connections.append(self._disk.connect(self._path))
                pragmas.apply(self._connections[-1], self._case.settings)
        # The first connection keeps a snapshot now and then: in WAL mode the others can write.
        phase, is_wal = number % _PINNED_EVERY, self._case.settings.journal_mode == "wal"
        if phase == 0 and number and is_wal and len(self._connections) > 1:
            self._pinned = self._connections[0]
            self._pinned.rows("BEGIN")
            self._pinned.rows(READ)
        elif phase == _PINNED_FOR and self._pinned:
            self._pinned.rollback()
            self._pinned = None
        free = [connection for connection in self._connections if connection is not self._pinned]
        writer = free[number % len(free)]
        begun = len(self._disk.log)
        carry_out(writer, self.history.transactions[number], first=number == 0)
        self.history.spans.append(Span(begun, len(self._disk.log)))
        if is_wal and random.random() < _CHECKPOINTED:
            writer.rows(f"PRAGMA wal_checkpoint({random.choice(('PASSIVE', 'RESTART', 'TRUNCATE'))})")

    def read_back(self) -> dict[str, str]:
        """Return the settings, read back. Raises UsageError or EnvironmentFailure if one was not taken."""
        answers = pragmas.read_back(self._connections[0], self._case.settings)
        pragmas.check(self._case.settings, answers)
        return answers

    def close(self) -> None:
        """Close the connections: the last one ends the WAL."""
        for connection in self._connections:
            connection.close()
        self._connections, self._pinned = [], None
