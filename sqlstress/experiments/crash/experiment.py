"""The experiment `crash`, with one case, whose writers are killed in each round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlstress.experiment import CommandLine, Experiment, StudySpec
from sqlstress.experiments.crash.spec import (
    KILLS_HEADING,
    MAX_FILES,
    MAX_WRITERS,
    CrashSelection,
    Kills,
    Transactions,
)
from sqlstress.options.option import options_of, select_options
from sqlstress.options.parsing import choice, whole_number
from sqlstress.report.case import Case, common, layout, otherwise
from sqlstress.request import Request, check_locking

if TYPE_CHECKING:
    from sqlstress.experiments.crash.show import KillsShown
    from sqlstress.experiments.crash.study import KillStudy
    from sqlstress.experiments.crash.worker import CrashSource


class KillsSpec(StudySpec):
    """Declaration of the study that the command `crash` runs."""

    result = Kills
    result_key = ("crash", "kills")
    label = "a crash test"

    def make(self, cases: Sequence[Case], selection: CrashSelection) -> KillStudy:
        from sqlstress.experiments.crash.study import study_of

        return study_of(cases, selection)


class CrashExperiment(Experiment):
    """The experiment `crash`: kills writers, and checks the contents of the files."""

    name = "crash"
    spec = Transactions
    key = "load"
    command = CommandLine(
        name="crash",
        summary="Kill writers repeatedly and check every acknowledged transaction.",
        help=(
            "Kill writing processes at random moments, reopen the files, and check what they hold.\n\n"
            "Exits 1 if an acknowledged transaction is lost, a transaction is torn, or a file is damaged. It "
            "takes about half a minute."
        ),
        main_options=("rounds", "concurrency", "journal-mode", "synchronous", "output"),
        example="sqlstress crash --rounds 100 --concurrency 3",
    )
    options = (
        *select_options(options_of(CrashSelection)),
        otherwise(
            "concurrency",
            parse=whole_number(1, MAX_WRITERS),
            default=3,
            group=KILLS_HEADING,
            help="Number of writing processes.",
            metavar="N",
            varies=False,
        ),
        otherwise(
            "buckets",
            parse=whole_number(1, MAX_FILES),
            default=1,
            group=KILLS_HEADING,
            help="Number of buckets (database files). A transaction writes to one of them.",
            metavar="N",
            varies=False,
        ),
        *select_options(options_of(Transactions)),
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
    )
    selection = CrashSelection
    study = KillsSpec()
    sweeps = True

    def cases(self, request: Request[Transactions, CrashSelection]) -> Iterator[Case]:
        check_locking(request)
        yield replace(request.case, verify="full")

    def work_label(self, case: Case) -> str:
        return layout(case)

    def worker_half(self) -> Callable[..., CrashSource]:
        from sqlstress.experiments.crash.worker import CrashSource

        return CrashSource

    def presenter(self) -> KillsShown:
        from sqlstress.experiments.crash.show import KillsShown

        return KillsShown()
