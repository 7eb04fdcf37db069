"""Changes of the files of a crash test: the rows of records, and the log of transactions."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from benchmarks.mutations.change import Change, NothingToChange, changed
from benchmarks.mutations.trial import Trial
from sqlstress.experiments.crash.records import RECORDS, Entry, Records

SET = "UPDATE record SET value = ? WHERE key = ?"
LOGGED = "INSERT INTO log (writer, number, record) VALUES (?, ?, ?)"


class File(NamedTuple):
    """One of the files."""

    bucket: int
    log: list[Entry]

    def last(self) -> list[Entry]:
        """Return the last transaction of each record that was written."""
        return [*{entry.record: entry for entry in self.log}.values()]

    def before(self, records: Records, entry: Entry) -> Entry:
        """Return the transaction that wrote a record before."""
        earlier = [one for one in self.log[: self.log.index(entry)] if one.record == entry.record]
        return earlier[-1] if earlier else records.created(entry.record)


def _file(trial: Trial, random: Random) -> File:
    bucket = random.randrange(trial.case.buckets)
    rows = trial.rows("SELECT writer, number, record FROM log ORDER BY id", bucket=bucket)
    if len(rows) < 2:
        raise NothingToChange
    return File(bucket, [Entry(*row) for row in rows])


def _transaction(entry: Entry) -> str:
    return f"transaction {entry.number} of writer {entry.writer}"


def _record(entry: Entry) -> str:
    return f"record {entry.record}"


def drop(trial: Trial, random: Random) -> Change:
    """Drop an acknowledged transaction from the log, or a row that one wrote."""
    file = _file(trial, random)
    (told,) = trial.shared
    if random.random() < 0.5:
        entry = random.choice([one for one in file.log if one.number <= told[one.writer].least])
        where = "writer = ? AND number = ?"
        trial.execute(f"DELETE FROM log WHERE {where}", entry.writer, entry.number, bucket=file.bucket)
        return changed(f"{_transaction(entry)} dropped from the log", _transaction(entry))
    entry = random.choice(file.last())
    key, _ = random.choice(Records(trial.case).rows(entry))
    trial.execute("DELETE FROM record WHERE key = ?", key, bucket=file.bucket)
    return changed(f"row {key} of {_record(entry)} dropped", _record(entry))


def restore(trial: Trial, random: Random) -> Change:
    """Give one row of a record what the transaction before wrote."""
    return _undone(trial, random, 1)


def tear(trial: Trial, random: Random) -> Change:
    """Undo a part of a transaction, of several rows where there are."""
    return _undone(trial, random, random.randrange(1, trial.case.spec.batch))


def _undone(trial: Trial, random: Random, count: int) -> Change:
    file, records = _file(trial, random), Records(trial.case)
    entry = random.choice(file.last())
    older = records.rows(file.before(records, entry))
    for key, value in random.sample(older, count):
        trial.execute(SET, value, key, bucket=file.bucket)
    return changed(f"{count} rows of {_record(entry)} restored", _record(entry))


def swap(trial: Trial, random: Random) -> Change:
    """Swap the values of two rows, of the same record or not."""
    file, records = _file(trial, random), Records(trial.case)
    rows = [(entry, row) for entry in file.last() for row in records.rows(entry)]
    (one, (key, value)), (other, (second, another)) = random.sample(rows, 2)
    trial.execute(SET, another, key, bucket=file.bucket)
    trial.execute(SET, value, second, bucket=file.bucket)
    return changed(f"rows {key} and {second} swapped", _record(one), _record(other))


def duplicate(trial: Trial, random: Random) -> Change:
    """Enter a transaction in the log again, under another id."""
    file = _file(trial, random)
    entry = random.choice(file.log)
    trial.execute(LOGGED, *entry, bucket=file.bucket)
    return changed(f"{_transaction(entry)} entered again", _transaction(entry))


def add(trial: Trial, random: Random) -> Change:
    """Add a transaction that was never begun to the log, or a row to no record."""
    file = _file(trial, random)
    (told,) = trial.shared
    if random.random() < 0.5:
        writer = random.choice([*told])
        entry = Entry(writer, told[writer].most + random.randrange(1, 9), random.choice(file.log).record)
        trial.execute(LOGGED, *entry, bucket=file.bucket)
        return changed(f"{_transaction(entry)} added", _transaction(entry))
    key = RECORDS * trial.case.spec.batch + random.randrange(100)
    _, value = Records(trial.case).rows(random.choice(file.log))[0]
    trial.execute("INSERT INTO record VALUES (?, ?)", key, value, bucket=file.bucket)
    return changed(f"row {key} added", f"key {key}")


def words(trial: Trial, table: str, row: tuple[Any, ...]) -> list[str]:
    """Return what a counter-example may call a row."""
    if table == "record":
        buckets = range(trial.case.buckets)
        found = [
            f"record {row[0] % RECORDS + RECORDS * bucket}" for bucket in buckets if isinstance(row[0], int)
        ]
        return [*found, f"key {row[0]!r:.40}"]
    _, writer, number, record = row
    return [
        f"transaction {number!r:.40} of writer {writer!r:.40}",
        f"writer {writer!r:.40}",
        f"record {record}",
    ]
