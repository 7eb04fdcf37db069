"""The options of the experiment with primary keys."""

from __future__ import annotations

from sqlstress.options.common import common
from sqlstress.options.option import LOAD, SWEEP, Option, either
from sqlstress.options.parsing import choice, choices, switch, whole
from sqlstress.report import case as cases
from sqlstress.report import parts as experiments

QUICK_SCHEMAS = "id-rowid,no-key"

KEYS = (
    common("concurrency", default="4"),
    Option(
        "schema",
        choices(*experiments.SCHEMAS),
        QUICK_SCHEMAS,
        SWEEP,
        f"Schemas of the table of picks: some of {', '.join(experiments.SCHEMAS)}.",
        metavar="LIST",
    ),
    Option(
        "full",
        switch,
        False,
        SWEEP,
        "All schemas, for all types of identifiers.",
        flag=True,
    ),
    Option(
        "id-type",
        choices(*experiments.ID_TYPES),
        ",".join(experiments.ID_TYPES),
        SWEEP,
        "Types of identifiers.",
        metavar="LIST",
    ),
    Option(
        "made-by",
        choices(*experiments.ID_MAKERS),
        "python",
        SWEEP,
        "Where a pick's own id is made: python, or sqlite (a registered function).",
        metavar="LIST",
    ),
    common("repeat"),
    Option("users", whole(1, 10**6), 1000, LOAD, "Users, each one transaction."),
    Option("picks", whole(1, 10**5), 100, LOAD, "Items that a user picks, give or take a tenth."),
    Option("items", whole(1, 10**6), 10_000, LOAD, "Items to pick from."),
    Option(
        "begin",
        choice(*cases.BEGINS),
        "deferred",
        LOAD,
        f"How a transaction begins: {either(cases.BEGINS)}.",
        metavar="HOW",
    ),
    common("journal-mode"),
    common("synchronous", default="normal"),
    common("fullfsync"),
    common("wal-autocheckpoint"),
    common("page-size"),
    common("cache-size"),
    common("mmap-size"),
    common("pragma", help="Any other PRAGMA; may be repeated. foreign_keys is on unless it is given."),
    common("busy-timeout"),
    common("busy"),
    common("driver"),
    common("verify"),
    common("seed"),
)
