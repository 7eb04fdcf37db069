"""The options of crash tests."""

from __future__ import annotations

from sqlstress.options.common import common
from sqlstress.options.option import LOAD, Option, either
from sqlstress.options.parsing import choice, switch, whole
from sqlstress.report import case as cases

KILLING = "Killing"
POWER = "Power cuts"
MOST_ROUNDS = MOST_IMAGES = 1_000_000
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
    Option(
        "concurrency",
        whole(1, MOST_WRITERS),
        3,
        KILLING,
        "Writers, each a process; with --power connections to each file.",
        "c",
    ),
    Option("buckets", whole(1, MOST_FILES), 1, KILLING, "Files; a transaction writes to one of them.", "b"),
    Option(
        "power",
        switch,
        False,
        POWER,
        "Cut the power, instead of killing: images of the disk as it could be are checked (needs apsw).",
        flag=True,
    ),
    Option(
        "matrix",
        switch,
        False,
        POWER,
        "The same for every journal mode with every level of synchronous, as a table.",
        flag=True,
    ),
    Option("images", whole(100, MOST_IMAGES), 2000, POWER, "Images of each configuration."),
    Option(
        "disk",
        choice("powersafe", "spoiling"),
        "powersafe",
        POWER,
        "spoiling: a sector that was being written at the cut may hold anything.",
        metavar="KIND",
    ),
    Option(
        "psow",
        switch,
        "on",
        POWER,
        "Whether SQLite is told that the disk is powersafe; it is, if you don't open with psow=0.",
        metavar="on|off",
    ),
    Option("batch", whole(1, 1000), 4, LOAD, "Rows of a transaction, beside the one that logs it."),
    Option(
        "value-size", whole(8, 1 << 16), 256, LOAD, "Bytes in the value of a row, 8 or more.", metavar="BYTES"
    ),
    Option(
        "begin",
        choice(*cases.BEGINS),
        "immediate",
        LOAD,
        f"How a transaction begins: {either(cases.BEGINS)}.",
        metavar="HOW",
    ),
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
