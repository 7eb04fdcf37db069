"""Changes of the tables of the experiment with methods: samples, and results of their pairs."""

from __future__ import annotations

from random import Random
from typing import Any

from benchmarks.mutations.change import Change, changed
from benchmarks.mutations.trial import Trial
from sqlstress.experiments.methods.tables import PATH, PENDING, own, pair_place

INSERT_SAMPLE = "INSERT INTO sample (path) VALUES (?)"
INSERT_RESULT = "INSERT INTO result VALUES (?, ?, ?)"
SET_PATH = "UPDATE sample SET path = ? WHERE path = ?"
SET_VALUE = "UPDATE result SET val = ? WHERE a_id = ? AND b_id = ?"


def _paths(trial: Trial) -> list[str]:
    return [path for (path,) in trial.rows("SELECT path FROM sample ORDER BY id")]


def _results(trial: Trial) -> list[tuple[int, int, float]]:
    return trial.rows("SELECT a_id, b_id, val FROM result ORDER BY a_id, b_id")


def _of_one_worker(trial: Trial, random: Random) -> range:
    """Return the places of the rows of one worker."""
    return own(trial.case, trial.case.spec, random.randint(1, trial.case.concurrency)).places


def drop_sample(trial: Trial, random: Random) -> Change:
    """Drop a sample."""
    path = random.choice(_paths(trial))
    trial.execute("DELETE FROM sample WHERE path = ?", path)
    return changed(f"{path} dropped", path)


def swap_samples(trial: Trial, random: Random) -> Change:
    """Let two samples of one process swap their ids."""
    one, other = (PATH.format(place) for place in random.sample(_of_one_worker(trial, random), 2))
    for new, old in (("", one), (one, other), (other, "")):
        trial.execute(SET_PATH, new, old)
    return changed(f"{one} and {other} swapped", one, other)


def duplicate_sample(trial: Trial, random: Random) -> Change:
    """Put a sample under another path too."""
    path = f"{random.choice(_paths(trial))}~"
    trial.execute(INSERT_SAMPLE, path)
    return changed(f"{path} added", path)


def add_sample(trial: Trial, random: Random) -> Change:
    """Add a sample that nobody inserted."""
    path = PATH.format(trial.case.spec.scale + random.randrange(1000))
    trial.execute(INSERT_SAMPLE, path)
    return changed(f"{path} added", path)


def tear_samples(trial: Trial, random: Random) -> Change:
    """Undo a part of what one process inserted in one transaction."""
    places = _of_one_worker(trial, random)
    undone = sorted(random.sample(places, random.randrange(1, len(places))))
    for place in undone:
        trial.execute("DELETE FROM sample WHERE path = ?", PATH.format(place))
    return changed(f"{len(undone)} of {len(places)} samples undone", PATH.format(undone[0]))


def drop_result(trial: Trial, random: Random) -> Change:
    """Drop a result."""
    a, b, _ = random.choice(_results(trial))
    trial.execute("DELETE FROM result WHERE a_id = ? AND b_id = ?", a, b)
    return changed(f"result of {a} and {b} dropped", f"({a}, {b})")


def swap_results(trial: Trial, random: Random) -> Change:
    """Swap two results that differ."""
    results = _results(trial)
    a, b, one = random.choice(results)
    c, d, other = random.choice([result for result in results if result[2] != one])
    trial.execute(SET_VALUE, other, a, b)
    trial.execute(SET_VALUE, one, c, d)
    return changed(f"results of {a}, {b} and {c}, {d} swapped", f"({a}, {b}", f"({c}, {d}")


def duplicate_result(trial: Trial, random: Random) -> Change:
    """Give a result to another pair too, in place of its own."""
    results = _results(trial)
    a, b, value = random.choice(results)
    c, d, _ = random.choice([result for result in results if result[2] != value])
    trial.execute(SET_VALUE, value, c, d)
    return changed(f"result of {a} and {b} given to {c} and {d} too", f"({c}, {d}")


def duplicate_pending(trial: Trial, random: Random) -> Change:
    """Put a result under another pair too."""
    a, b, value = random.choice(_results(trial))
    return _added(trial, a, b + random.randrange(100, 200), value)


def add_result(trial: Trial, random: Random) -> Change:
    """Add a result of samples that are not there."""
    return _added(trial, random.randrange(1, 5), random.randrange(100, 200), PENDING)


def _added(trial: Trial, a: int, b: int, value: float) -> Change:
    trial.execute(INSERT_RESULT, a, b, value)
    return changed(f"result of {a} and {b} added", f"({a}, {b}")


def tear_results(trial: Trial, random: Random) -> Change:
    """Undo a part of what one process allocated in one transaction."""
    places, samples = _of_one_worker(trial, random), trial.case.spec.scale
    its = [(a, b) for a, b, _ in _results(trial) if pair_place(a, b, samples) in places]
    undone = sorted(random.sample(its, random.randrange(1, len(its))))
    for a, b in undone:
        trial.execute("DELETE FROM result WHERE a_id = ? AND b_id = ?", a, b)
    first, second = undone[0]
    return changed(f"{len(undone)} of {len(its)} results undone", f"({first}, {second})")


def words(trial: Trial, table: str, row: tuple[Any, ...]) -> list[str]:
    """Return what a counter-example may call a row."""
    return [str(row[1])] if table == "sample" else [f"({row[0]}, {row[1]}"]
