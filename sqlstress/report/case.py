"""Case: the full specification of a measurement, given unchanged to workers and the report.

A field made by `option(...)` is also an option of the command line, with the same default. `meaning` is the
field's description in the JSON Schema. A target (SQLite or a server) stores the data, and a driver is a way
to use a target from Python. A bucket is one of the database files over which the keys are partitioned. A spec
is the options that only one experiment has. In an open loop, operations are due at a fixed rate. In a closed
loop, each operation of a process starts after the last.
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
    MAX_RATE,
    case_name,
    choice,
    choices,
    duration,
    duration_with_unit,
    join_alternatives,
    milliseconds,
    percentage,
    power_of_two,
    pragmas,
    ranges,
    rates,
    switch,
    unknown_name_error,
    whole_number,
)
from sqlstress.registry import DEFAULT, EXPERIMENTS, format_of
from sqlstress.report.jsonable import convert_member, plain_fields, read_fields, reader, to_plain
from sqlstress.statistics.units import format_duration
from sqlstress.target import driver_help, usual

ARRIVAL_SPACINGS = ("poisson", "even")
"""Spacings of due times: random (a Poisson process, like independent users), or even."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rule for the due times of operations in an open loop, independent of earlier operations."""

    rate: int = option(
        rates,
        None,
        SWEEP,
        "Open loop: start this many operations per second, all processes together. Write 2000, 500,1000 or "
        "500-2000/500. Without it, each process starts the next operation when the last one ends.",
        metavar="LIST",
        varies=True,
        required=True,
        meaning=f"Operations due per second, all processes together; 1 to {MAX_RATE:,}.",
    )
    spacing: str = option(
        choice(*ARRIVAL_SPACINGS),
        "poisson",
        SWEEP,
        f"When operations are due: {ARRIVAL_SPACINGS[0]} (as independent users arrive) or "
        f"{ARRIVAL_SPACINGS[1]} (at equal distances).",
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
        meaning="Maximum delay of the start of an operation, in seconds; later operations are skipped. "
        "None: no operation is skipped.",
    )

    def at(self, rate: int) -> Arrivals:
        """Return a copy of the rule with another `rate`, in operations per second."""
        return replace(self, rate=rate)


JOURNAL_MODES = ("wal", "delete", "truncate", "persist", "memory", "off")
KEEP_JOURNAL_MODE = "kept"
"""Value of `journal_mode` if sqlstress keeps the mode set by the user's program."""
SYNCHRONOUS = ("off", "normal", "full", "extra")
BEGIN_MODES = ("deferred", "immediate")
VERIFY_LEVELS = ("none", "quick", "full")

UNKNOWN_DRIVER = "unknown"
"""Value of `driver` for figures that others have published without the name of the driver."""

MAX_CONCURRENCY = 1024
MAX_BUCKETS = 10_000
_BIG = 1 << 40
_INT = (1 << 31) - 1
"""Largest signed 32-bit integer. SQLite treats a larger cache_size as 0."""


@dataclass(frozen=True, slots=True)
class Settings:
    """SQLite settings of every connection. None means the default of the SQLite library."""

    journal_mode: str = option(
        choice(*JOURNAL_MODES),
        "wal",
        SQLITE,
        f"PRAGMA journal_mode: {join_alternatives(JOURNAL_MODES)}.",
        metavar="MODE",
    )
    synchronous: str | None = option(
        choice(*SYNCHRONOUS),
        "full",
        SQLITE,
        f"PRAGMA synchronous: {join_alternatives(SYNCHRONOUS)}.",
        metavar="LEVEL",
    )
    fullfsync: bool | None = option(
        switch, None, SQLITE, "PRAGMA fullfsync. It has an effect on macOS only.", metavar="on|off"
    )
    wal_autocheckpoint: int | None = option(
        whole_number(0, 10**9),
        None,
        SQLITE,
        "PRAGMA wal_autocheckpoint, in frames. 0 turns automatic checkpoints off.",
        metavar="FRAMES",
    )
    page_size: int | None = option(
        power_of_two(512, 65536), None, SQLITE, "PRAGMA page_size, in bytes.", metavar="BYTES"
    )
    cache_size: int | None = option(
        whole_number(-_INT, _INT), None, SQLITE, "PRAGMA cache_size: pages if positive, KiB if negative."
    )
    mmap_size: int | None = option(
        whole_number(0, _BIG), None, SQLITE, "PRAGMA mmap_size, in bytes.", metavar="BYTES"
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
        meaning="Time limit of an operation's wait for a lock before it fails, in milliseconds.",
    )


SERVER = "Server"
ISOLATIONS = ("read-committed", "repeatable-read", "serializable")


def target_option(targets: Sequence[str]) -> Any:
    """Return a dataclass field for an option that selects which of `targets` to compare."""
    return option(
        choices(*targets),
        None,
        SWEEP,
        f"Compare these targets side by side: a list of {', '.join(targets)}.",
        metavar="LIST",
        meaning="Compared targets, each with one driver.",
    )


def anyway_option() -> Any:
    """Return a dataclass field for --anyway, which allows a load on a server on another machine."""
    return option(switch, False, SERVER, "Allow a server that is not on this machine.", flag=True)


def isolation(value: Any) -> str:
    """Parse an isolation level, such as "Read Committed". Raise ValueError if it is not in ISOLATIONS."""
    name = "-".join(value.lower().replace("-", " ").split()) if isinstance(value, str) else ""
    if name not in ISOLATIONS:
        raise unknown_name_error(value, ISOLATIONS)
    return name


@dataclass(frozen=True, slots=True)
class Server:
    """Database server that stores the data, and the isolation level of transactions."""

    address: str | None = option(
        dsn,
        None,
        SERVER,
        "PostgreSQL server: postgresql://user@host/database. Without it, sqlstress starts a temporary one.",
        name="dsn",
        metavar="DSN",
        meaning="Address of the server, without its password; null means a temporary server of sqlstress.",
    )
    isolation: str = option(
        isolation,
        "read-committed",
        SERVER,
        f"Isolation level of transactions: {join_alternatives(ISOLATIONS)}.",
        metavar="LEVEL",
    )


@dataclass(frozen=True, slots=True)
class Case:
    """Full specification of a measurement."""

    workload: str = DEFAULT
    """Name of the experiment, such as kv."""
    driver: str = option(
        choice(*usual()),
        target.DEFAULT,
        SQLITE,
        driver_help(usual()),
        metavar="NAME",
        meaning="Name of the driver.",
    )
    concurrency: int = option(
        ranges(MAX_CONCURRENCY),
        "1-8",
        SWEEP,
        "Number of processes: 4, 1-8 or 1,2,4-6. A list measures each number.",
        short="c",
        metavar="LIST",
        varies=True,
        meaning="Number of worker processes; 0 if unknown, as in some published figures.",
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
        whole_number(1, 10**9), None, SWEEP, "Transactions of each process. Replaces --duration."
    )
    arrivals: Arrivals | None = None
    """Due times of operations in an open loop; None for a closed loop (each starts after the last)."""
    repeat: int = option(
        whole_number(1, 1000),
        5,
        SWEEP,
        "Number of passes over all cases, with a trial of each. The table shows the median.",
        meaning="Number of trials, each in a separate pass over all cases.",
        unsaid=1,
    )
    name: str = option(
        case_name,
        "",
        SWEEP,
        "Name of the case. Cases of a plan that have names are compared, whatever their settings.",
        meaning="Name of the case in its plan; empty if the case has no name.",
    )
    seed: int = option(
        whole_number(0, (1 << 32) - 1),
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
    """SQLite settings of every connection."""
    server: Server | None = None
    """Database server that stores the data; None without a server."""
    spec: Any = None
    """Object with the options that only cases of this experiment have; None for their defaults."""

    def __post_init__(self) -> None:
        if self.spec is None:
            object.__setattr__(self, "spec", format_of(self.workload).spec())

    def to_plain(self) -> dict[str, Any]:
        """Return the case as data for JSON.

        The options in `spec` are in a nested object: {"workload": "sql", ..., "sql": {...}}. Its key is `key`
        of the experiment. Fields in `top_level_fields` of the experiment are at the top level, and so are all
        fields if the experiment has no key.
        """
        common = plain_fields(self, without="spec")
        if self.server is None:
            del common["server"]  # the key was added later, and most cases do not need it
        experiment, spec = format_of(self.workload), to_plain(self.spec)
        if experiment.key is None:
            return {**common, **spec}
        top_level = {name: spec.pop(name) for name in experiment.top_level_fields}
        return {**common, experiment.key: spec, **top_level}

    @classmethod
    def from_plain(cls, found: Mapping[str, Any]) -> Case:
        """Return the case of a JSON object. Raise InvalidField if a field is wrong.

        Raise UsageError if this version does not support a value, such as an unknown driver.
        """
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
        spec = {} if found.get(key) is None else found[key]
        if isinstance(spec, dict):
            spec = {**spec, **{name: found[name] for name in experiment.top_level_fields if name in found}}
        return cls(**values, spec=convert_member(read, spec, key))

    @property
    def rate(self) -> int:
        """Number of operations due per second, all processes together; 0 for a closed loop."""
        return self.arrivals.rate if self.arrivals else 0

    @property
    def rate_label(self) -> str:
        """Rate as text, such as "2,000/s"; empty for a closed loop."""
        return f"{self.rate:,}/s" if self.rate else ""


COMMON = {option.name: option for cls in (Case, Arrivals, Settings) for option in options_of(cls).values()}
"""Options that the cases of all experiments have, by name. Experiments change defaults with `otherwise`."""
# Without a seed, each measurement draws a random seed, so that it makes other random choices.
COMMON["seed"] = replace(COMMON["seed"], default=None)

SETTINGS = tuple(option.name for option in options_of(Settings).values())
"""Names of the options for SQLite settings, which are the fields of `Settings`."""


def common(*names: str) -> tuple[Option, ...]:
    """Return the common options with these names. Raise KeyError for an unknown name."""
    return tuple(COMMON[name] for name in names)


def otherwise(name: str, **changes: Any) -> Option:
    """Return a copy of the common option `name` with changed attributes, such as another default."""
    return replace(COMMON[name], **changes)


DEFAULT_TEXT = "default"
"""Text for an option that is not set, so that the library's default applies."""


def traits(case: Case) -> dict[str, str]:
    """Return the option values that distinguish a case from others in a table, as text by option name.

    These are the driver, the settings and the spec. A case with a name is distinguished by the name alone.
    """
    if case.name:
        return {"name": case.name}
    values = {"driver": case.driver, **_option_texts(case.settings), **_option_texts(case.spec)}
    return {**values, "busy-timeout": format_duration(case.settings.busy_timeout_ms / 1000)}


def layout(case: Case) -> str:
    """Return a case's number of buckets (database files) as text: "20 buckets"."""
    return f"{case.buckets} bucket{'s' * (case.buckets != 1)}"


def _option_texts(part: Any) -> dict[str, str]:
    options = options_of(cast(Any, type(part)))
    return {option.name: words(getattr(part, field)) for field, option in options.items()}


def words(value: Any) -> str:
    """Return an option's value as text, such as "on" or "0.5"; DEFAULT_TEXT for None."""
    if value is None or value == ():
        return DEFAULT_TEXT
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        if isinstance(value[0], str):
            return shlex.join(value)
        return ", ".join("=".join(map(str, pair)) for pair in value)
    return str(value)
