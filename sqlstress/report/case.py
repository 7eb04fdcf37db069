"""Case: one measurement, fully specified. It travels to the workers and into the report unchanged.

What every case has stands here. What only cases of its experiment have is its `spec`, of a type of theirs.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from sqlstress import target
from sqlstress.experiment import DEFAULT, face, label
from sqlstress.options.option import SQLITE, SWEEP, TRUST, Option, either, option, options_of
from sqlstress.options.parsing import (
    MOST_RATE,
    choice,
    duration,
    duration_with_unit,
    milliseconds,
    percentage,
    power_of_two,
    pragmas,
    ranges,
    rates,
    switch,
    whole,
)
from sqlstress.report.server import Server
from sqlstress.statistics.units import format_duration
from sqlstress.target import bucket, told, usual

# When the operations of a case are due, where they arrive at a rate: an open loop.


SPACINGS = ("poisson", "even")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When operations are due: from the common start on, whether or not those before them are done."""

    rate: int = option(
        rates,
        None,
        SWEEP,
        "Operations due in a second, all processes together: 2000, 500,1000 or 500-2000/500. "
        "Without it each process asks again when it has been answered.",
        metavar="LIST",
        varies=True,
        required=True,
        meaning=f"Operations due in a second, all processes together; 1 to {MOST_RATE:,}.",
    )
    spacing: str = option(
        choice(*SPACINGS),
        "poisson",
        SWEEP,
        f"When they are due: {either(SPACINGS)}. Poisson: as independent users arrive.",
        name="arrival",
        metavar="HOW",
        meaning="When they are due: poisson (as independent users arrive) or even (at equal distances).",
    )
    latency_limit_s: float | None = option(
        duration_with_unit(0.0001),
        None,
        SWEEP,
        "What is later than this when its turn comes is skipped, and counted.",
        name="latency-limit",
        metavar="TIME",
        meaning="How late an operation may be when its turn comes, in seconds; one that is later is skipped. "
        "None: nothing is skipped.",
    )

    def at(self, rate: int) -> Arrivals:
        """Return the same at another rate."""
        return replace(self, rate=rate)


JOURNAL_MODES = ("wal", "delete", "truncate", "persist", "memory", "off")
KEPT = "kept"
"""Instead of one of them: none is set, the file has the mode that its own program gave it."""
SYNCHRONOUS = ("off", "normal", "full", "extra")
BEGINS = ("deferred", "immediate")
BUSY_POLICIES = ("default", "fair")
VERIFY_LEVELS = ("none", "quick", "full")

UNKNOWN_DRIVER = "unknown"
"""Driver of figures that somebody else published: through what, and how it waited for locks, was not told."""

MAX_CONCURRENCY = 1024
MAX_BUCKETS = 10_000
_BIG = 1 << 40
_INT = (1 << 31) - 1
"""The largest number of 32 bits: SQLite takes a larger cache_size for 0."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How every connection is opened. None means: left to the SQLite library, and read back."""

    journal_mode: str = option(
        choice(*JOURNAL_MODES),
        "wal",
        SQLITE,
        f"PRAGMA journal_mode: {either(JOURNAL_MODES)}.",
        metavar="MODE",
    )
    synchronous: str | None = option(
        choice(*SYNCHRONOUS), "full", SQLITE, f"PRAGMA synchronous: {either(SYNCHRONOUS)}.", metavar="LEVEL"
    )
    fullfsync: bool | None = option(
        switch, None, SQLITE, "PRAGMA fullfsync; has an effect on macOS only.", metavar="on|off"
    )
    wal_autocheckpoint: int | None = option(
        whole(0, 10**9),
        None,
        SQLITE,
        "PRAGMA wal_autocheckpoint; 0 is never.",
        metavar="FRAMES",
        meaning="PRAGMA wal_autocheckpoint, in frames; 0 turns it off.",
    )
    page_size: int | None = option(
        power_of_two(512, 65536),
        None,
        SQLITE,
        "PRAGMA page_size.",
        metavar="BYTES",
        meaning="PRAGMA page_size, in bytes.",
    )
    cache_size: int | None = option(
        whole(-_INT, _INT), None, SQLITE, "PRAGMA cache_size: pages, or KiB below 0."
    )
    mmap_size: int | None = option(
        whole(0, _BIG),
        None,
        SQLITE,
        "PRAGMA mmap_size.",
        metavar="BYTES",
        meaning="PRAGMA mmap_size, in bytes.",
    )
    pragmas: tuple[tuple[str, str], ...] = option(
        pragmas,
        (),
        SQLITE,
        "Any other PRAGMA; may be repeated.",
        name="pragma",
        metavar="NAME=VALUE",
        multiple=True,
        meaning="Further PRAGMAs, as (name, value).",
    )
    busy_timeout_ms: int = option(
        milliseconds(0.0),
        "60s",
        SQLITE,
        "How long an operation waits for a lock, with its unit: 5s or 5000ms.",
        name="busy-timeout",
        metavar="TIME",
        meaning="How long an operation waits for a lock before it gives up, in milliseconds.",
    )
    busy: str = option(
        choice(*BUSY_POLICIES),
        "default",
        SQLITE,
        "How it waits: default (SQLite's own handler) or fair (waits that grow with the workers).",
        metavar="POLICY",
    )


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement, fully specified."""

    workload: str = DEFAULT
    """Name in the registry of experiments."""
    driver: str = option(
        choice(*usual()),
        target.DEFAULT,
        SQLITE,
        told(usual()),
        metavar="NAME",
        meaning="Name in the registry of drivers.",
    )
    concurrency: int = option(
        ranges(MAX_CONCURRENCY),
        "1-8",
        SWEEP,
        "Processes: 4, 1-8 or 1,2,4-6.",
        short="c",
        metavar="LIST",
        varies=True,
        meaning="Number of worker processes; 0 where it is not known, of published figures.",
    )
    buckets: int = option(
        ranges(MAX_BUCKETS),
        "1",
        SWEEP,
        "Files: 1 is one database, n is n hash-partitioned ones; a list measures each.",
        short="b",
        metavar="LIST",
        varies=True,
        meaning="Number of database files over which the keys are hash-partitioned.",
    )
    duration_s: float = option(
        duration(0.01),
        "300ms",
        SWEEP,
        "Length of the measured window, of each pass.",
        name="duration",
        metavar="TIME",
        meaning="Length of the measured window, in seconds.",
        unsaid=2.0,
    )
    warmup_s: float = option(
        duration(0.0),
        "100ms",
        SWEEP,
        "Load before the window opens.",
        name="warmup",
        metavar="TIME",
        meaning="Load before the window opens, in seconds; not counted.",
        unsaid=0.5,
    )
    ops: int | None = option(
        whole(1, 10**9), None, SWEEP, "Transactions for each worker, instead of a window."
    )
    arrivals: Arrivals | None = None
    """When operations are due, where they arrive at a rate; None: in a closed loop, one after the other."""
    repeat: int = option(
        whole(1, 1000),
        5,
        SWEEP,
        "Passes over all cases, a trial of each; the median is shown.",
        meaning="Number of trials, each in a pass of its own over all cases.",
        unsaid=1,
    )
    seed: int = option(
        whole(0, (1 << 32) - 1),
        0,
        TRUST,
        "Seed of the random streams; drawn and reported if not given.",
        meaning="Seed of the workers' random streams.",
    )
    verify: str = option(
        choice(*VERIFY_LEVELS),
        "quick",
        TRUST,
        "Proof after each trial: none, quick, full (integrity_check).",
        metavar="LEVEL",
    )
    max_failed: float = option(
        percentage(0.0, 1.0),
        "1%",
        TRUST,
        "Share of the operations that may be given up for a busy database; more exits 1.",
        metavar="SHARE",
        meaning="Share of the operations that may be given up, 0 to 1.",
    )
    settings: Settings = Settings()
    """How every connection is opened."""
    server: Server | None = None
    """Which server keeps the data, and how it keeps transactions apart; None: none does."""
    spec: Any = None
    """What only cases of its experiment have: None stands for what that has by default."""

    def __post_init__(self) -> None:
        if self.spec is None:
            object.__setattr__(self, "spec", face(self.workload).spec())

    json_form: ClassVar[str] = "sqlstress.report.case_json"
    """The module that writes and reads it: the spec stands where its experiment puts it."""

    @property
    def rate(self) -> int:
        """Operations that are due in a second, of all processes together; 0: a closed loop."""
        return self.arrivals.rate if self.arrivals else 0

    @property
    def rate_label(self) -> str:
        """The rate in words, "2,000/s"; nothing of a closed loop."""
        return f"{self.rate:,}/s" if self.rate else ""

    @property
    def label(self) -> str:
        """The case in a few words, to tell it from the others of its plan."""
        return label(self)


def _common() -> Mapping[str, Option]:
    known = {one.name: one for cls in (Case, Arrivals, Settings) for one in options_of(cls).values()}
    # Drawn where it is not given, so that a plan's seed is one of its own.
    return {**known, "seed": replace(known["seed"], default=None)}


COMMON = _common()
"""The options that several experiments have, with the main one's defaults, by name."""

SETTINGS = tuple(one.name for one in options_of(Settings).values())
"""The names of the options that say how every connection is opened."""


def common(*names: str) -> tuple[Option, ...]:
    """Return common options by their names."""
    return tuple(COMMON[name] for name in names)


def otherwise(name: str, **changes: Any) -> Option:
    """Return a common option, with what an experiment has otherwise."""
    return replace(COMMON[name], **changes)


# Traits: what a case is, setting by setting, in the words of the options. By them cases are told apart.


UNSET = "default"
"""A setting that is left to the library."""


def traits(case: Case) -> dict[str, str]:
    """Return driver, settings, and the options of what only cases of its experiment have, by option."""
    told = {"driver": case.driver, **_of(case.settings), **_of(case.spec)}
    return {**told, "busy-timeout": format_duration(case.settings.busy_timeout_ms / 1000)}


def layout(case: Case) -> str:
    """Return over how many files, or tables, a case spreads its data."""
    return f"{case.buckets} {bucket(case.driver)}{'s' * (case.buckets != 1)}"


def _of(part: Any) -> dict[str, str]:
    return {one.name: words(getattr(part, field)) for field, one in options_of(cast(Any, type(part))).items()}


def words(value: Any) -> str:
    """Return a value as it is given: on, 0.5, full, foreign_keys=on."""
    if value is None or value == ():
        return UNSET
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        if isinstance(value[0], str):
            return shlex.join(value)
        return ", ".join("=".join(map(str, one)) for one in value)
    return str(value)
