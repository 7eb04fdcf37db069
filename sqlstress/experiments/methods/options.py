"""The options of the experiment with methods."""

from __future__ import annotations

from sqlstress.options.common import common
from sqlstress.options.option import LOAD, SWEEP, Option
from sqlstress.options.parsing import choices, duration, ranges, switch, whole
from sqlstress.report import parts as experiments

MOST_ROWS = 1_000_000
MOST_SAMPLES = 3000

METHODS = (
    Option(
        "phase",
        choices(*experiments.PHASES),
        ",".join(experiments.PHASES),
        SWEEP,
        "What is done: insert samples, allocate results, query pairs.",
        metavar="LIST",
    ),
    Option(
        "method",
        choices(*map(str.lower, experiments.METHODS)),
        None,
        SWEEP,
        f"Of {', '.join(experiments.METHODS)}: only these; WAL and TSC come with each as published.",
        metavar="LIST",
    ),
    Option(
        "driver",
        choices("peewee", "sqlite3", "apsw"),
        "peewee,sqlite3",
        SWEEP,
        "Bindings: peewee, sqlite3 (standard library, below Peewee too), apsw (extra).",
        metavar="LIST",
    ),
    common("concurrency", default="1", help="Processes at once, each with a range of its own: 4 or 1,2,4."),
    Option(
        "scale",
        ranges(MOST_ROWS),
        None,
        SWEEP,
        "Samples to insert, samples to pair or pairs to query, of one --phase; else a choice of the "
        "published ones.",
        metavar="LIST",
    ),
    Option("full", switch, False, SWEEP, "All published scales.", flag=True),
    common("repeat"),
    Option(
        "timeout",
        duration(0.01),
        None,
        LOAD,
        "When a cell is given up; if not told 2.6s, and 10s for queries and SPC.",
        metavar="TIME",
    ),
    Option(
        "samples",
        whole(2, MOST_SAMPLES),
        500,
        LOAD,
        "Samples of which the table that is queried holds every pair.",
    ),
    Option("chunk", whole(1, MOST_ROWS), 1000, LOAD, "Rows of each statement of BLK/n.", metavar="ROWS"),
    Option(
        "as-published",
        switch,
        False,
        LOAD,
        "Show the summary of insertions also as published, which mixes two phases.",
        flag=True,
    ),
    common("synchronous"),
    common("fullfsync"),
    common("wal-autocheckpoint"),
    common("page-size"),
    common("cache-size"),
    common("mmap-size"),
    common("pragma"),
    common("busy-timeout"),
    common("verify"),
    common("seed"),
)
