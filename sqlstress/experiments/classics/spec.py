"""Options of `sqlstress methods`, `keys` and `cycles`. Their values make up a case, a row of the report.

`sqlstress methods` has two tables: sample (paths of files) and result (a number for each pair of samples).
The scale of a case is its number of samples or pairs. Its method is the way to write or query the rows:

- 1b1 (one by one): one row per statement
- BLK (bulk): one statement for all rows, with a parameter for each value; BLK/n: a statement for n rows
- JSON: one statement for all rows, which are in one parameter, a JSON list
- SPC (specific): one statement that makes the pairs of samples itself, by a join
- "1b1 + WAL": in journal mode WAL; "1b1 + TSC": with all statements in one transaction

`sqlstress keys` inserts picks: rows that link a user with an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

from sqlstress.options.option import LOAD, SWEEP, option
from sqlstress.options.parsing import (
    choice,
    choices,
    duration,
    join_alternatives,
    ranges,
    switch,
    whole_number,
)
from sqlstress.report.case import BEGIN_MODES, Case

# `sqlstress methods`.


PHASES = ("insert", "allocate", "query")
METHOD_NAMES = ("1b1", "BLK", "BLK/n", "JSON", "SPC")
MOST_ROWS = 1_000_000
MOST_SAMPLES = 1500


@dataclass(frozen=True, slots=True)
class Method:
    """Case of `sqlstress methods`: a way to write or query samples (files) or results (numbers for pairs)."""

    phase: str
    """Work: "insert" samples, "allocate" (insert a result for each pair of samples) or "query" results."""
    name: str
    """Method: "1b1" (one row per statement), "BLK" (all rows), "BLK/n" (n rows), "JSON" or "SPC" (a join)."""
    transaction: bool
    """Whether all statements are in one transaction. If so, reports add "TSC" to the method: "1b1 + TSC"."""
    scale: int
    """Number of samples (phases "insert" and "allocate") or number of pairs of samples (phase "query")."""
    timeout_s: float = option(
        duration(0.01),
        "2.6s",
        LOAD,
        "Stop a measurement between two statements after this time.",
        name="timeout",
        metavar="TIME",
        meaning="Time of work after which the measurement stops, in seconds.",
    )
    samples: int = 300
    """Number of samples in the table before a "query". Each pair of them has a result. Default: 300."""
    chunk: int = 1000
    """Number n of rows per statement, if `name` is "BLK/n". Default: 1000."""

    @property
    def rows(self) -> int:
        """Number of rows to write or read: 45 pairs for the scale 10 in the phase "allocate"."""
        return self.scale * (self.scale - 1) // 2 if self.phase == "allocate" else self.scale

    @property
    def sets(self) -> tuple[int, int]:
        """Sizes of two sets of samples, such as (40, 50). Each of the 2000 pairs between them is queried."""
        lower = next((size for size in range(isqrt(self.scale), 0, -1) if self.scale % size == 0), 1)
        return lower, self.scale // lower


@dataclass(frozen=True, slots=True)
class MethodsSelection:
    """Options of `sqlstress methods` that select which cases to measure. Cases do not store them."""

    phase: tuple[str, ...] = option(
        choices(*PHASES),
        ",".join(PHASES),
        SWEEP,
        "Work to measure: insert (samples), allocate (results), query (pairs).",
        metavar="LIST",
    )
    method: tuple[str, ...] | None = option(
        choices(*map(str.lower, METHOD_NAMES)),
        None,
        SWEEP,
        f"Methods to measure: a list of {', '.join(METHOD_NAMES)}. Each includes its published WAL and "
        "TSC variants.",
        metavar="LIST",
    )
    scale: tuple[int, ...] | None = option(
        ranges(MOST_ROWS),
        None,
        SWEEP,
        "Samples to insert, samples to pair, or pairs to query. Needs a single --phase. Default: some of the "
        "published scales.",
        metavar="LIST",
    )
    full: bool = option(switch, False, SWEEP, "Measure all published scales.", flag=True)


def tricks_of(case: Case) -> str:
    """Return a method's full name: "1b1 + WAL + TSC" is 1b1 in journal mode WAL and one transaction (TSC)."""
    parts = [case.spec.name, *["TSC"] * case.spec.transaction]
    parts[1:1] = ["WAL"] * (case.settings.journal_mode == "wal")
    return " + ".join(parts)


REASONS = {"timeout": "timed out", "limit": "met a limit"}
"""Words for outcomes of a case. After such an outcome, otherwise equal cases with more rows are skipped."""


class Scales(NamedTuple):
    """Scales (numbers of samples or pairs) at which methods are measured in a phase, such as "query"."""

    phase: str
    methods: tuple[str, ...]
    """Methods that are measured at these scales: "1b1 + WAL" is 1b1 (one row per statement) in WAL mode."""
    published: Sequence[int]
    """Scales in the article that the experiment repeats. The option --full measures all of them."""
    chosen: Sequence[int]
    """Scales that are measured by default: without the options --full and --scale."""


_INSERTED = (100, 1000, 10_000, 100_000)
_PAIRED_ROW_BY_ROW = (10, 30, 50, 70, 90)
_PAIRED = range(100, 1001, 50)
_QUERIED = (100, 1000, 2000, 4000, 8000, *range(10_000, 14_001, 1000))
SCALES = (
    Scales("insert", ("1b1", "1b1 + WAL"), _INSERTED, (100,)),
    Scales("insert", ("1b1 + TSC",), _INSERTED, (100, 10_000)),
    Scales("insert", ("1b1 + WAL + TSC", "BLK", "BLK/n + TSC", "JSON"), _INSERTED, (10_000,)),
    Scales("allocate", ("1b1", "1b1 + WAL"), _PAIRED_ROW_BY_ROW, (10,)),
    Scales("allocate", ("1b1 + TSC",), _PAIRED_ROW_BY_ROW, (10, 90)),
    Scales("allocate", ("1b1 + WAL + TSC",), _PAIRED, (100,)),
    Scales("allocate", ("BLK",), _PAIRED, (100, 450)),
    Scales("allocate", ("BLK/n + TSC",), _PAIRED, (100, 300)),
    Scales("allocate", ("JSON",), _PAIRED, (300,)),
    Scales("allocate", ("SPC", "SPC + WAL"), range(100, 1301, 100), (300,)),
    Scales("query", ("BLK",), _QUERIED, (100, 2000)),
    Scales("query", ("1b1", "JSON", "SPC"), _QUERIED, (2000,)),
    Scales("query", ("1b1 + WAL", "JSON + WAL", "SPC + WAL"), _QUERIED, (2000,)),
)


# `sqlstress keys`.


SCHEMAS = ("id-rowid", "id-norowid", "pair-norowid", "no-key", "pair-rowid")
ID_TYPES = ("int", "uuid4", "ulid", "uuid7")


@dataclass(frozen=True, slots=True)
class Picks:
    """Case (row) of `sqlstress keys`: users pick items. One transaction inserts all picks of a user."""

    schema: str = option(
        choices(*SCHEMAS),
        "id-rowid,no-key",
        SWEEP,
        f"Schemas of the table of picks: a list of {', '.join(SCHEMAS)}.",
        metavar="LIST",
        varies=True,
        meaning="Name of the schema of the table of picks.",
        required=True,
    )
    id_type: str = option(
        choices(*ID_TYPES),
        ",".join(ID_TYPES),
        SWEEP,
        f"Types of the primary keys: a list of {', '.join(ID_TYPES)}.",
        metavar="LIST",
        varies=True,
        meaning="What identifies users, items and, where they have an id of their own, picks.",
        required=True,
    )
    users: int = option(whole_number(1, 10**6), 1000, LOAD, "Number of users. Each is one transaction.")
    picks: int = option(whole_number(1, 10**5), 100, LOAD, "Items that a user picks, give or take 10%.")
    items: int = option(whole_number(1, 10**6), 10_000, LOAD, "Number of items to pick from.")
    begin: str = option(
        choice(*BEGIN_MODES),
        "deferred",
        LOAD,
        f"BEGIN of each transaction: {join_alternatives(BEGIN_MODES)}.",
        metavar="HOW",
    )

    @property
    def own_id(self) -> bool:
        """Whether the table of picks has a column with an id; if not, user and item identify a pick."""
        return self.schema.startswith("id-")

    @property
    def most_picks(self) -> int:
        """Maximum number of items that a user picks: 10% more than `picks`, such as 110 for 100."""
        return self.picks + self.picks // 10


@dataclass(frozen=True, slots=True)
class KeysSelection:
    """Options of `sqlstress keys` that select which cases to measure. Cases do not store them."""

    full: bool = option(switch, False, SWEEP, "Measure all schemas and types.", flag=True)


# `sqlstress cycles`.


PUBLISHED = ("delete", "delete-tx", "wal", "wal-tx", "wal-tx-off")
"""Default settings, from an article: journal mode, "tx" (one transaction), "off" (no auto-checkpoints)."""
SETTINGS = (*PUBLISHED, "wal-off")


@dataclass(frozen=True, slots=True)
class Cycling:
    """Case (row) of `sqlstress cycles`. A cycle inserts rows, deletes all rows, and inserts rows again."""

    cycles: int = option(
        whole_number(1, 100_000), 100, LOAD, "Number of cycles: insert rows, delete all, insert rows."
    )
    rows: int = option(whole_number(1, 10_000), 5, LOAD, "Rows per insertion, each in its own statement.")
    transaction: str = "none"
    """Transactions: "run" (a single one for all cycles) or "none" (each statement commits by itself)."""
    timeout_s: float | None = option(
        duration(0.001),
        "60s",
        LOAD,
        "Stop a run after this time. The report shows the completed cycles.",
        name="timeout",
        metavar="TIME",
        meaning="Time of work after which a run stops, in seconds; None: never.",
        unsaid=None,
    )


@dataclass(frozen=True, slots=True)
class CyclesSelection:
    """Options of `sqlstress cycles` that select which cases to measure. Cases do not store them."""

    settings: tuple[str, ...] = option(
        choices(*SETTINGS),
        ",".join(PUBLISHED),
        SWEEP,
        f"Settings to measure: a list of {', '.join(SETTINGS)}. In these names, tx means one transaction for "
        "the run, and off no automatic checkpoints.",
        metavar="LIST",
    )


def setting_of(case: Case) -> str:
    """Return a case's name in --settings: "wal-tx-50" (WAL, one transaction, checkpoints at 50 frames)."""
    held, frames = case.spec.transaction, case.settings.wal_autocheckpoint
    parts = [case.settings.journal_mode]
    parts += ["tx"] * (held == "run")
    parts += [str(frames) if frames else "off"] * (frames is not None)
    return "-".join(parts)
