"""The experiment with cycles: its cases are settings with numbers of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlstress.errors import UsageError
from sqlstress.experiment import CommandLine, Experiment
from sqlstress.experiments.classics.cycles import WORDS, CyclesRequest, CyclesSelection, Cycling, setting_of
from sqlstress.options.option import options_of, select_options
from sqlstress.options.parsing import whole_number
from sqlstress.report.case import Case, common, otherwise
from sqlstress.request import check_locking, is_exclusive

if TYPE_CHECKING:
    from sqlstress.experiments.classics.cycles_show import CyclesShown
    from sqlstress.experiments.classics.cycles_work import CyclesWork
    from sqlstress.experiments.classics.cycles_worker import CyclesSource

COMMIT_S, STATEMENT_S = 250e-6, 10e-6


def _check_together(request: CyclesRequest) -> None:
    names = request.selection.settings
    if "wal-autocheckpoint" in request.given and not {"wal", "wal-tx", "wal-cycle"} & set(names):
        raise UsageError("--wal-autocheckpoint needs the setting wal or wal-tx. Add one to --settings.")
    check_locking(request)
    if is_exclusive(request.settings) and any(name.startswith("wal") for name in names):
        raise UsageError(
            "PRAGMA locking_mode=exclusive hides the WAL index, so checkpoints cannot be counted. Use it "
            "with --settings delete,delete-tx only."
        )


class CyclesExperiment(Experiment):
    """Cycles of inserting and deleting rows."""

    name = "cycles"
    spec = Cycling
    key = "cycling"
    command = CommandLine(
        name="cycles",
        summary="Insert, delete all, insert again: the time of each cycle.",
        help=(
            "Measure cycles of inserting rows, deleting all of them and inserting again, under five "
            "settings.\n\n"
            "The settings are: rollback journal (delete) or WAL; each row or the whole run in one "
            "transaction "
            "(tx); WAL without automatic checkpoints (off). The report shows the time and the checkpoints of "
            "each cycle. It takes about a minute."
        ),
        main_options=("settings", "concurrency", "cycles", "rows", "synchronous", "output"),
        example="sqlstress cycles --settings wal,wal-tx --synchronous normal",
    )
    options = (
        *select_options(options_of(CyclesSelection), "settings"),
        otherwise("concurrency", default="1"),
        otherwise("repeat", default=5),
        *select_options(options_of(Cycling), "cycles", "rows", "timeout"),
        *common("synchronous", "fullfsync"),
        otherwise(
            "wal-autocheckpoint",
            parse=whole_number(1, 10**9),
            help="PRAGMA wal_autocheckpoint for the settings wal and wal-tx.",
        ),
        *common("page-size", "cache-size", "mmap-size", "pragma", "busy-timeout"),
        *common("driver", "verify", "max-failed", "seed"),
    )
    selection = CyclesSelection
    label_fields = frozenset(("transaction",))

    def cases(self, request: CyclesRequest) -> Iterator[Case]:
        """Yield the cases, settings outside, concurrencies inside. Raises UsageError."""
        _check_together(request)
        for name in dict.fromkeys(request.selection.settings):
            journal, *rest = name.split("-")
            frames = request.settings.wal_autocheckpoint if journal == "wal" else None
            settings = request.with_settings(
                journal_mode=journal, wal_autocheckpoint=0 if "off" in rest else frames
            )
            held = next((what for what, word in WORDS.items() if word in rest), "none")
            case = replace(request.case, settings=settings, spec=replace(request.spec, transaction=held))
            for concurrency in request.values_for("concurrency"):
                yield replace(case, concurrency=concurrency)

    def table_key(self, case: Case) -> Case:
        settings = replace(case.settings, journal_mode="", wal_autocheckpoint=None)
        cycling = replace(case.spec, transaction="", timeout_s=None)
        return replace(case, concurrency=1, seed=0, spec=cycling, settings=settings)

    def work_key(self, case: Case) -> Case:
        return replace(case, spec=replace(case.spec, timeout_s=None))

    def work_label(self, case: Case) -> str:
        return setting_of(case)

    def unit(self, case: Case) -> str:
        return "statement"

    def rate_units(self, case: Case) -> str:
        return "cycles"

    def estimated_s(self, case: Case) -> float:
        work: Cycling = case.spec
        statements = work.cycles * (2 * work.rows + 1)
        commits = {"none": statements, "cycle": work.cycles}.get(work.transaction, 1)
        # A commit of a rollback journal waits for several syncs.
        commit_s = COMMIT_S if case.settings.journal_mode == "wal" else 5 * COMMIT_S
        load = case.concurrency * (commits * commit_s + statements * STATEMENT_S)
        return load if work.timeout_s is None else min(load, work.timeout_s)

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> CyclesWork:
        from sqlstress.experiments.classics.cycles_work import CyclesWork

        return CyclesWork(case, place, salt, carry)

    def worker_half(self) -> Callable[..., CyclesSource]:
        from sqlstress.experiments.classics.cycles_worker import CyclesSource

        return CyclesSource

    def presenter(self) -> CyclesShown:
        from sqlstress.experiments.classics.cycles_show import CyclesShown

        return CyclesShown()
