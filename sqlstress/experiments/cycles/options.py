"""The options of the experiment with cycles."""

from __future__ import annotations

from sqlstress.options.common import common
from sqlstress.options.option import LOAD, SQLITE, SWEEP, Option
from sqlstress.options.parsing import choice, choices, duration, whole

PUBLISHED = ("delete", "delete-tx", "wal", "wal-tx", "wal-tx-off")
"""The published settings: journal; tx: in a transaction; off: without automatic checkpoints."""
SETTINGS = (*PUBLISHED, "wal-off")

CYCLES = (
    Option(
        "settings",
        choices(*SETTINGS),
        ",".join(PUBLISHED),
        SWEEP,
        "Journal delete or wal; tx: in one transaction; off: without checkpoints; wal-off too.",
        metavar="LIST",
    ),
    common("concurrency", default="1"),
    common("repeat"),
    Option("cycles", whole(1, 100_000), 100, LOAD, "Cycles: insert rows, delete all, insert rows."),
    Option("rows", whole(1, 10_000), 5, LOAD, "Rows of each insertion, a statement each."),
    Option(
        "transaction",
        choice("cycle", "run"),
        "run",
        LOAD,
        "What the one transaction of the settings with tx holds: a cycle, or the whole run.",
        metavar="WHAT",
    ),
    Option(
        "timeout",
        duration(0.001),
        "60s",
        LOAD,
        "When a run is given up; the cycles done by then are shown.",
        metavar="TIME",
    ),
    common("synchronous"),
    common("fullfsync"),
    Option(
        "wal-autocheckpoint",
        whole(1, 10**9),
        None,
        SQLITE,
        "PRAGMA wal_autocheckpoint of the settings wal and wal-tx.",
        metavar="FRAMES",
    ),
    common("page-size"),
    common("cache-size"),
    common("mmap-size"),
    common("pragma"),
    common("busy-timeout"),
    common("busy"),
    common("driver"),
    common("verify"),
    common("seed"),
)
