"""Database of a crash test in the parent process: creation, and examination after a crash.

A writer's bounds are the least and the largest number of its transactions that the files may have.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from sqlstress import sqlite_codes as codes
from sqlstress.errors import error_message
from sqlstress.experiments.crash.proof import (
    AcknowledgedRecords,
    Contents,
    check_acknowledged,
    check_whole,
    numbers_found,
)
from sqlstress.experiments.crash.spec import INTEGRITY
from sqlstress.experiments.crash.worker import PUT, TABLES, Entry, Records
from sqlstress.report import Check, Verdict
from sqlstress.report.results import CheckCounter
from sqlstress.targets.place import Definition, schema_differences
from sqlstress.targets.sqlite import files, walindex
from sqlstress.targets.sqlite.busy import worker_waiting
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection, load_driver
from sqlstress.targets.sqlite.integrity import definitions, integrity
from sqlstress.targets.sqlite.lock_holders import has_hot_journal
from sqlstress.targets.sqlite.place import SqlitePlace

EXAMINER = 0
"""Worker number of the examining process; writers have numbers from 1."""


class Remains(NamedTuple):
    """Numbers of files that a crash left for the next process to recover."""

    wals: int
    """Number of WALs that must be recovered."""
    hot_journals: int
    """Number of rollback journals that must be rolled back."""
    checkpoints: int
    """Number of WALs with an unfinished checkpoint."""


class ExaminedFiles(NamedTuple):
    """Result of an examination of the files."""

    files: Sequence[Contents]
    """Contents of each file. The sequence is empty if any of the files cannot be read."""
    integrity: Check
    seconds: float
    """Time to open and read the files, in seconds."""


class CrashDatabase:
    """Files of a crash test, and the contents that earlier rounds must have left in these files."""

    def __init__(self, place: SqlitePlace) -> None:
        self.case, self.place = place.case, place
        self.records = Records(self.case)
        self.earlier_bounds: dict[int, AcknowledgedRecords] = {}
        """Bounds of the writers of earlier rounds."""
        self.schema: list[Definition] = []
        """Schema that each file must have."""
        self._connections: list[Connection] = []

    def create(self) -> dict[str, str]:
        """Create new files; return the effective SQLite settings."""
        self.remove()
        self.earlier_bounds = {}
        self.place.create_tables(TABLES, _never_interrupt)
        for number, path in enumerate(self.place.paths):
            rows = (
                self.records.rows(self.records.created(record)) for record in self.records.records_in(number)
            )
            with self.place.opened(number) as connection:
                connection.rows("BEGIN")
                connection.run_many(PUT, chain.from_iterable(rows))
                connection.rows("COMMIT")
            effective = files.first_write(self.case, path)
        self.schema = self.place.schema()
        return effective

    def remains(self) -> Remains:
        """Count the files to recover. Call this before a process opens them."""
        paths = self.place.paths
        return Remains(
            sum(walindex.wal_bytes(path) > 0 for path in paths),
            sum(map(has_hot_journal, paths)),
            sum(walindex.wal_bytes(path) > 0 and walindex.is_mid_checkpoint(path) for path in paths),
        )

    def examine(self) -> ExaminedFiles:
        """Open, recover and read every file. Connections stay open until `release`."""
        started_s, tally, readable = time.perf_counter(), CheckCounter(INTEGRITY), list[Contents]()
        for path in self.place.paths:
            tally.checked += 1
            try:
                contents, complaints = self._read(path)
            except Exception as error:
                code = load_driver(self.case.driver).result_code(error)
                # Raise an error that a damaged file cannot cause: an error with the result code for a lack of
                # memory, for example, or without a result code, unless the driver raised it. The driver may
                # raise such an error because it cannot decode a text of a damaged file.
                if codes.is_lack(code) if code is not None else type(error).__module__ not in DRIVERS:
                    raise
                # Run integrity_check on the unreadable file, because its answer names the damaged page.
                complaints = integrity(self.case, path, "integrity_check", _never_interrupt) or [
                    error_message(error)
                ]
            else:
                readable.append(contents)
            for complaint in complaints:
                tally.problem(f"{path.name}: {complaint}")
        all_contents = readable if len(readable) == len(self.place.paths) else []
        return ExaminedFiles(all_contents, tally.check(), time.perf_counter() - started_s)

    def _read(self, path: Path) -> tuple[Contents, list[str]]:
        """Return the contents of a file, and problems of structure and schema.

        Repeat the read while the file is locked: writers release their locks only for moments.
        """
        driver = load_driver(self.case.driver)
        connection = driver.connect(path, 0)
        self._connections.append(connection)
        read_with_retries = worker_waiting(self.case, EXAMINER).retried(
            read, driver.result_code, connection.rollback
        )
        contents, schema, complaints = read_with_retries(connection)
        schema_problems = [f"its schema {text}" for text in schema_differences(self.schema, schema)]
        return contents, complaints + schema_problems

    def judge(self, examined: ExaminedFiles, bounds: Mapping[int, AcknowledgedRecords]) -> Verdict:
        """Return the verdict on the files, given the bounds of the last round's writers."""
        checks = [examined.integrity]
        if examined.files:
            checks.append(check_acknowledged({**self.earlier_bounds, **bounds}, examined.files))
            checks.append(check_whole(self.records, examined.files))
        return Verdict(tuple(checks), examined.seconds)

    def settle(self, examined: ExaminedFiles, writers: Mapping[int, AcknowledgedRecords]) -> int:
        """Record the transactions found in the files, which must still be there in later rounds.

        `writers` has the bounds of the writers of this round, which are all dead. Return the number of their
        transactions that were found although they had not been acknowledged.
        """
        found_numbers, _ = numbers_found(examined.files)
        counts = {writer: len(found_numbers.get(writer, ())) for writer in writers}
        self.earlier_bounds |= {writer: AcknowledgedRecords(count, count) for writer, count in counts.items()}
        return sum(max(0, counts[writer] - bounds.least) for writer, bounds in writers.items())

    def release(self) -> None:
        """Close the examining connections. Closing the last connection to a file removes its WAL."""
        while self._connections:
            self._connections.pop().close()

    def set_aside(self, name: str) -> None:
        """Move the files unchanged into the new folder `name`."""
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


def _never_interrupt() -> None:
    """Do nothing; passed as `pulse`, because the examination of a file must not be interrupted.

    A pulse is a function that long-running code calls often, and that raises Interrupted to stop the code.
    """


def read(connection: Connection) -> tuple[Contents, list[Definition], list[str]]:
    """Return contents and schema of a file from one snapshot, and problems found by integrity_check."""
    connection.rows("BEGIN")
    try:
        log = [
            Entry(*row) for row in connection.iterate("SELECT writer, number, record FROM log ORDER BY id")
        ]
        rows: dict[Any, Any] = dict(connection.iterate("SELECT key, value FROM record"))
        schema = definitions(connection)
        answers = [str(row[0]) for row in connection.rows("PRAGMA integrity_check")]
    finally:
        connection.rollback()
    return Contents(log, rows), schema, [] if answers == ["ok"] else answers
