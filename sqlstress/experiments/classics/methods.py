"""Options and spec of the experiment with methods."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

from sqlstress.options.option import LOAD, SWEEP, option
from sqlstress.options.parsing import choices, duration, ranges, switch, whole_number
from sqlstress.report.case import Case
from sqlstress.request import Request

PHASES = ("insert", "allocate", "query")
METHOD_NAMES = ("1b1", "BLK", "BLK/n", "VALUES", "JSON", "SPC")
MOST_ROWS = 1_000_000
MOST_SAMPLES = 3000


@dataclass(frozen=True, slots=True)
class Method:
    """One cell of the experiment with methods: a way to write or read a number of rows."""

    phase: str
    """Work: insert (samples), allocate (a result for each pair of samples) or query (pairs)."""
    name: str
    """Name of the method, without WAL and TSC: one of METHOD_NAMES."""
    transaction: bool
    """Whether all of it is one transaction (TSC)."""
    scale: int
    """Samples to insert, samples whose pairs are allocated, or pairs to query."""
    timeout_s: float = option(
        duration(0.01),
        None,
        LOAD,
        "Stop a measurement after this time. Default: 2.6s, and 10s for queries and SPC.",
        name="timeout",
        metavar="TIME",
        meaning="Time of work after which the measurement stops, in seconds.",
        required=True,
    )
    samples: int = option(
        whole_number(2, MOST_SAMPLES),
        300,
        LOAD,
        "Samples in the queried table. It holds every pair of them.",
        meaning="Samples in the queried table, which holds every pair of them; 0 if not known.",
        unsaid=1000,
    )
    chunk: int = option(
        whole_number(1, MOST_ROWS), 1000, LOAD, "Rows per statement of BLK/n.", metavar="ROWS"
    )

    @property
    def rows(self) -> int:
        """Rows that are written or read."""
        return self.scale * (self.scale - 1) // 2 if self.phase == "allocate" else self.scale

    @property
    def sets(self) -> tuple[int, int]:
        """Sizes of the two sets of ids between which the queried pairs lie: the nearest, the lower first."""
        lower = next((size for size in range(isqrt(self.scale), 0, -1) if self.scale % size == 0), 1)
        return lower, self.scale // lower


@dataclass(frozen=True, slots=True)
class MethodsSelection:
    """Options that only say which cases there are."""

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


MethodsRequest = Request[Any, MethodsSelection]


def tricks_of(case: Case) -> str:
    """Return the name of a case's method with WAL and TSC: "1b1 + WAL + TSC"."""
    parts = [case.spec.name, *["TSC"] * case.spec.transaction]
    parts[1:1] = ["WAL"] * (case.settings.journal_mode == "wal")
    return " + ".join(parts)


def queried(case: Case) -> int | None:
    """Return the number of samples in the queried table; None if the case does not query."""
    return case.spec.samples if case.spec.phase == "query" else None
