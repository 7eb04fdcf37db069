"""Options, spec and result of a crash test."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlstress.options.option import LOAD, option
from sqlstress.options.parsing import choice, either, whole
from sqlstress.report.case import BEGINS, Case
from sqlstress.report.jsonable import Misfit
from sqlstress.report.results import Verdict

KILLING = "Kills"
MOST_ROUNDS = 1_000_000
MOST_WRITERS = 256
MOST_FILES = 1000


@dataclass(frozen=True, slots=True)
class Transactions:
    """What the writers write."""

    batch: int = option(whole(1, 1000), 4, LOAD, "Rows per transaction, not counting its log row.")
    value_size: int = option(
        whole(8, 1 << 16), 256, LOAD, "Size of the value of a row, at least 8.", metavar="BYTES"
    )
    begin: str = option(
        choice(*BEGINS), "immediate", LOAD, f"BEGIN of each transaction: {either(BEGINS)}.", metavar="HOW"
    )


@dataclass(frozen=True, slots=True)
class CaseSelection:
    """Options that stand in no case."""

    rounds: int = option(
        whole(1, MOST_ROUNDS),
        100,
        KILLING,
        "Number of rounds. Each kills all writers, then examines the files.",
    )


ACKNOWLEDGED, WHOLE, INTEGRITY, SURVIVORS = (
    "acknowledged transactions",
    "whole transactions",
    "integrity_check",
    "survivors",
)
"""What is checked after a crash: lost ones, torn ones, the files' structure, and those who live on."""


@dataclass(frozen=True, slots=True)
class Kills:
    """Process death: writers killed at random moments, round after round, and what they left."""

    case: Case
    """The writers of a round, what they write, and how they open the files."""
    planned: int
    """Rounds that were asked for."""
    rounds: int = 0
    """Rounds done: in each, every writer was killed, and the files were examined."""
    alone: int = 0
    """Rounds in which one writer was killed before the others, who had to go on."""
    kills: int = 0
    """Writers killed."""
    opening: int = 0
    """Those of them that were killed before their first transaction: while they opened or recovered files."""
    acknowledged: int = 0
    """Transactions that were acknowledged before their writer was killed."""
    finished: int = 0
    """Transactions under way when their writer was killed that were there afterwards."""
    undone: int = 0
    """Transactions under way when their writer was killed that were not there afterwards."""
    databases: int = 0
    """Fresh databases: each serves several rounds, until something is wrong with it at the latest."""
    wals: int = 0
    """WALs that were left to be recovered when every writer was dead."""
    hot_journals: int = 0
    """Rollback journals that were left to be rolled back when every writer was dead."""
    checkpoints: int = 0
    """WALs among them whose checkpoint was under way when every writer was dead."""
    verdict: Verdict = field(default_factory=Verdict)
    """What was found wrong, over all rounds; `checked` counts again what was looked at again."""
    effective: dict[str, str] = field(default_factory=dict)
    """Every setting as SQLite answered it after the first write."""
    seconds: float = 0.0
    """How long all of it took."""
    error: str | None = None
    """Why it ended before all rounds were done; None when it did not, or was interrupted."""

    def __post_init__(self) -> None:
        if not isinstance(self.case.spec, Transactions):
            raise Misfit(f"{self.case.workload!r:.60} is no crash test").inside("workload").inside("case")

    @property
    def lost(self) -> int:
        """Acknowledged transactions that were gone."""
        return self._problems(ACKNOWLEDGED)

    @property
    def torn(self) -> int:
        """Records that were not wholly as their last transaction had left them."""
        return self._problems(WHOLE)

    def _problems(self, name: str) -> int:
        return sum(check.problems for check in self.verdict.checks if check.name == name)
