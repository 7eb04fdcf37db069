"""The options of a case: name, how its value is read, what it means. Flags and TOML plans share them.

Every `parse` takes what the command line (a string) or TOML (a string, number, boolean or list)
gives, and raises ValueError with a sentence that says what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlstress import case as cases
from sqlstress.units import parse_duration

Parse = Callable[[Any], Any]

DAY_S = 86_400.0
_PRAGMA = re.compile(r"([a-z_]+)=([-+.\w]+)", re.IGNORECASE)
_OWN_PRAGMAS = {
    "journal_mode",
    "synchronous",
    "fullfsync",
    "wal_autocheckpoint",
    "page_size",
    "cache_size",
    "mmap_size",
    "busy_timeout",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a case."""

    name: str
    """Its long name, without dashes: the key in a plan."""
    parse: Parse
    default: Any
    """What stands for it when it is not given, unparsed; None: unset."""
    group: str
    """Under which heading `--help` shows it."""
    help: str
    short: str = ""
    metavar: str = "N"
    multiple: bool = False


def whole(least: int, most: int) -> Parse:
    """Return a parser of whole numbers within bounds."""

    def parse(value: Any) -> int:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        if isinstance(value, str) and re.fullmatch(r"[-+]?\d{1,19}", value.replace("_", "").strip()):
            number = int(value)
        if number is None or not least <= number <= most:
            raise ValueError(f"{value!r} is not a whole number from {least:,} to {most:,}")
        return number

    return parse


def ratio(value: Any) -> float:
    """Read a share: 0 to 1."""
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = -1.0
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise ValueError(f"{value!r} is not a share from 0 to 1")
    return share


def choice(*names: str) -> Parse:
    """Return a parser of one of these names."""

    def parse(value: Any) -> str:
        if isinstance(value, str) and value.lower() in names:
            return value.lower()
        raise ValueError(f"{value!r} is not one of {', '.join(names)}")

    return parse


def switch(value: Any) -> bool:
    """Read on or off."""
    words = {"on": True, "off": False, "true": True, "false": False, "1": True, "0": False}
    found = words.get(str(value).lower())
    if found is None:
        raise ValueError(f"{value!r} is neither on nor off")
    return found


def duration(least_s: float) -> Parse:
    """Return a parser of durations up to a day, in seconds."""

    def parse(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"{value!r} is not a duration: write 500ms, 2s, 2m or plain seconds")
        seconds = parse_duration(str(value))
        if not least_s <= seconds <= DAY_S:
            raise ValueError(f"{value!r} is not a duration from {least_s:g} s to a day")
        return seconds

    return parse


def ranges(most: int) -> Parse:
    """Return a parser of "4", "1-8", "1,2,4-6": ascending as written, without repetitions."""

    def parse(value: Any) -> tuple[int, ...]:
        parts = value if isinstance(value, list) else str(value).split(",")
        if isinstance(value, bool) or not parts:
            raise ValueError(f"{value!r} is not a list of numbers: write 4, 1-8 or 1,2,4-6")
        numbers = dict.fromkeys(number for part in parts for number in _range(str(part).strip(), most))
        return tuple(numbers)

    return parse


def _range(text: str, most: int) -> range:
    found = re.fullmatch(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?", text)
    if not found:
        raise ValueError(f"{text!r} is not a number or a range: write 4, 1-8 or 1,2,4-6")
    first, last = int(found[1]), int(found[2] or found[1])
    if not 1 <= first <= last <= most:
        raise ValueError(f"{text!r} does not lie within 1-{most}, or runs backwards")
    return range(first, last + 1)


def power_of_two(least: int, most: int) -> Parse:
    """Return a parser of powers of two."""

    def parse(value: Any) -> int:
        number = int(whole(1, most)(value))
        if number < least or number & (number - 1):
            raise ValueError(f"{value!r} is not a power of two from {least} to {most}")
        return number

    return parse


def pragma(value: Any) -> tuple[str, str]:
    """Read NAME=VALUE."""
    found = _PRAGMA.fullmatch(str(value).strip())
    if not found:
        raise ValueError(f"{value!r} is not NAME=VALUE with a plain word or number")
    name = found[1].lower()
    if name in _OWN_PRAGMAS:
        raise ValueError(f"{name} has an option of its own: --{name.replace('_', '-')}")
    return name, found[2]


def pragmas(value: Any) -> tuple[tuple[str, str], ...]:
    """Read several NAME=VALUE."""
    return tuple(pragma(each) for each in (value if isinstance(value, list | tuple) else [value]))


SWEEP, LOAD, SQLITE, TRUST = "What is swept", "The load", "SQLite", "Trust"
_BIG = 1 << 40

OPTIONS = (
    Option(
        "concurrency",
        ranges(cases.MAX_CONCURRENCY),
        "1-8",
        SWEEP,
        "Processes: 4, 1-8 or 1,2,4-6.",
        "c",
        "LIST",
    ),
    Option(
        "buckets",
        ranges(cases.MAX_BUCKETS),
        "1",
        SWEEP,
        "Files: 1 is one database, n is n hash-partitioned ones; a list measures each.",
        "b",
        "LIST",
    ),
    Option("duration", duration(0.01), "2s", SWEEP, "Length of the measured window.", metavar="TIME"),
    Option("warmup", duration(0.0), "500ms", SWEEP, "Load before the window opens.", metavar="TIME"),
    Option("ops", whole(1, 10**9), None, SWEEP, "Transactions for each worker, instead of a window."),
    Option("repeat", whole(1, 1000), 1, SWEEP, "Trials for each case; the median is shown."),
    Option("read-ratio", ratio, 0.5, LOAD, "Share of gets.", metavar="SHARE"),
    Option(
        "update-ratio",
        ratio,
        0.0,
        LOAD,
        "Share of transactions that read a counter and write it plus one.",
        metavar="SHARE",
    ),
    Option("key-space", whole(1, 10**8), 100_000, LOAD, "Number of keys, all preloaded."),
    Option(
        "distribution", choice(*cases.DISTRIBUTIONS), "uniform", LOAD, "How keys are drawn.", metavar="NAME"
    ),
    Option("key-type", choice(*cases.KEY_TYPES), "int", LOAD, "Type of the keys.", metavar="TYPE"),
    Option("value-size", whole(8, 1 << 20), 8, LOAD, "Bytes in a value, 8 or more.", metavar="BYTES"),
    Option("batch", whole(1, 100_000), 1, LOAD, "Replaces in a transaction."),
    Option(
        "begin",
        choice(*cases.BEGINS),
        "immediate",
        LOAD,
        "How a transaction of several statements begins.",
        metavar="HOW",
    ),
    Option(
        "journal-mode", choice(*cases.JOURNAL_MODES), "wal", SQLITE, "PRAGMA journal_mode.", metavar="MODE"
    ),
    Option("synchronous", choice(*cases.SYNCHRONOUS), "full", SQLITE, "PRAGMA synchronous.", metavar="LEVEL"),
    Option(
        "fullfsync", switch, None, SQLITE, "PRAGMA fullfsync; has an effect on macOS only.", metavar="on|off"
    ),
    Option(
        "wal-autocheckpoint",
        whole(0, 10**9),
        None,
        SQLITE,
        "PRAGMA wal_autocheckpoint; 0 is never.",
        metavar="FRAMES",
    ),
    Option("page-size", power_of_two(512, 65536), None, SQLITE, "PRAGMA page_size.", metavar="BYTES"),
    Option("cache-size", whole(-_BIG, _BIG), None, SQLITE, "PRAGMA cache_size: pages, or KiB below 0."),
    Option("mmap-size", whole(0, _BIG), None, SQLITE, "PRAGMA mmap_size.", metavar="BYTES"),
    Option(
        "pragma",
        pragmas,
        (),
        SQLITE,
        "Any other PRAGMA; may be repeated.",
        metavar="NAME=VALUE",
        multiple=True,
    ),
    Option(
        "busy-timeout",
        duration(0.0),
        "60s",
        SQLITE,
        "How long an operation waits for a lock.",
        metavar="TIME",
    ),
    Option(
        "busy",
        choice(*cases.BUSY_POLICIES),
        "default",
        SQLITE,
        "How it waits: SQLite's own handler, or fair (waits that grow with the workers).",
        metavar="POLICY",
    ),
    Option(
        "driver",
        choice("sqlite3", "apsw", "dry"),
        "sqlite3",
        SQLITE,
        "sqlite3 (standard library), apsw (extra), dry (does nothing: the harness's own ceiling).",
        metavar="NAME",
    ),
    Option(
        "verify",
        choice(*cases.VERIFY_LEVELS),
        "quick",
        TRUST,
        "Proof after each trial: none, quick, full (integrity_check).",
        metavar="LEVEL",
    ),
    Option(
        "preset",
        choice("classic"),
        None,
        TRUST,
        "classic: the published script's measurement.",
        metavar="NAME",
    ),
    Option(
        "seed",
        whole(0, (1 << 32) - 1),
        None,
        TRUST,
        "Seed of the random streams; drawn and reported if not given.",
    ),
)

BY_NAME = {option.name: option for option in OPTIONS}
