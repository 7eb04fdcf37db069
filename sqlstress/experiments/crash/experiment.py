"""Crash tests by killing: one case, whose writers are killed again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstress.errors import UsageError
from sqlstress.experiment import Behaviour, CommandLine, Experiment, StudyOf, Words
from sqlstress.experiments.crash.spec import KILLING, MOST_FILES, MOST_WRITERS, Extra, Transactions
from sqlstress.options.option import chosen, options_of
from sqlstress.options.parsing import choice, whole
from sqlstress.plan import Request, check_locking
from sqlstress.report.case import Case, common, layout, otherwise

LARGEST = 64 << 20
"""Bytes of all records: they are read again after every kill."""

CrashRequest = Request[Transactions, Extra]


def cases(request: CrashRequest) -> Iterator[Case]:
    """Yield the case. Raises UsageError when options don't fit."""
    # Only here: help waits for nothing that it does not show.
    from sqlstress.analysis.wording import size
    from sqlstress.experiments.crash.records import RECORDS

    check_locking(request)
    needed = RECORDS * request.spec.batch * request.spec.value_size * request.case.buckets
    if needed > LARGEST:
        raise UsageError(
            f"{size(needed)} of rows would be read after every kill, and {size(LARGEST)} is the most: "
            "lower --batch, --value-size or --buckets."
        )
    yield replace(request.case, verify="full")


CRASH = Experiment(
    name="crash",
    spec=Transactions,
    key="load",
    command=CommandLine(
        name="crash",
        summary="Kill writers over and over: is every acknowledged transaction there?",
        help=(
            "Kill writing processes at random moments, reopen the files, and prove what they hold.\n\n"
            "Or cut the power of a recorded run: --power, --matrix. Exits 1 when an acknowledged "
            "transaction is gone, one is torn, or a file is damaged."
        ),
        example="sqlstress crash --rounds 100 --concurrency 3",
        noun="killing",
    ),
    options=(
        *chosen(options_of(Extra)),
        otherwise(
            "concurrency",
            parse=whole(1, MOST_WRITERS),
            default=3,
            group=KILLING,
            help="Writers, each a process; with --power connections to each file.",
            metavar="N",
            varies=False,
        ),
        otherwise(
            "buckets",
            parse=whole(1, MOST_FILES),
            default=1,
            group=KILLING,
            help="Files; a transaction writes to one of them.",
            metavar="N",
            varies=False,
        ),
        *chosen(options_of(Transactions)),
        *common("journal-mode", "synchronous", "fullfsync"),
        otherwise(
            "wal-autocheckpoint",
            default=100,
            help="PRAGMA wal_autocheckpoint; 0 is never. Few frames: kills strike checkpoints too.",
        ),
        *common("page-size", "cache-size", "mmap-size", "pragma", "busy-timeout", "busy"),
        otherwise(
            "driver", parse=choice("sqlite3", "apsw"), help="sqlite3 (standard library) or apsw (extra)."
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
        result="sqlstress.experiments.crash.spec:Kills",
        result_key=("crash", "kills"),
        called="a crash test",
    ),
    shown="sqlstress.experiments.crash.show:KillsShown",
)
