"""The parent's view of the database: created, examined after a crash, and what the crash left behind."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from sqlstress import sqlite_codes as codes
from sqlstress.errors import message_of
from sqlstress.experiments.crash.spec import ACKNOWLEDGED, INTEGRITY, WHOLE
from sqlstress.experiments.crash.worker import PUT, TABLES, Entry, Records
from sqlstress.report import Check, Verdict
from sqlstress.report.results import Tally
from sqlstress.targets.place import Definition, redefinitions
from sqlstress.targets.sqlite import files, walindex
from sqlstress.targets.sqlite.busy import waiting_of
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection, load_driver
from sqlstress.targets.sqlite.integrity import definitions, integrity
from sqlstress.targets.sqlite.lock_holders import has_hot_journal
from sqlstress.targets.sqlite.place import SqlitePlace

# The proof after a crash, as pure functions: from what the writers were told to what the files hold.


class Acknowledged(NamedTuple):
    """What a writer was told of its transactions, which have the numbers from 1 on."""

    least: int
    """So many were acknowledged: they must be there."""
    most: int
    """No more had begun: no other may be there."""


class Contents(NamedTuple):
    """What a file holds, read in one snapshot."""

    log: Sequence[Entry]
    """The transactions, in the order in which they were committed."""
    rows: Mapping[Any, Any]
    """The value of each key."""


def check_acknowledged(told: Mapping[int, Acknowledged], files: Sequence[Contents]) -> Check:
    """Judge which transactions there are: all that were acknowledged, and none that nobody began."""
    tally = Tally(ACKNOWLEDGED)
    found, twice = numbers_found(files)
    for writer, (least, most) in told.items():
        numbers = found.pop(writer, set())
        tally.checked += least
        for number in sorted(set(range(1, least + 1)) - numbers):
            tally.problem(f"transaction {number} of writer {writer} was acknowledged and is gone")
        for number in sorted(numbers.difference(range(1, most + 1)), key=repr):
            tally.problem(f"transaction {number!r:.40} of writer {writer} is there, and was never begun")
    for writer in found:
        tally.problem(f"the log names writer {writer!r:.40}, who does not exist")
    for writer, number in twice:
        tally.problem(f"transaction {number!r:.40} of writer {writer!r:.40} is there twice")
    return tally.check()


def numbers_found(files: Sequence[Contents]) -> tuple[dict[int, set[int]], list[tuple[int, int]]]:
    """Return the numbers of each writer's transactions in the logs, and what is there more than once."""
    found: dict[int, set[int]] = {}
    twice = []
    for writer, number, _ in chain.from_iterable(file.log for file in files):
        numbers = found.setdefault(writer, set())
        if number in numbers:
            twice.append((writer, number))
        numbers.add(number)
    return found, twice


def check_whole(records: Records, files: Sequence[Contents]) -> Check:
    """Judge every record: all its rows must be as the last transaction in the log has left it."""
    tally = Tally(WHOLE)
    for number, file in enumerate(files):
        own = records.of_file(number)
        last = {record: records.created(record) for record in own}
        last |= {entry.record: entry for entry in file.log}
        left = dict(file.rows)
        for record, entry in last.items():
            tally.checked += 1
            if record not in own or not records.is_possible(entry):
                tally.problem(f"the log of file {number} has a transaction that nobody made: {entry!s:.120}")
            elif wrong := _wrong(records, entry, left):
                tally.problem(wrong)
        for key in left:
            tally.problem(f"there is a row with the key {key!r:.40} that nobody wrote")
    return tally.check()


def _wrong(records: Records, entry: Entry, left: dict[Any, Any]) -> str:
    """Say which rows of a record are not as a transaction wrote them, if any; takes its rows from `left`."""
    rows = [(place, value, left.pop(key, None)) for place, (key, value) in enumerate(records.rows(entry))]
    wrong = [(place, found) for place, value, found in rows if found != value]
    if not wrong:
        return ""
    place, value = wrong[0]
    made = None if value is None else records.writer_of(value)
    if value is None:
        holds = "is gone"
    elif made is None:
        holds = "holds a value that nobody wrote"
    elif made[0] == 0:
        holds = "is as it was created"
    else:
        holds = f"holds what transaction {made[1]} of writer {made[0]} wrote"
    last = f"transaction {entry.number} of writer {entry.writer}, the last one in the log,"
    return (
        f"record {entry.record}: {len(wrong)} of its {records.width} rows are not as "
        f"{last if entry.writer else 'its creation'} left them: row {place + 1} {holds}"
    )


EXAMINER = 0


class Remains(NamedTuple):
    """What a crash left to the next one who opens the files."""

    wals: int
    """WALs to recover."""
    hot_journals: int
    """Rollback journals to roll back."""
    checkpoints: int
    """Checkpoints that were under way."""


class Examined(NamedTuple):
    """What the files held at one moment."""

    files: Sequence[Contents]
    """By number of the file; nothing when one of them can't be read."""
    integrity: Check
    seconds: float
    """How long it took to open and read them."""


class Database:
    """The files, and what they must hold: `told` has every writer that they have ever had."""

    def __init__(self, place: SqlitePlace) -> None:
        self.case, self.place = place.case, place
        self.records = Records(self.case)
        self.told: dict[int, Acknowledged] = {}
        self.schema: list[Definition] = []
        """What every file defines."""
        self._held: list[Connection] = []

    def create(self) -> dict[str, str]:
        """Make new files; return their settings, read back after a first write."""
        self.remove()
        self.told = {}
        self.place.create_tables(TABLES, _nothing)
        for number, path in enumerate(self.place.paths):
            rows = (self.records.rows(self.records.created(one)) for one in self.records.of_file(number))
            with self.place.opened(number) as connection:
                connection.rows("BEGIN")
                connection.run_many(PUT, chain.from_iterable(rows))
                connection.rows("COMMIT")
            effective = files.first_write(self.case, path)
        self.schema = self.place.schema()
        return effective

    def remains(self) -> Remains:
        """Look at what a crash left, before anybody opens the files."""
        paths = self.place.paths
        return Remains(
            sum(walindex.wal_bytes(path) > 0 for path in paths),
            sum(map(has_hot_journal, paths)),
            sum(walindex.wal_bytes(path) > 0 and walindex.is_mid_checkpoint(path) for path in paths),
        )

    def examine(self) -> Examined:
        """Open every file, which recovers it, and read all of it. The connections stay until `release`."""
        begun, tally, found = time.perf_counter(), Tally(INTEGRITY), list[Contents]()
        for path in self.place.paths:
            tally.checked += 1
            try:
                contents, complaints = self._read(path)
            except Exception as error:
                code = load_driver(self.case.driver).result_code(error)
                # Of this machine or this program, not of the file; what a binding can't make text of has no
                # code.
                if codes.is_lack(code) if code is not None else type(error).__module__ not in DRIVERS:
                    raise
                # What can't be read is asked about once more: for the page.
                complaints = integrity(self.case, path, "integrity_check", _nothing) or [message_of(error)]
            else:
                found.append(contents)
            for complaint in complaints:
                tally.problem(f"{path.name}: {complaint}")
        whole = found if len(found) == len(self.place.paths) else []
        return Examined(whole, tally.check(), time.perf_counter() - begun)

    def _read(self, path: Path) -> tuple[Contents, list[str]]:
        """Read a file. Writers that go on leave its lock for moments only, so they are waited for in ours."""
        driver = load_driver(self.case.driver)
        connection = driver.connect(path, 0)
        self._held.append(connection)
        retried = waiting_of(self.case, EXAMINER).retried(read, driver.result_code, connection.rollback)
        contents, defined, complaints = retried(connection)
        changed = [f"its schema {text}" for text in redefinitions(self.schema, defined)]
        return contents, complaints + changed

    def judge(self, examined: Examined, told: Mapping[int, Acknowledged]) -> Verdict:
        """Say whether the files held what their writers were told; `told` are those of the last round."""
        checks = [examined.integrity]
        if examined.files:
            checks.append(check_acknowledged({**self.told, **told}, examined.files))
            checks.append(check_whole(self.records, examined.files))
        return Verdict(tuple(checks), examined.seconds)

    def settle(self, examined: Examined, writers: Mapping[int, Acknowledged]) -> int:
        """Take what was found of dead writers for what must be there from now on.

        Returns how many transactions were there that had not been acknowledged.
        """
        found, _ = numbers_found(examined.files)
        there = {writer: len(found.get(writer, ())) for writer in writers}
        self.told |= {writer: Acknowledged(count, count) for writer, count in there.items()}
        return sum(max(0, there[writer] - told.least) for writer, told in writers.items())

    def release(self) -> None:
        """Close the connections that examined the files: the last one to be closed empties a WAL."""
        while self._held:
            self._held.pop().close()

    def set_aside(self, name: str) -> None:
        """Keep the files as they are, in a folder of this name."""
        self.release()
        aside = self.place.where / name
        aside.mkdir()
        for path in self.place.paths:
            for suffix in files.SUFFIXES:
                if (file := path.with_name(path.name + suffix)).exists():
                    file.rename(aside / file.name)

    def remove(self) -> None:
        """Delete the files."""
        self.release()
        self.place.discard()


def _nothing() -> None:
    """Let the examination of a broken file go on."""


def read(connection: Connection) -> tuple[Contents, list[Definition], list[str]]:
    """Return what a file holds and defines, in one snapshot, and what integrity_check complains of."""
    connection.rows("BEGIN")
    try:
        log = [
            Entry(*row) for row in connection.iterate("SELECT writer, number, record FROM log ORDER BY id")
        ]
        rows: dict[Any, Any] = dict(connection.iterate("SELECT key, value FROM record"))
        defined = definitions(connection)
        answers = [str(row[0]) for row in connection.rows("PRAGMA integrity_check")]
    finally:
        connection.rollback()
    return Contents(log, rows), defined, [] if answers == ["ok"] else answers
