"""Options and result of a crash test.

A record is a group of rows. A transaction writes all rows of a record, and a row of the table log.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlstress.options.option import LOAD, option
from sqlstress.options.parsing import choice, join_alternatives, whole_number
from sqlstress.report.case import BEGIN_MODES, Case
from sqlstress.report.jsonable import InvalidField
from sqlstress.report.results import Verdict

KILLS_HEADING = "Kills"
MAX_ROUNDS = 1_000_000
MAX_WRITERS = 256
MAX_FILES = 1000


@dataclass(frozen=True, slots=True)
class Transactions:
    """Size and kind of the writers' transactions."""

    batch: int = option(whole_number(1, 1000), 4, LOAD, "Rows per transaction, not counting its log row.")
    value_size: int = option(
        whole_number(8, 1 << 16), 256, LOAD, "Size of the value of a row, at least 8.", metavar="BYTES"
    )
    begin: str = option(
        choice(*BEGIN_MODES),
        "immediate",
        LOAD,
        f"BEGIN of each transaction: {join_alternatives(BEGIN_MODES)}.",
        metavar="HOW",
    )


@dataclass(frozen=True, slots=True)
class CrashSelection:
    """Options of a crash test that are not stored in its case."""

    rounds: int = option(
        whole_number(1, MAX_ROUNDS),
        100,
        KILLS_HEADING,
        "Number of rounds. Each kills all writers, then examines the files.",
    )


ACKNOWLEDGED, WHOLE, INTEGRITY, SURVIVORS = (
    "acknowledged transactions",
    "whole transactions",
    "integrity_check",
    "survivors",
)
"""Names of the checks.

ACKNOWLEDGED: the files have every acknowledged transaction. WHOLE: the files have all rows of a transaction,
or no row. INTEGRITY: the structure of the files is sound. SURVIVORS: writers that were not killed continue.
"""


@dataclass(frozen=True, slots=True)
class Kills:
    """Result of a crash test, in which writers are killed at random times."""

    case: Case
    """Case: number of writers, their transactions, SQLite settings."""
    planned: int
    """Number of requested rounds."""
    rounds: int = 0
    """Number of completed rounds; each kills all writers and examines the files."""
    alone: int = 0
    """Number of rounds in which one writer was killed first, and all other writers had to continue."""
    kills: int = 0
    """Number of killed writers."""
    opening: int = 0
    """Number of writers killed while they opened or recovered files, before their first transaction."""
    acknowledged: int = 0
    """Number of transactions acknowledged before their writer was killed."""
    finished: int = 0
    """Number of transactions in progress at the kill that were in the files afterwards."""
    undone: int = 0
    """Number of transactions in progress at the kill that were not in the files afterwards."""
    databases: int = 0
    """Number of databases created: one for up to 50 rounds, and another after a failed check."""
    wals: int = 0
    """Number of WALs to recover after the death of all writers."""
    hot_journals: int = 0
    """Number of rollback journals to roll back after the death of all writers."""
    checkpoints: int = 0
    """Number of WALs counted in `wals` that had an unfinished checkpoint."""
    verdict: Verdict = field(default_factory=Verdict)
    """Results of the checks over all rounds. A file that was examined in three rounds counts as 3 files."""
    effective: dict[str, str] = field(default_factory=dict)
    """Settings reported by SQLite after the first write, by name."""
    seconds: float = 0.0
    """Duration of the crash test, in seconds."""
    error: str | None = None
    """Reason why the crash test ended early; null if complete or interrupted."""

    def __post_init__(self) -> None:
        if not isinstance(self.case.spec, Transactions):
            raise (
                InvalidField(f"{self.case.workload!r:.60} is no crash test").inside("workload").inside("case")
            )

    @property
    def lost_count(self) -> int:
        """Number of problems in the logs of transactions, found by the check ACKNOWLEDGED.

        A problem is a lost acknowledged transaction, or a transaction that should not exist.
        """
        return self._problems(ACKNOWLEDGED)

    @property
    def torn_count(self) -> int:
        """Number of records (groups of rows) with a row that the record's last transaction did not write."""
        return self._problems(WHOLE)

    def _problems(self, name: str) -> int:
        return sum(check.problems for check in self.verdict.checks if check.name == name)
