"""The proof after a crash, as pure functions: from what the writers were told to what the files hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlstress.experiments.crash.records import Entry, Records
from sqlstress.experiments.crash.result import ACKNOWLEDGED, WHOLE
from sqlstress.report import Check
from sqlstress.report.problems import Tally


class Told(NamedTuple):
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


def check_acknowledged(told: Mapping[int, Told], files: Sequence[Contents]) -> Check:
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
            elif wrong := list(_wrong(records, entry, left)):
                tally.problem(_told(records, entry, wrong))
        for key in left:
            tally.problem(f"there is a row with the key {key!r:.40} that nobody wrote")
    return tally.check()


def _wrong(records: Records, entry: Entry, left: dict[Any, Any]) -> Iterator[tuple[int, Any]]:
    """Yield (place, value) of each row that is not as a transaction wrote it; takes the rows from `left`."""
    for place, (key, value) in enumerate(records.rows(entry)):
        found = left.pop(key, None)
        if found != value:
            yield place, found


def _told(records: Records, entry: Entry, wrong: Sequence[tuple[int, Any]]) -> str:
    place, value = wrong[0]
    return (
        f"record {entry.record}: {len(wrong)} of its {records.width} rows are not as {_named(entry)} left "
        f"them: row {place + 1} {_found(records, value)}"
    )


def _found(records: Records, value: Any) -> str:
    if value is None:
        return "is gone"
    made = records.writer_of(value)
    if made is None:
        return "holds a value that nobody wrote"
    writer, number = made
    return f"holds what transaction {number} of writer {writer} wrote" if writer else "is as it was created"


def _named(entry: Entry) -> str:
    if not entry.writer:
        return "its creation"
    return f"transaction {entry.number} of writer {entry.writer}, the last one in the log,"
