"""Crash tests by killing: one case, whose writers are killed again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstress.experiment import Behaviour, CommandLine, Experiment, StudyOf, Words
from sqlstress.experiments.crash.spec import KILLING, MOST_FILES, MOST_WRITERS, CaseSelection, Transactions
from sqlstress.options.option import chosen, options_of
from sqlstress.options.parsing import choice, whole
from sqlstress.plan import Request, check_locking
from sqlstress.report.case import Case, common, layout, otherwise


def cases(request: Request[Transactions, CaseSelection]) -> Iterator[Case]:
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
        *chosen(options_of(CaseSelection)),
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
        *common("page-size", "cache-size", "mmap-size", "pragma", "busy-timeout", "busy"),
        otherwise(
            "driver",
            parse=choice("sqlite3", "apsw"),
            help="Driver: sqlite3 (standard library) or apsw (optional).",
        ),
        *common("seed"),
    ),
    selection=CaseSelection,
    cases=cases,
    words=Words(work_of=layout),
    behaviour=Behaviour(sweeps=True),
    worker="sqlstress.experiments.crash.worker:CrashSource",
    study=StudyOf(
        opens="sqlstress.experiments.crash.study:study_of",
        result="sqlstress.experiments.crash.spec:Kills",
        result_key=("crash", "kills"),
        called="a crash test",
    ),
    shown="sqlstress.experiments.crash.show:KillsShown",
)
