"""The options of a case: name, how its value is read, what it means. Flags and TOML plans share them.

Every `parse` takes what the command line (a string) or TOML (a string, number, boolean or list)
gives, and raises ValueError with a sentence that says what would be right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlstress import case as cases
from sqlstress.parsing import Parse, choice, duration, power_of_two, pragmas, ranges, ratio, switch, whole


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
