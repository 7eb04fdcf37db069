"""What a round is, drawn from the seed: who works on the database, how it is kept, and where they pause.

Half of the rounds are crowds: several processes run checkpoints while writers go on, and no reader is in
their way. That finds races of checkpoints. The other half is drawn at large. Pauses are many short ones, or
few long ones as in PCT (Burckhardt et al., 2010), at all calls or at few of them.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from random import Random
from typing import Any

from sqlstress.experiments.hunt.spec import MODES, Round, Schedule, counts
from sqlstress.options.pause_points import POINTS
from sqlstress.report.case import Case

CROWDS = 0.5
"""Share of the rounds that are about checkpoints."""
LONG_S, SHORT_S = 0.05, 0.001
"""The longest pause where they are few, and where they are many."""

SETTINGS = ("journal_mode", "synchronous", "wal_autocheckpoint", "page_size", "cache_size", "mmap_size")
"""The settings that are drawn."""
LEFT_OUT: dict[str, Any] = {
    **asdict(Round()),
    **dict.fromkeys(SETTINGS),
    "journal_mode": "wal",
    "synchronous": "off",
}
"""What a round has where nothing is drawn: no commit waits for a disk, and the rest is SQLite's own."""


def drawn(base: Case, number: int, *, as_given: bool = False) -> Case:
    """Return a round of a hunt: what `base` leaves open, which is None there, is drawn.

    With `as_given` it is left out instead.
    """
    random = Random(f"{base.seed}:round:{number}")
    if as_given:
        spec, settings = asdict(Round()), {name: LEFT_OUT[name] for name in SETTINGS}
    else:
        is_crowd = random.random() < CROWDS
        spec, settings = (_crowd if is_crowd else _at_large)(random)
        spec |= _pauses(random, is_crowd)
    spec |= {name: value for name in spec if (value := getattr(base.spec, name)) is not None}
    settings |= {name: value for name in settings if (value := getattr(base.settings, name)) is not None}
    made = Round(**spec)
    return replace(
        base,
        concurrency=sum(counts(made).values()),
        seed=random.getrandbits(32),
        spec=made,
        settings=replace(base.settings, **settings),
    )


def _crowd(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    spec = {
        "writers": random.choice((2, 3, 4, 4)),
        "readers": random.choice((0, 0, 0, 1)),
        "holders": 0,
        "checkpointers": random.choice((1, 2, 3, 3)),
        "checkpoint": random.choice((MODES[:1], MODES[:1], MODES[:1], MODES)),
        "batch": random.choice((1, 1, 2)),
        "keys": random.choice((16, 64, 256)),
        "filler": random.choice((0, 0, 100)),
        "churn": random.random() < 0.2,
        "reopen": 0,
    }
    settings = {
        "journal_mode": "wal",
        "synchronous": "off",
        "wal_autocheckpoint": random.choice((4, 4, 10, 100, 1000)),
        "page_size": random.choice((None, None, 1024)),
        "cache_size": None,
        "mmap_size": None,
    }
    return spec, settings


def _at_large(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    is_wal = random.random() < 0.85
    spec = {
        "writers": random.choice((1, 2, 3, 4)),
        "readers": random.choice((0, 1, 2, 3)),
        "holders": random.choice((0, 0, 0, 1)),
        "checkpointers": random.choice((0, 1, 2)) if is_wal else 0,
        "checkpoint": tuple(random.sample(MODES, random.choice((1, 1, 2, 4)))),
        "batch": random.choice((1, 2, 8)),
        "keys": random.choice((4, 16, 64, 256)),
        "filler": random.choice((0, 100, 1000)),
        "churn": random.random() < 0.5,
        "reopen": random.choice((0, 0, 20, 200)),
    }
    settings = {
        "journal_mode": "wal" if is_wal else random.choice(("delete", "truncate", "persist")),
        "synchronous": random.choice(("off", "off", "off", "normal")),
        "wal_autocheckpoint": random.choice((2, 4, 10, 100, 1000)),
        "page_size": random.choice((None, 512, 1024)),
        "cache_size": random.choice((None, 2, 20)),
        "mmap_size": random.choice((None, None, 1 << 20)),
    }
    return spec, settings


def _pauses(random: Random, is_crowd: bool) -> dict[str, Any]:
    few = not is_crowd and random.random() < 0.3
    points = (
        POINTS
        if is_crowd or random.random() < 0.6
        else tuple(random.sample(POINTS, random.choice((1, 2, 4))))
    )
    scale = 20 if few else 1
    # Of few calls each may well pause.
    rates = (3, 10, 50, 200) if points == POINTS else (1, 2, 5)
    return {
        "pause_at": points,
        "writer_pause": random.choice((50, 200, 200, 1000) if is_crowd else (0, *rates)) * scale,
        "reader_pause": random.choice((0, *rates)) * scale,
        "checkpointer_pause": random.choice((3, 5, 10) if is_crowd else (0, *rates)) * scale,
        "longest_pause_s": LONG_S if few else SHORT_S,
    }


def scheduled(random: Random, given: Schedule) -> Schedule:
    """Return where the processes of the user's own work pause: what `given` leaves open is drawn.

    In applications most races lie between a read and the write that follows. There a connection asks for the
    right to write, so some schedules pause at nothing else.
    """
    few = random.random() < 0.3
    points = random.choice((("write-lock",), POINTS, ("write-lock", "unlock", "shm-unlock")))
    made = {
        "pause_at": points,
        "pause": random.choice((3, 10, 50, 200) if points == POINTS else (1, 2, 5)) * (5 if few else 1),
        "longest_pause_s": LONG_S if few else random.choice((SHORT_S, 5 * SHORT_S)),
    }
    return Schedule(
        **{**made, **{name: value for name in made if (value := getattr(given, name)) is not None}}
    )
