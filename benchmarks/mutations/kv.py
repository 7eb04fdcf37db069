"""Changes of the key-value tables: keys with their values, in one file or several."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from benchmarks.mutations.change import Change, NothingToChange, changed
from benchmarks.mutations.trial import Trial
from sqlstress.engine.values import Stamp, Value, Values
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.classic_worker import LARGEST_KEY, modulo
from sqlstress.experiments.kv.keys import encoder, number_of

UPDATE = "UPDATE kv SET value = ? WHERE key = ?"
INSERT = "INSERT INTO kv (key, value) VALUES (?, ?)"


class Row(NamedTuple):
    """A row of a key-value table."""

    bucket: int
    key: Any
    value: Any
    stamp: Stamp
    """Who wrote it."""


def rows_of(trial: Trial) -> list[Row]:
    """Return the rows that a write of this trial made, those of the preload included."""
    values = _values(trial)
    return [
        Row(bucket, key, value, stamp)
        for bucket in range(trial.case.buckets)
        for key, value in trial.rows("SELECT key, value FROM kv ORDER BY key", bucket=bucket)
        if (stamp := values.read(value))
    ]


def _values(trial: Trial) -> Values:
    return Values(trial.salt, trial.case.spec.value_size)


def _written(trial: Trial) -> list[Row]:
    return [row for row in rows_of(trial) if row.stamp.worker]


def drop(trial: Trial, random: Random) -> Change:
    """Drop an acknowledged row."""
    row = random.choice(_written(trial))
    trial.execute("DELETE FROM kv WHERE key = ?", row.key, bucket=row.bucket)
    return changed(f"key {row.key!r} dropped", repr(row.key))


def restore(trial: Trial, random: Random) -> Change:
    """Give a key an older value: its preloaded one, or that of another process, which ended before."""
    rows = _written(trial)
    older = [(row, value) for row in rows for value in _older_of_others(trial, row)]
    if older and random.random() < 0.5:
        row, value = random.choice(older)
    else:
        row = random.choice(rows)
        value = _values(trial).maker(0)(_number(trial, row))
    trial.execute(UPDATE, value, row.key, bucket=row.bucket)
    return changed(f"key {row.key!r} given an older value", repr(row.key))


def _older_of_others(trial: Trial, row: Row) -> list[Value]:
    """Return what other processes last wrote to a key, if a later write began after it had ended."""
    case, number = trial.case, _number(trial, row)
    words = memoryview(trial.shared[0]).cast("B").cast("q")
    shape = acks.shape_of(case, case.spec.key_space)
    areas = {worker: acks.Area(words, shape, worker) for worker in range(1, case.concurrency + 1)}
    latest = max(area.begins[number] for area in areas.values())
    return [
        _values(trial).maker(worker)(area.sequences[number])
        for worker, area in areas.items()
        if area.sequences[number] and area.ends[number] < latest
    ]


def _number(trial: Trial, row: Row) -> int:
    number = number_of(row.key, trial.case.spec.key_type)
    assert number is not None
    return number


def swap(trial: Trial, random: Random) -> Change:
    """Swap the values of two keys, of the same file or not."""
    one, other = random.sample(_written(trial), 2)
    trial.execute(UPDATE, other.value, one.key, bucket=one.bucket)
    trial.execute(UPDATE, one.value, other.key, bucket=other.bucket)
    return changed(f"values of {one.key!r} and {other.key!r} swapped", repr(one.key), repr(other.key))


def duplicate(trial: Trial, random: Random) -> Change:
    """Give a key's value to another key too: in one file no key can be there twice."""
    one, other = random.sample(_written(trial), 2)
    trial.execute(UPDATE, one.value, other.key, bucket=other.bucket)
    return changed(f"value of {one.key!r} given to {other.key!r} too", repr(other.key))


def duplicate_elsewhere(trial: Trial, random: Random) -> Change:
    """Put a row into another file too, under the same key."""
    row = random.choice(_written(trial))
    bucket = random.choice([one for one in range(trial.case.buckets) if one != row.bucket])
    trial.execute(INSERT, row.key, row.value, bucket=bucket)
    return changed(f"key {row.key!r} put into {trial.paths[bucket].name} too", repr(row.key))


def add(trial: Trial, random: Random) -> Change:
    """Add a key beyond those that there are, with a value that a worker could have written."""
    load = trial.case.spec
    key = encoder(load.key_type)(load.key_space + random.randrange(1000))
    value = _values(trial).maker(1)(random.randrange(1, 1000))
    trial.execute(INSERT, key, value, bucket=random.randrange(trial.case.buckets))
    return changed(f"key {key!r} added", repr(key))


def add_unknown(trial: Trial, random: Random) -> Change:
    """Add a key that no worker drew, into the file where it belongs."""
    key = LARGEST_KEY + 1 + random.randrange(1000)
    value = _values(trial).maker(1)(random.randrange(1, 1000))
    trial.execute(INSERT, key, value, bucket=modulo(key, trial.case.buckets))
    return changed(f"key {key} added", repr(key))


def tear(trial: Trial, random: Random) -> Change:
    """Undo a part of a transaction of several rows."""
    batch = trial.case.spec.batch
    transactions: dict[tuple[int, int], list[Row]] = {}
    for row in _written(trial):
        transactions.setdefault((row.stamp.worker, (row.stamp.sequence - 1) // batch), []).append(row)
    several = [rows for rows in transactions.values() if len(rows) > 1]
    if not several:
        raise NothingToChange
    rows = random.choice(several)
    undone = random.sample(rows, random.randrange(1, len(rows)))
    for row in undone:
        value = _values(trial).maker(0)(_number(trial, row))
        trial.execute(UPDATE, value, row.key, bucket=row.bucket)
    return changed(f"{len(undone)} of {len(rows)} rows undone", *(repr(row.key) for row in undone))


def words(trial: Trial, table: str, row: tuple[Any, ...]) -> list[str]:
    """Return what a counter-example may call a row."""
    if table == "counter":
        return [f"{trial.paths[0].name}:{row[0]}"]
    return [repr(row[0])]
