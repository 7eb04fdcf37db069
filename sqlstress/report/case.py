"""Case: one measurement, fully specified. It travels to the workers and into the report unchanged.

What every case has stands here. What only cases of its experiment have is its `spec`, of a type of theirs.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import sqlstress.target as target
from sqlstress.errors import UsageError
from sqlstress.options.dsn import dsn
from sqlstress.options.option import SQLITE, SWEEP, TRUST, Option, option, options_of
from sqlstress.options.parsing import (
    MOST_RATE,
    case_name,
    choice,
    choices,
    duration,
    duration_with_unit,
    either,
    milliseconds,
    not_one_of,
    percentage,
    power_of_two,
    pragmas,
    ranges,
    rates,
    switch,
    whole,
)
from sqlstress.registry import DEFAULT, EXPERIMENTS, format_of
from sqlstress.report.jsonable import member, plain_fields, read_fields, reader, to_plain
from sqlstress.statistics.units import format_duration
from sqlstress.target import driver_help, usual

# When the operations of a case are due, where they arrive at a rate: an open loop.


SPACINGS = ("poisson", "even")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When operations are due: from the common start on, whether or not those before them are done."""

    rate: int = option(
        rates,
        None,
        SWEEP,
        "Open loop: start this many operations per second, all processes together. Write 2000, 500,1000 or "
        "500-2000/500. Without it, each process starts the next operation when the last one ends.",
        metavar="LIST",
        varies=True,
        required=True,
        meaning=f"Operations due per second, all processes together; 1 to {MOST_RATE:,}.",
    )
    spacing: str = option(
        choice(*SPACINGS),
        "poisson",
        SWEEP,
        f"When operations are due: {SPACINGS[0]} (as independent users arrive) or "
        f"{SPACINGS[1]} (at equal distances).",
        name="arrival",
        metavar="HOW",
    )
    latency_limit_s: float | None = option(
        duration_with_unit(0.0001),
        None,
        SWEEP,
        "Skip and count an operation that starts more than this after its due time. Give a unit: 100ms.",
        name="latency-limit",
        metavar="TIME",
        meaning="How late an operation may start, in seconds; a later one is skipped. "
        "None: no operation is skipped.",
    )

    def at(self, rate: int) -> Arrivals:
        """Return the same at another rate."""
        return replace(self, rate=rate)


JOURNAL_MODES = ("wal", "delete", "truncate", "persist", "memory", "off")
KEPT = "kept"
"""Instead of one of them: none is set, the file has the mode that its own program gave it."""
SYNCHRONOUS = ("off", "normal", "full", "extra")
BEGINS = ("deferred", "immediate")
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
        switch, None, SQLITE, "PRAGMA fullfsync. It has an effect on macOS only.", metavar="on|off"
    )
    wal_autocheckpoint: int | None = option(
        whole(0, 10**9),
        None,
        SQLITE,
        "PRAGMA wal_autocheckpoint, in frames. 0 turns automatic checkpoints off.",
        metavar="FRAMES",
    )
    page_size: int | None = option(
        power_of_two(512, 65536),
        None,
        SQLITE,
        "PRAGMA page_size, in bytes.",
        metavar="BYTES",
    )
    cache_size: int | None = option(
        whole(-_INT, _INT), None, SQLITE, "PRAGMA cache_size: pages if positive, KiB if negative."
    )
    mmap_size: int | None = option(
        whole(0, _BIG),
        None,
        SQLITE,
        "PRAGMA mmap_size, in bytes.",
        metavar="BYTES",
    )
    pragmas: tuple[tuple[str, str], ...] = option(
        pragmas,
        (),
        SQLITE,
        "Any other PRAGMA. May be repeated.",
        name="pragma",
        metavar="NAME=VALUE",
        multiple=True,
        meaning="Further PRAGMAs, as (name, value).",
    )
    busy_timeout_ms: int = option(
        milliseconds(0.0),
        "60s",
        SQLITE,
        "How long an operation waits for a lock before it fails: 5s, 500ms or plain seconds.",
        name="busy-timeout",
        metavar="TIME",
        meaning="How long an operation waits for a lock before it fails, in milliseconds.",
    )


# A server that keeps a case's data, and how it keeps transactions apart.


SERVER = "Server"
ISOLATIONS = ("read-committed", "repeatable-read", "serializable")


def target_option(targets: Sequence[str]) -> Any:
    """Return the option that sets some of these targets side by side, as a field."""
    return option(
        choices(*targets),
        None,
        SWEEP,
        f"Compare these targets side by side: a list of {', '.join(targets)}.",
        metavar="LIST",
        meaning="The targets that are measured side by side, each with one driver.",
    )


def anyway_option() -> Any:
    """Return the option that lets a server be loaded wherever it is, as a field."""
    return option(switch, False, SERVER, "Allow a server that is not on this machine.", flag=True)


def isolation(value: Any) -> str:
    """Read a level of isolation; between its words there may be spaces, as in SQL."""
    name = "-".join(value.lower().replace("-", " ").split()) if isinstance(value, str) else ""
    if name not in ISOLATIONS:
        raise not_one_of(value, ISOLATIONS)
    return name


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and how transactions are kept apart there."""

    address: str | None = option(
        dsn,
        None,
        SERVER,
        "PostgreSQL server: postgresql://user@host/database. Without it, sqlstress starts a temporary one.",
        name="dsn",
        metavar="DSN",
        meaning="Address of the server, without its password; null: a temporary server of sqlstress.",
    )
    isolation: str = option(
        isolation,
        "read-committed",
        SERVER,
        f"Isolation level of transactions: {either(ISOLATIONS)}.",
        metavar="LEVEL",
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
        driver_help(usual()),
        metavar="NAME",
        meaning="Name in the registry of drivers.",
    )
    concurrency: int = option(
        ranges(MAX_CONCURRENCY),
        "1-8",
        SWEEP,
        "Number of processes: 4, 1-8 or 1,2,4-6. A list measures each number.",
        short="c",
        metavar="LIST",
        varies=True,
        meaning="Number of worker processes; 0 where it is not known, of published figures.",
    )
    buckets: int = option(
        ranges(MAX_BUCKETS),
        "1",
        SWEEP,
        "Number of buckets: database files over which the keys are hash-partitioned. "
        "A list measures each number.",
        short="b",
        metavar="LIST",
        varies=True,
        meaning="Number of buckets (files, or tables on a server) over which the keys are hash-partitioned.",
    )
    duration_s: float = option(
        duration(0.01),
        "300ms",
        SWEEP,
        "Length of the measured window of each trial: 300ms, 2s or plain seconds.",
        name="duration",
        metavar="TIME",
        meaning="Length of the measured window, in seconds.",
        unsaid=2.0,
    )
    warmup_s: float = option(
        duration(0.0),
        "100ms",
        SWEEP,
        "Length of the unmeasured load before the window.",
        name="warmup",
        metavar="TIME",
        meaning="Load before the window opens, in seconds; not counted.",
        unsaid=0.5,
    )
    ops: int | None = option(
        whole(1, 10**9), None, SWEEP, "Transactions of each process. Replaces --duration."
    )
    arrivals: Arrivals | None = None
    """When operations are due, where they arrive at a rate; None: in a closed loop, one after the other."""
    repeat: int = option(
        whole(1, 1000),
        5,
        SWEEP,
        "Number of passes over all cases, with a trial of each. The table shows the median.",
        meaning="Number of trials, each in a pass of its own over all cases.",
        unsaid=1,
    )
    name: str = option(
        case_name,
        "",
        SWEEP,
        "Name of the case. Cases of a plan that have names are compared, whatever their settings.",
        meaning="Name of the case in its plan; empty if it has none.",
    )
    seed: int = option(
        whole(0, (1 << 32) - 1),
        0,
        TRUST,
        "Seed of all random choices. If not given, it is drawn and reported.",
        meaning="Seed of the workers' random streams.",
    )
    verify: str = option(
        choice(*VERIFY_LEVELS),
        "quick",
        TRUST,
        "Check of the data after each trial: none, quick, or full (with integrity_check).",
        metavar="LEVEL",
    )
    max_failed: float = option(
        percentage(0.0, 1.0),
        "1%",
        TRUST,
        "Share of operations that may fail because the database is busy. Exits 1 if more fail.",
        metavar="SHARE",
        meaning="Share of operations that may fail because the database is busy, 0 to 1.",
    )
    settings: Settings = Settings()
    """How every connection is opened."""
    server: Server | None = None
    """Which server keeps the data, and how it keeps transactions apart; None: none does."""
    spec: Any = None
    """What only cases of its experiment have: None stands for what that has by default."""

    def __post_init__(self) -> None:
        if self.spec is None:
            object.__setattr__(self, "spec", format_of(self.workload).spec())

    def to_plain(self) -> dict[str, Any]:
        """Return the case as JSON-able data: the spec stands where its experiment puts it."""
        common = plain_fields(self, without="spec")
        if self.server is None:
            del common["server"]  # most cases have none, as all had before there were any
        experiment, own = format_of(self.workload), to_plain(self.spec)
        if experiment.key is None:
            return {**common, **own}
        beside = {name: own.pop(name) for name in experiment.top_level_fields}
        return {**common, experiment.key: own, **beside}

    @classmethod
    def from_plain(cls, found: Mapping[str, Any]) -> Case:
        """Read a case. Raises Misfit, or UsageError for what this version does not know."""
        values = read_fields(cls, found, without="spec")
        workload, driver = values.get("workload", DEFAULT), values.get("driver", target.DEFAULT)
        if workload not in EXPERIMENTS:
            raise UsageError(
                f"this sqlstress has no experiment {workload!r:.60}. Use the version that wrote the report."
            )
        if driver not in (*target.drivers(), UNKNOWN_DRIVER):
            raise UsageError(
                f"this sqlstress has no driver {driver!r:.60}. Install the package that brings it, or use "
                "the version that wrote the report."
            )
        settings = found.get("settings")
        if isinstance(settings, Mapping) and settings.get("busy") == "fair":
            raise UsageError(
                "this sqlstress has no --busy fair any more. Use the version that wrote the report."
            )
        experiment = format_of(workload)
        read, key = reader(cast(Any, experiment.spec)), experiment.key
        if key is None:
            return cls(**values, spec=read(found))
        own = {} if found.get(key) is None else found[key]
        if isinstance(own, dict):
            own = {**own, **{name: found[name] for name in experiment.top_level_fields if name in found}}
        return cls(**values, spec=member(read, own, key))

    @property
    def rate(self) -> int:
        """Operations that are due in a second, of all processes together; 0: a closed loop."""
        return self.arrivals.rate if self.arrivals else 0

    @property
    def rate_label(self) -> str:
        """The rate in words, "2,000/s"; nothing of a closed loop."""
        return f"{self.rate:,}/s" if self.rate else ""


COMMON = {one.name: one for cls in (Case, Arrivals, Settings) for one in options_of(cls).values()}
"""The options that several experiments have, with the main one's defaults, by name."""
# Drawn where it is not given, so that a plan's seed is one of its own.
COMMON["seed"] = replace(COMMON["seed"], default=None)

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
    """Return the values that tell a case from others in its table, by option.

    A named case has its name only. Other cases have their driver, settings and spec.
    """
    if case.name:
        return {"name": case.name}
    told = {"driver": case.driver, **_of(case.settings), **_of(case.spec)}
    return {**told, "busy-timeout": format_duration(case.settings.busy_timeout_ms / 1000)}


def layout(case: Case) -> str:
    """Return over how many buckets a case spreads its data."""
    return f"{case.buckets} bucket{'s' * (case.buckets != 1)}"


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
