"""The options that several experiments have, with the main one's defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlstress.options.option import SQLITE, SWEEP, TRUST, Option, either
from sqlstress.options.parsing import choice, duration, power_of_two, pragmas, ranges, switch, whole
from sqlstress.report import case as cases

_BIG = 1 << 40
_INT = (1 << 31) - 1
"""The largest number of 32 bits: SQLite takes a larger cache_size for 0."""

_COMMON = (
    Option(
        "concurrency",
        ranges(cases.MAX_CONCURRENCY),
        "1-8",
        SWEEP,
        "Processes: 4, 1-8 or 1,2,4-6.",
        "c",
        "LIST",
    ),
    Option("repeat", whole(1, 1000), 1, SWEEP, "Trials for each case; the median is shown."),
    Option(
        "journal-mode",
        choice(*cases.JOURNAL_MODES),
        "wal",
        SQLITE,
        f"PRAGMA journal_mode: {either(cases.JOURNAL_MODES)}.",
        metavar="MODE",
    ),
    Option(
        "synchronous",
        choice(*cases.SYNCHRONOUS),
        "full",
        SQLITE,
        f"PRAGMA synchronous: {either(cases.SYNCHRONOUS)}.",
        metavar="LEVEL",
    ),
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
    Option("cache-size", whole(-_INT, _INT), None, SQLITE, "PRAGMA cache_size: pages, or KiB below 0."),
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
        "How it waits: default (SQLite's own handler) or fair (waits that grow with the workers).",
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
        "seed",
        whole(0, (1 << 32) - 1),
        None,
        TRUST,
        "Seed of the random streams; drawn and reported if not given.",
    ),
)

_BY_NAME = {option.name: option for option in _COMMON}


def common(name: str, **changes: Any) -> Option:
    """Return a common option, with what an experiment has otherwise."""
    return replace(_BY_NAME[name], **changes)
