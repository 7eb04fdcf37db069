"""What a case of the experiment with cycles says beside what all cases say."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.options.option import LOAD, SWEEP, option
from sqlstress.options.parsing import choice, choices, duration, whole

PUBLISHED = ("delete", "delete-tx", "wal", "wal-tx", "wal-tx-off")
"""The published settings: journal; tx: in a transaction; off: without automatic checkpoints."""
SETTINGS = (*PUBLISHED, "wal-off", "delete-cycle", "wal-cycle", "wal-cycle-off")
WORDS = {"run": "tx", "cycle": "cycle"}
"""What one transaction holds → the word for it in the name of a setting."""


@dataclass(frozen=True, slots=True)
class Cycling:
    """The experiment with cycles: insert rows, delete all of them, insert rows again."""

    cycles: int = option(whole(1, 100_000), 100, LOAD, "Cycles: insert rows, delete all, insert rows.")
    rows: int = option(whole(1, 10_000), 5, LOAD, "Rows of each insertion, a statement each.")
    transaction: str = "none"
    """What one transaction holds: none of ours (each statement is its own), a cycle, or the whole run."""
    timeout_s: float | None = option(
        duration(0.001),
        "60s",
        LOAD,
        "When a run is given up; the cycles done by then are shown.",
        name="timeout",
        metavar="TIME",
        meaning="After which time of work a run is given up, in seconds; None: never.",
        unsaid=None,
    )


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that only say which cases there are."""

    settings: tuple[str, ...] = option(
        choices(*SETTINGS),
        ",".join(PUBLISHED),
        SWEEP,
        "Journal delete or wal; tx: in one transaction; off: without checkpoints; also wal-off, and for a "
        "transaction each cycle delete-cycle, wal-cycle and wal-cycle-off.",
        metavar="LIST",
    )
    transaction: str = option(
        choice("cycle", "run"),
        "run",
        LOAD,
        "What the one transaction of the settings with tx holds: the whole run, or a cycle.",
        metavar="WHAT",
    )
