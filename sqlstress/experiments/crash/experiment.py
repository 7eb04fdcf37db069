"""Crash tests by killing: one case, whose writers are killed again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sqlstress.experiment import Behaviour, CommandLine, Experiment, StudyOf, Words
from sqlstress.options.option import LOAD, chosen, option, options_of
from sqlstress.options.parsing import choice, either, whole
from sqlstress.plan import Request, check_locking
from sqlstress.report.case import BEGINS, Case, common, layout, otherwise
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
class Extra:
    """Options that stand in no case."""

    rounds: int = option(
        whole(1, MOST_ROUNDS),
        100,
        KILLING,
        "Number of rounds. Each kills all writers, then examines the files.",
    )


def cases(request: Request[Transactions, Extra]) -> Iterator[Case]:
    """Yield the case. Raises UsageError when options don't fit."""
    check_locking(request)
    yield replace(request.case, verify="full")


CRASH = Experiment(
    name="crash",
    spec=Transactions,
    key="load",
    command=CommandLine(
        name="crash",
        summary="Kill writers repeatedly and check every acknowledged transaction.",
        help=(
            "Kill writing processes at random moments, reopen the files, and check what they hold.\n\n"
            "Exits 1 if an acknowledged transaction is lost, a transaction is torn, or a file is damaged. It "
            "takes about half a minute."
        ),
        main_options=("rounds", "concurrency", "journal-mode", "synchronous", "output"),
        example="sqlstress crash --rounds 100 --concurrency 3",
    ),
    options=(
        *chosen(options_of(Extra)),
        otherwise(
            "concurrency",
            parse=whole(1, MOST_WRITERS),
            default=3,
            group=KILLING,
            help="Number of writing processes.",
            metavar="N",
            varies=False,
        ),
        otherwise(
            "buckets",
            parse=whole(1, MOST_FILES),
            default=1,
            group=KILLING,
            help="Number of buckets (database files). A transaction writes to one of them.",
            metavar="N",
            varies=False,
        ),
        *chosen(options_of(Transactions)),
        *common("journal-mode", "synchronous", "fullfsync"),
        otherwise(
            "wal-autocheckpoint",
            default=100,
            help="PRAGMA wal_autocheckpoint. It is low so that kills also hit checkpoints. 0 turns them off.",
        ),
        *common("page-size", "cache-size", "mmap-size", "pragma", "busy-timeout"),
        otherwise(
            "driver",
            parse=choice("sqlite3", "apsw"),
            help="Driver: sqlite3 (standard library) or apsw (optional).",
        ),
        *common("seed"),
    ),
    extra=Extra,
    cases=cases,
    words=Words(work_of=layout),
    behaviour=Behaviour(sweeps=True),
    worker="sqlstress.experiments.crash.worker:CrashSource",
    study=StudyOf(
        opens="sqlstress.experiments.crash.study:study_of",
        result="sqlstress.experiments.crash.experiment:Kills",
        result_key=("crash", "kills"),
        called="a crash test",
    ),
    shown="sqlstress.experiments.crash.show:KillsShown",
)


# What a crash test by killing adds to a report: what was done to the writers, and what was left.


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
