"""Changes of the counters, which workers read and write plus one."""

from __future__ import annotations

from random import Random

from benchmarks.mutations.change import Change, NothingToChange, changed
from benchmarks.mutations.trial import Trial
from sqlstress.experiments.kv.acks import COUNTERS

SET = "UPDATE counter SET n = ? WHERE id = ?"


def _counters(trial: Trial) -> dict[int, int]:
    """Return the counters that have been updated."""
    return dict(trial.rows("SELECT id, n FROM counter WHERE n > 0 ORDER BY id"))


def _name(trial: Trial, counter: int) -> str:
    return f"{trial.paths[0].name}:{counter}"


def drop(trial: Trial, random: Random) -> Change:
    """Drop a counter."""
    counter = random.choice([*_counters(trial)])
    trial.execute("DELETE FROM counter WHERE id = ?", counter)
    return changed(f"counter {counter} dropped", _name(trial, counter))


def restore(trial: Trial, random: Random) -> Change:
    """Give a counter one of its older values."""
    counter, n = random.choice([*_counters(trial).items()])
    trial.execute(SET, random.randrange(n), counter)
    return changed(f"counter {counter} set back", _name(trial, counter))


def swap(trial: Trial, random: Random) -> Change:
    """Swap two counters that differ."""
    counters = _counters(trial)
    pairs = [(one, other) for one in counters for other in counters if counters[one] < counters[other]]
    if not pairs:
        raise NothingToChange
    one, other = random.choice(pairs)
    trial.execute(SET, counters[other], one)
    trial.execute(SET, counters[one], other)
    return changed(f"counters {one} and {other} swapped", _name(trial, one), _name(trial, other))


def duplicate(trial: Trial, random: Random) -> Change:
    """Put a counter under another number too."""
    n = random.choice([*_counters(trial).values()])
    return _inserted(trial, COUNTERS + random.randrange(100), n)


def add(trial: Trial, random: Random) -> Change:
    """Add a counter, or an update to one, that nobody wrote."""
    if random.random() < 0.5:
        return _inserted(trial, COUNTERS + random.randrange(100), random.randrange(2))
    counter, n = random.choice([*_counters(trial).items()])
    trial.execute(SET, n + random.randrange(1, 10), counter)
    return changed(f"counter {counter} set forth", _name(trial, counter))


def _inserted(trial: Trial, counter: int, n: int) -> Change:
    trial.execute("INSERT INTO counter VALUES (?, ?)", counter, n)
    return changed(f"counter {counter} added", _name(trial, counter))
