"""Checks after a crash: comparison of acknowledged transactions with the contents of the files.

A record is a group of rows written by one transaction; the table log has a row per transaction. A writer's
bounds are the least and the largest number of its transactions that the files may have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.experiments.crash.spec import ACKNOWLEDGED, WHOLE
from sqlstress.report.results import CheckCounter

if TYPE_CHECKING:
    from sqlstress.experiments.crash.worker import Entry, Records
    from sqlstress.report import Check


class AcknowledgedRecords(NamedTuple):
    """Bounds of one writer: the least and the largest number of its transactions in the files.

    The writer's transactions are numbered from 1.
    """

    least: int
    """Number of acknowledged transactions, which the files must all have."""
    most: int
    """Number of begun transactions. The files must not have further transactions."""


class Contents(NamedTuple):
    """Contents of one file, read in one snapshot."""

    log: Sequence[Entry]
    """Transactions in the log table, in the order of commits."""
    rows: Mapping[Any, Any]
    """Values in the table `record`, by key."""


def check_acknowledged(bounds: Mapping[int, AcknowledgedRecords], files: Sequence[Contents]) -> Check:
    """Check that the logs have every acknowledged transaction, and only begun transactions, each once.

    Each file has a log, the table `log`. `bounds` has the numbers of acknowledged and of begun transactions,
    by writer.
    """
    tally = CheckCounter(ACKNOWLEDGED)
    numbers_by_writer, repeated = numbers_found(files)
    for writer, (least, most) in bounds.items():
        numbers = numbers_by_writer.pop(writer, set())
        tally.checked += least
        for number in sorted(set(range(1, least + 1)) - numbers):
            tally.problem(f"transaction {number} of writer {writer} was acknowledged and is gone")
        for number in sorted(numbers.difference(range(1, most + 1)), key=repr):
            tally.problem(f"transaction {number!r:.40} of writer {writer} is there, and was never begun")
    for writer in numbers_by_writer:
        tally.problem(f"the log names writer {writer!r:.40}, who does not exist")
    for writer, number in repeated:
        tally.problem(f"transaction {number!r:.40} of writer {writer!r:.40} is there twice")
    return tally.check()


def numbers_found(files: Sequence[Contents]) -> tuple[dict[int, set[int]], list[tuple[int, int]]]:
    """Return the transaction numbers in the logs by writer, and each repeated (writer, number)."""
    by_writer: dict[int, set[int]] = {}
    repeated = []
    for writer, number, _ in chain.from_iterable(file.log for file in files):
        numbers = by_writer.setdefault(writer, set())
        if number in numbers:
            repeated.append((writer, number))
        numbers.add(number)
    return by_writer, repeated


def check_whole(records: Records, files: Sequence[Contents]) -> Check:
    """Check that each record has the rows that its last transaction in the log wrote."""
    tally = CheckCounter(WHOLE)
    for number, file in enumerate(files):
        file_records = records.records_in(number)
        last = {record: records.created(record) for record in file_records}
        last |= {entry.record: entry for entry in file.log}
        left = dict(file.rows)
        for record, entry in last.items():
            tally.checked += 1
            if record not in file_records or not records.is_possible(entry):
                tally.problem(f"the log of file {number} has a transaction that nobody made: {entry!s:.120}")
            elif problem := _difference(records, entry, left):
                tally.problem(problem)
        for key in left:
            tally.problem(f"there is a row with the key {key!r:.40} that nobody wrote")
    return tally.check()


def _difference(records: Records, entry: Entry, left: dict[Any, Any]) -> str:
    """Compare the rows that `entry` wrote with `left`; return text on the first difference, or "".

    `left` has the rows of the file that were not compared yet. This function removes the compared rows. So
    the rows that remain in the end were written by no transaction.
    """
    rows = [(index, value, left.pop(key, None)) for index, (key, value) in enumerate(records.rows(entry))]
    differing = [(index, actual) for index, value, actual in rows if actual != value]
    if not differing:
        return ""
    index, value = differing[0]
    origin = None if value is None else records.writer_of(value)
    if value is None:
        state = "is gone"
    elif origin is None:
        state = "holds a value that nobody wrote"
    elif origin[0] == 0:
        state = "is as it was created"
    else:
        state = f"holds what transaction {origin[1]} of writer {origin[0]} wrote"
    last_transaction = f"transaction {entry.number} of writer {entry.writer}, the last one in the log,"
    return (
        f"record {entry.record}: {len(differing)} of its {records.width} rows are not as "
        f"{last_transaction if entry.writer else 'its creation'} left them: row {index + 1} {state}"
    )
