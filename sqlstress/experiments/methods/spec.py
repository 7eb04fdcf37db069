"""What a case of the experiment with methods says beside what all cases say."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from sqlstress.options.option import LOAD, SWEEP, option
from sqlstress.options.parsing import choices, duration, ranges, switch, whole

PHASES = ("insert", "allocate", "query")
METHODS = ("1b1", "BLK", "BLK/n", "ROW", "VALUES", "JSON", "SPC")

MOST_ROWS = 1_000_000
MOST_SAMPLES = 3000


@dataclass(frozen=True, slots=True)
class Method:
    """One cell of the experiment with methods: how so many rows are written or read."""

    phase: str
    """What is done: insert (samples), allocate (a result for each pair of samples) or query (pairs)."""
    name: str
    """How: 1b1 (one by one), BLK, JSON, SPC, or one of their variants; one of METHODS."""
    transaction: bool
    """Whether all of it is one transaction (TSC)."""
    scale: int
    """Samples to insert, samples whose pairs are allocated, or pairs to query."""
    timeout_s: float = option(
        duration(0.01),
        None,
        LOAD,
        "When a cell is given up; if not told 2.6s, and 10s for queries and SPC.",
        name="timeout",
        metavar="TIME",
        meaning="After which time of work the cell is given up, in seconds.",
        required=True,
    )
    samples: int = option(
        whole(2, MOST_SAMPLES),
        500,
        LOAD,
        "Samples of which the table that is queried holds every pair.",
        meaning="Samples of which the table that is queried holds every pair; 0 where that is not known.",
        unsaid=1000,
    )
    chunk: int = option(whole(1, MOST_ROWS), 1000, LOAD, "Rows of each statement of BLK/n.", metavar="ROWS")
    as_published: bool = option(
        switch,
        False,
        LOAD,
        "Show the summary of insertions also as published, which mixes two phases.",
        flag=True,
        meaning="Whether a summary that mixes the phases, as the published one does, is shown too.",
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
class Extra:
    """Options that only say which cases there are."""

    phase: tuple[str, ...] = option(
        choices(*PHASES),
        ",".join(PHASES),
        SWEEP,
        "What is done: insert samples, allocate results, query pairs.",
        metavar="LIST",
    )
    method: tuple[str, ...] | None = option(
        choices(*map(str.lower, METHODS)),
        None,
        SWEEP,
        f"Of {', '.join(METHODS)}: only these; WAL and TSC come with each as published.",
        metavar="LIST",
    )
    scale: tuple[int, ...] | None = option(
        ranges(MOST_ROWS),
        None,
        SWEEP,
        "Samples to insert, samples to pair or pairs to query, of one --phase; else a choice of the "
        "published ones.",
        metavar="LIST",
    )
    full: bool = option(switch, False, SWEEP, "All published scales.", flag=True)
