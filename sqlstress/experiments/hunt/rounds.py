"""Rounds of a hunt: random rounds, and smaller variants of a round that failed.

Half of the rounds are crowds, which show races of checkpoints. In a crowd, several processes run checkpoints
while writers continue. There is at most one reader, because readers block checkpoints. In other rounds
everything varies.

Pauses are short and frequent, or long and rare as in PCT (probabilistic concurrency testing, Burckhardt et
al., 2010). They occur at all kinds of VFS calls (calls of SQLite's interface to files) or at a few kinds,
which are called points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any, NamedTuple, cast

from sqlstress.engine.pool import Pauses
from sqlstress.experiments.hunt.result import Hunting
from sqlstress.experiments.hunt.spec import (
    MODES,
    POINTS,
    SETTINGS,
    Round,
    Schedule,
    counts,
    pause_rate,
    role_of,
)
from sqlstress.options.option import options_of
from sqlstress.report.case import Case
from sqlstress.report.case import words as described
from sqlstress.statistics.units import NS_PER_S, format_duration
from sqlstress.target import DEFAULT
from sqlstress.targets.sqlite import shim

CROWDS = 0.5
"""Share of the rounds with many checkpoints and few readers."""
LONG_S, SHORT_S = 0.05, 0.001
"""Longest pause, in seconds: LONG_S for a process with rare pauses, SHORT_S with frequent pauses."""
SHORTEST_NS = 1000
"""Shortest pause, in ns."""
LEFT_OUT: dict[str, Any] = {
    **asdict(Round()),
    **dict.fromkeys(SETTINGS),
    "journal_mode": "wal",
    "synchronous": "off",
}
"""Values of the options that the user did not give, in a round without random choices (--as-given).

With synchronous=off, commits do not wait for the disk.
"""


def draw_round(base: Case, number: int, *, as_given: bool = False) -> Case:
    """Return the round `number`. Fields that are None in `base` are drawn at random.

    With `as_given`, nothing is drawn: fields that are None in `base` get their default values.
    """
    random = Random(f"{base.seed}:round:{number}")
    if as_given:
        spec, settings = asdict(Round()), {name: LEFT_OUT[name] for name in SETTINGS}
    else:
        is_crowd = random.random() < CROWDS
        spec, settings = (_crowd if is_crowd else _varied)(random)
        spec |= _pauses(random, is_crowd)
    spec |= {name: value for name in spec if (value := getattr(base.spec, name)) is not None}
    settings |= {name: value for name in settings if (value := getattr(base.settings, name)) is not None}
    round_spec = Round(**spec)
    return replace(
        base,
        concurrency=sum(counts(round_spec).values()),
        seed=random.getrandbits(32),
        spec=round_spec,
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


def _varied(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
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
    are_rare = not is_crowd and random.random() < 0.3
    points = (
        POINTS
        if is_crowd or random.random() < 0.6
        else tuple(random.sample(POINTS, random.choice((1, 2, 4))))
    )
    scale = 20 if are_rare else 1
    # If processes pause at few kinds of calls only, they can pause at a larger share of these calls.
    rates = (3, 10, 50, 200) if points == POINTS else (1, 2, 5)
    return {
        "pause_at": points,
        "writer_pause": random.choice((50, 200, 200, 1000) if is_crowd else (0, *rates)) * scale,
        "reader_pause": random.choice((0, *rates)) * scale,
        "checkpointer_pause": random.choice((3, 5, 10) if is_crowd else (0, *rates)) * scale,
        "longest_pause_s": LONG_S if are_rare else SHORT_S,
    }


def scheduled(random: Random, given: Schedule) -> Schedule:
    """Return a schedule (pauses) for the user's work. Fields that are None in `given` are drawn at random.

    Most races of applications happen between a read and the following write. So some schedules pause only at
    the point write-lock: when a connection takes the write lock, just before its first write.
    """
    are_rare = random.random() < 0.3
    points = random.choice((("write-lock",), POINTS, ("write-lock", "unlock", "shm-unlock")))
    values = {
        "pause_at": points,
        "pause": random.choice((3, 10, 50, 200) if points == POINTS else (1, 2, 5)) * (5 if are_rare else 1),
        "longest_pause_s": LONG_S if are_rare else random.choice((SHORT_S, 5 * SHORT_S)),
    }
    return Schedule(
        **{**values, **{name: value for name in values if (value := getattr(given, name)) is not None}}
    )


# Smaller variants of a failed round.


_OTHER_FIELDS = ("readers", "holders", "reopen", "churn", "filler", "batch", "keys")
"""Fields of a round, besides pauses, that smaller variants set to their defaults."""
_PAUSES = {
    "writer_pause": ("writers",),
    "reader_pause": ("readers", "holders"),
    "checkpointer_pause": ("checkpointers",),
}


def smaller(case: Case) -> Iterator[Case]:
    """Yield smaller variants of a round with the hunt's own load, the largest reductions first."""
    spec: Round = case.spec
    usual = {name: LEFT_OUT[name] for name in _OTHER_FIELDS}
    yield _with(_set(case, page_size=None, cache_size=None, mmap_size=None), **usual)
    yield _with(case, **usual)
    for name in ("writers", "checkpointers", "readers", "holders"):
        yield from (
            _with(case, **{name: count}) for count in _less(getattr(spec, name), int(name == "writers"))
        )
    for mode in spec.checkpoint if len(spec.checkpoint) > 1 else ():
        yield _with(case, checkpoint=(mode,))
    yield from (_with(case, **{name: 0}) for name in _PAUSES)
    yield from (_with(case, pause_at=points) for points in _parts(spec.pause_at))
    yield from (_with(case, **{name: usual[name]}) for name in _OTHER_FIELDS)
    yield from (_set(case, **{name: None}) for name in SETTINGS[2:])


def calmer(case: Case, schedule: Schedule) -> Iterator[tuple[Case, Schedule]]:
    """Yield smaller variants of a round with the user's work: fewer processes, fewer pauses, or none."""
    for count in _less(case.concurrency, 1):
        yield replace(case, concurrency=count), schedule
    if schedule.pause:
        yield case, replace(schedule, pause=0)
        yield from ((case, replace(schedule, pause_at=points)) for points in _parts(schedule.pause_at))


def _less(count: int, least: int) -> Iterator[int]:
    """Yield up to four numbers from `least` to below `count`. For a count of 10: 1, 2, 5 and 9."""
    yield from dict.fromkeys(
        smaller_count
        for smaller_count in (least, least + 1, count // 2, count - 1)
        if least <= smaller_count < count
    )


def _parts(points: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the first half of a list, the second half, then the list without each of its quarters."""
    if len(points) > 1:
        middle = len(points) // 2
        yield points[:middle]
        yield points[middle:]
    size = len(points) // 4
    for start in range(0, len(points), size) if size else ():
        yield points[:start] + points[start + size :]


def _with(case: Case, **changes: Any) -> Case:
    spec = replace(case.spec, **changes)
    # If no process has a role, its pause has no effect, so that the command need not set it.
    absent = {name: 0 for name, roles in _PAUSES.items() if not any(getattr(spec, role) for role in roles)}
    spec = replace(spec, **absent)
    return replace(case, concurrency=sum(counts(spec).values()), spec=spec)


def _set(case: Case, **changes: Any) -> Case:
    return replace(case, settings=replace(case.settings, **changes))


# Sources of rounds: the hunt's own load, or the user's work.


class Drawn(NamedTuple):
    """Round to run, with all its random choices."""

    case: Case
    schedule: Schedule | None = None
    """Pauses of the user's work; None if the case has the pauses."""


class OwnRounds:
    """Source of rounds with the hunt's own load."""

    def __init__(self, base: Case, hunting: Hunting) -> None:
        """Fields that are None in `base` are drawn at random."""
        self._base, self._hunting = base, hunting

    def draw(self, number: int) -> Drawn:
        """Return round `number`; equal numbers give equal rounds."""
        return Drawn(draw_round(self._base, number, as_given=bool(self._hunting.as_given)))

    def smaller(self, drawn: Drawn) -> Iterator[Drawn]:
        """Yield smaller variants of a round, the largest reductions first."""
        return map(Drawn, smaller(drawn.case))

    def command(self, drawn: Drawn) -> tuple[str, ...]:
        """Return the command, as words, that repeats the round."""
        words = ["sqlstress", "hunt", "--as-given"]
        for part in (drawn.case.spec, drawn.case.settings):
            words += _option_words(part, LEFT_OUT)
        words += [] if drawn.case.driver == DEFAULT else ["--driver", drawn.case.driver]
        return (*words, *(["--no-pauses"] if self._hunting.no_pauses else []))


def _option_words(part: Any, usual: Mapping[str, Any]) -> list[str]:
    """Return the options whose values differ from `usual`, as words of a command line.

    `part` is an object, such as a Round, whose fields are options. `usual` has their default values.
    """
    words = []
    for field, option in options_of(cast(Any, type(part))).items():
        value = getattr(part, field)
        if field in usual and value not in (None, usual[field]):
            words += [f"--{option.name}", _value_text(value)]
    return words


def _value_text(value: Any) -> str:
    if isinstance(value, float):
        return format_duration(value)
    return ",".join(value) if isinstance(value, tuple) else described(value)


class UserRounds:
    """Source of rounds with the user's work: its cases in turn, each time with new random pauses."""

    def __init__(self, cases: Sequence[Case], given: Schedule, command: Iterable[str]) -> None:
        """Fields that are None in `given` are drawn at random.

        `command` has the first words of the command that repeats a round.
        """
        self._cases, self._given, self._command = cases, given, tuple(command)

    def draw(self, number: int) -> Drawn:
        base = self._cases[number % len(self._cases)]
        random = Random(f"{base.seed}:round:{number}")
        schedule = scheduled(random, self._given)
        return Drawn(replace(base, seed=random.getrandbits(32)), schedule)

    def smaller(self, drawn: Drawn) -> Iterator[Drawn]:
        assert drawn.schedule
        return (Drawn(*variant) for variant in calmer(drawn.case, drawn.schedule))

    def command(self, drawn: Drawn) -> tuple[str, ...]:
        usual = {**asdict(Schedule()), "pause": -1}
        return (
            *self._command,
            "--concurrency",
            str(drawn.case.concurrency),
            *_option_words(drawn.schedule, usual),
        )


def pauses_of(drawn: Drawn) -> Pauses:
    """Return a function from the number of a process to the pauses of that process.

    The function returns None for a process without pauses.
    """
    case, schedule = drawn

    def words_of(process: int) -> list[int] | None:
        if schedule:
            points, rate, longest_s = schedule.pause_at, schedule.pause, schedule.longest_pause_s
        else:
            spec = case.spec
            points, longest_s = spec.pause_at, spec.longest_pause_s
            rate = pause_rate(spec, role_of(spec, process).name)
        random = Random(f"{case.seed}:pauses:{process}")
        longest_ns = max(SHORTEST_NS, round(longest_s * NS_PER_S))
        rates = [rate * (point in points) for point in POINTS]
        return shim.schedule(random, rates, SHORTEST_NS, longest_ns) if rate else None

    return words_of
