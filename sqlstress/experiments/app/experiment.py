"""The experiment app, which measures the transactions declared in a Python file of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlstress.errors import NoWork, UsageError
from sqlstress.experiment import CommandLine
from sqlstress.experiments.app.spec import SITUATIONS, App, AppRequest, AppSelection, Weighted
from sqlstress.options.option import options_of, select_options
from sqlstress.report.case import KEEP_JOURNAL_MODE, Case, common, otherwise
from sqlstress.request import cases_at_rates, supported_traits
from sqlstress.target import program_drivers
from sqlstress.user_work import options
from sqlstress.user_work.experiment import UserExperiment
from sqlstress.user_work.loading import CONNECT
from sqlstress.user_work.options import UNSUPPORTED_OPTIONS, Invariant
from sqlstress.user_work.statements import dialect_of

if TYPE_CHECKING:
    from sqlstress.experiments.app.show import AppShown
    from sqlstress.experiments.app.user_file import SentDeclarations
    from sqlstress.experiments.app.work import AppWork
    from sqlstress.experiments.app.worker import AppSource

MOST = 4 << 20
"""Maximum size of the user's Python file, in bytes."""
LOCK_TIMEOUT_MS = 15_000
"""Busy timeout of sqlstress's connections, in ms: a user's transaction may hold a lock for seconds."""


def _first(request: AppRequest, driver: str) -> Case:
    """Return a case with all options set but concurrency, rate and situation. Raises UsageError."""
    # Imported here: `user_file` loads code to start processes, which --help and reports do not need.
    from sqlstress.experiments.app import user_file

    file, data = request.selection.file, options.read(request.selection.data, dialect_of(driver))
    if file is None:
        raise NoWork(
            "app needs a Python file: sqlstress app bank.py.",
            'app needs a Python file. Give file="bank.py".',
        )
    text = options.read_text_of(file, MOST)
    # These are the settings of sqlstress's connections. The application's connections have their own.
    settings = request.with_settings(
        journal_mode=KEEP_JOURNAL_MODE, synchronous=None, busy_timeout_ms=LOCK_TIMEOUT_MS
    )
    # Choose the target before the import of the user's file, which gets the address of a dummy database.
    bare = options.on_target(
        request, replace(request.case, settings=settings), driver, request.selection.where
    )
    if data.database:
        options.journal_mode_in_subprocess(data.database)  # also raises if the file is not a database
    contents = user_file.look(
        file,
        driver,
        allow_others=request.case.spec.allow_other_files,
        tries_connect=request.selection.start,
    )
    if bare.server and request.case.spec.ledger:
        raise UsageError("--ledger needs SQLite. Leave it out, or choose --target sqlite.")
    # The checks in the application's file come before those of --check.
    checks = (
        *(Invariant(name, f"{file}:{name}", at_end=is_final) for name, is_final in contents.checks.items()),
        *data.checks,
    )
    if len(checks) > options.MAX_CHECKS:
        raise UsageError(f"there are more than {options.MAX_CHECKS} checks: remove some.")
    data = replace(data, checks=checks)
    transactions = tuple(Weighted(name, weight) for name, weight in contents.weights.items())
    app = replace(
        request.case.spec, file=file, digest=options.digest(text), transactions=transactions, data=data
    )
    first = options.check_together(replace(request, case=replace(bare, spec=app)), data)
    return _first_opening(request, first, contents) if request.selection.start else first


# Cases of --start, which measures openings (calls of @connect) instead of transactions.

_NO_START = ("ops", "duration", "warmup", "rate", "check", "ledger", "where")
"""Options that have no meaning with --start, which measures calls of @connect only."""


def _first_opening(request: AppRequest, first: Case, contents: SentDeclarations) -> Case:
    """Return `first`, changed for --start: each worker calls @connect once. Raises UsageError."""
    file = first.spec.file
    if first.server:
        raise UsageError("--start needs SQLite. Leave it out, or choose --target sqlite.")
    if given := [name for name in _NO_START if name in request.given]:
        raise UsageError(f"--start measures single openings. Leave out --{given[0]}.")
    if not contents.connects:
        raise UsageError(f"--start needs a function with @connect in {file}.")
    spec = replace(first.spec, transactions=(Weighted(CONNECT),), data=replace(first.spec.data, checks=()))
    situation = SITUATIONS[0] if contents.creates else SITUATIONS[1]
    return replace(first, ops=1, warmup_s=0.0, spec=replace(spec, situation=situation))


def _situations(first: Case) -> Iterator[Case]:
    """Yield `first`, and with --start copies of it for the situations after its own."""
    if not first.spec.situation:
        yield first
        return
    for situation in SITUATIONS[SITUATIONS.index(first.spec.situation) :]:
        yield replace(first, spec=replace(first.spec, situation=situation))


class AppExperiment(UserExperiment):
    """The experiment `app`, which calls the transactions that the user's Python file declares."""

    name = "app"
    spec = App
    key = "app"
    command = CommandLine(
        name="app",
        summary="Your application: transactions of a Python file, N at once.",
        help=(
            "Measure the transactions that a Python file declares, by N processes at once, with your own "
            "library.\n\n"
            "The file declares how to set up the database, the transactions, their weights, and checks of "
            "the data. The report also shows the settings that your connections really have. It takes half a "
            "minute to two minutes; -c 4 takes less."
        ),
        takes=(".py",),
        main_options=("concurrency", "database", "check", "duration", "repeat", "where", "target", "output"),
        example="sqlstress app examples/app/bank.py",
    )
    options = (
        *select_options(options_of(AppSelection), "file", "start"),
        *options.DATA,
        *options.SWEPT,
        *options.WHERE,
        *options.CHECKS,
        *select_options(options_of(App), "allow-other-files", "ledger", "strict", "where"),
        *common("verify"),
        otherwise("max-failed", default="0%"),
        *options.SEED,
    )
    selection = AppSelection
    unsupported = UNSUPPORTED_OPTIONS
    single_case_values = MappingProxyType({"strict": None})
    applies_settings = False
    label_fields = frozenset(("file", "situation"))

    def cases(self, request: AppRequest) -> Iterator[Case]:
        """Yield a case for each concurrency, target, rate and state of the database's files at the start."""
        drivers = options.drivers(request, request.selection.where.target, program_drivers())
        firsts = [_first(request, driver) for driver in drivers]
        for concurrency in request.values_for("concurrency"):
            for first in firsts:
                for case in _situations(replace(first, concurrency=concurrency)):
                    yield from cases_at_rates(request, case)

    def traits(self, case: Case) -> dict[str, str]:
        data = case.spec.data
        return {
            **supported_traits(case),
            "file": f"{case.spec.file}",
            "situation": case.spec.situation,
            "setup": f"{data.setup} {data.setup_digest}",
            "database": data.database,
            "check": str(data.checks),
        }

    def work_key(self, case: Case) -> Case:
        return replace(case, spec=replace(case.spec, where=False))

    def work_label(self, case: Case) -> str:
        situation = case.spec.situation
        return f"{case.spec.file}{f', {situation}' if situation else ''}"

    def unit(self, case: Case) -> str:
        return "opening" if case.spec.situation else "transaction"

    def needs_longer_window(self, case: Case) -> bool:
        is_shared = case.concurrency > 1 and not case.rate
        return self.has_default_windows(case) and is_shared and not case.spec.situation

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> AppWork:
        from sqlstress.experiments.app.work import AppWork

        return AppWork(case, place, salt, carry)

    def worker_half(self) -> Callable[..., AppSource]:
        from sqlstress.experiments.app.worker import AppSource

        return AppSource

    def presenter(self) -> AppShown:
        from sqlstress.experiments.app.show import AppShown

        return AppShown()

    def preloads(self, case: Case) -> tuple[str, ...]:
        return (*super().preloads(case), "sqlstress.experiments.app.user_file")
