"""The options of crash tests."""

from __future__ import annotations

from sqlstress import case as cases
from sqlstress.options.common import common
from sqlstress.options.option import LOAD, Option
from sqlstress.parsing import choice, whole

KILLING = "Killing"
MOST_ROUNDS = 1_000_000
MOST_WRITERS = 256
MOST_FILES = 1000

CRASH = (
    Option(
        "rounds",
        whole(1, MOST_ROUNDS),
        100,
        KILLING,
        "Rounds: in each all writers are killed, and then the files examined.",
    ),
    Option("concurrency", whole(1, MOST_WRITERS), 3, KILLING, "Writers, each a process.", "c"),
    Option("buckets", whole(1, MOST_FILES), 1, KILLING, "Files; a transaction writes to one of them.", "b"),
    Option("batch", whole(1, 1000), 4, LOAD, "Rows of a transaction, beside the one that logs it."),
    Option(
        "value-size", whole(8, 1 << 16), 256, LOAD, "Bytes in the value of a row, 8 or more.", metavar="BYTES"
    ),
    Option("begin", choice(*cases.BEGINS), "immediate", LOAD, "How a transaction begins.", metavar="HOW"),
    common("journal-mode"),
    common("synchronous"),
    common("fullfsync"),
    common(
        "wal-autocheckpoint",
        default=100,
        help="PRAGMA wal_autocheckpoint; 0 is never. Few frames: kills strike checkpoints too.",
    ),
    common("page-size"),
    common("cache-size"),
    common("mmap-size"),
    common("pragma"),
    common("busy-timeout"),
    common("busy"),
    common("driver", parse=choice("sqlite3", "apsw"), help="sqlite3 (standard library) or apsw (extra)."),
    common("seed"),
)
