"""Changes of the tables of the experiment with cycles: each process has one of its own."""

from __future__ import annotations

from random import Random
from typing import Any

from benchmarks.mutations.change import Change, changed
from benchmarks.mutations.trial import Trial
from sqlstress.experiments.cycles.moves import table


def _some_table(trial: Trial, random: Random) -> str:
    return table(random.randint(1, trial.case.concurrency))


def _rows(trial: Trial, name: str) -> list[tuple[int, str]]:
    return trial.rows(f"SELECT id, value FROM {name} ORDER BY id")


def drop(trial: Trial, random: Random) -> Change:
    """Drop a row of the last insertion."""
    name = _some_table(trial, random)
    row, value = random.choice(_rows(trial, name))
    trial.execute(f"DELETE FROM {name} WHERE id = ?", row)
    return changed(f"{value!r} dropped", repr(value))


def restore(trial: Trial, random: Random) -> Change:
    """Give a row the value that stood in its place before: of another insertion, or of an earlier cycle."""
    name = _some_table(trial, random)
    row, value = random.choice(_rows(trial, name))
    if random.random() < 0.5:
        older = value.replace("insertion 2", "insertion 1")
    else:
        older = value.replace(f"cycle {_cycles(trial)}", f"cycle {_cycles(trial) - 1}")
    trial.execute(f"UPDATE {name} SET value = ? WHERE id = ?", older, row)
    return changed(f"{older!r} restored", repr(older), repr(value))


def _cycles(trial: Trial) -> int:
    return int(trial.case.spec.cycles)


def swap(trial: Trial, random: Random) -> Change:
    """Let two rows of a table swap their ids."""
    name = _some_table(trial, random)
    (one, first), (other, second) = random.sample(_rows(trial, name), 2)
    for row, value in ((one, second), (other, first)):
        trial.execute(f"UPDATE {name} SET value = ? WHERE id = ?", value, row)
    return changed(f"{first!r} and {second!r} swapped", repr(first), repr(second))


def duplicate(trial: Trial, random: Random) -> Change:
    """Put a row there again, under another id."""
    name = _some_table(trial, random)
    _, value = random.choice(_rows(trial, name))
    trial.execute(f"INSERT INTO {name} (value) VALUES (?)", value)
    return changed(f"{value!r} duplicated", repr(value))


def add(trial: Trial, random: Random) -> Change:
    """Add a row that reads as if a worker had inserted it."""
    name = _some_table(trial, random)
    _, value = random.choice(_rows(trial, name))
    more = f"{value}{random.randrange(10)}"
    if (more,) in trial.rows(f"SELECT value FROM {name}"):
        more = f"{value}000"
    trial.execute(f"INSERT INTO {name} (value) VALUES (?)", more)
    return changed(f"{more!r} added", repr(more))


def tear(trial: Trial, random: Random) -> Change:
    """Undo a part of the last transaction."""
    name = _some_table(trial, random)
    rows = _rows(trial, name)
    undone = sorted(random.sample(rows, random.randrange(1, len(rows))))
    for row, _ in undone:
        trial.execute(f"DELETE FROM {name} WHERE id = ?", row)
    return changed(f"{len(undone)} of {len(rows)} rows undone", repr(undone[0][1]))


def words(trial: Trial, table: str, row: tuple[Any, ...]) -> list[str]:
    """Return what a counter-example may call a row."""
    return [repr(row[1])]
