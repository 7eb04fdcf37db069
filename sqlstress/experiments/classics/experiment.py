"""Experiments of the commands `sqlstress methods`, `keys` and `cycles`: options, and cases to measure.

A case (row of the report) is a combination of option values: a method to write rows, their number, a driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.experiment import CommandLine, Experiment
from sqlstress.experiments.classics.spec import (
    MOST_SAMPLES,
    REASONS,
    SCALES,
    SCHEMAS,
    CyclesSelection,
    Cycling,
    KeysSelection,
    Method,
    MethodsSelection,
    Picks,
    setting_of,
    tricks_of,
)
from sqlstress.options.option import SWEEP, options_of, select_options
from sqlstress.options.parsing import choices, whole_number
from sqlstress.report import Run
from sqlstress.report.case import Case, common, otherwise
from sqlstress.request import Request, check_locking, is_exclusive


class _Experiment(Experiment):
    """Base class of the three experiments. Modules are imported in its functions, so that --help is fast."""

    def rate_units(self, case: Case) -> str:
        return "rows"

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> Any:
        from sqlstress.experiments.classics.work import WORKS

        return WORKS[self.name](case, place, salt, carry)

    def worker_half(self) -> Callable[..., Any]:
        from sqlstress.experiments.classics.worker import SOURCES

        return SOURCES[self.name]

    def presenter(self) -> Any:
        from sqlstress.experiments.classics.show import PRESENTERS

        return PRESENTERS[self.name]()


# `sqlstress methods`.


def _case(request: Request[Any, MethodsSelection], phase: str, tricks: str, scale: int) -> Case:
    name, *others = tricks.split(" + ")
    method = replace(request.spec, phase=phase, name=name, transaction="TSC" in others, scale=scale)
    settings = request.with_settings(journal_mode="wal" if "WAL" in others else "delete")
    return replace(request.case, settings=settings, spec=method)


def _check_scale(method: Method) -> None:
    if method.phase == "allocate" and not 2 <= method.scale <= MOST_SAMPLES:
        raise UsageError(
            f"--scale {method.scale} is not supported by the phase allocate. Give 2 to {MOST_SAMPLES:,} "
            "samples."
        )
    if method.phase == "query" and sum(method.sets) > method.samples:
        first, second = method.sets
        raise UsageError(
            f"--scale {method.scale:,}: these pairs need {first:,} and {second:,} samples, and the "
            f"queried table has {method.samples:,}. Change --scale."
        )


_EXTRA = options_of(MethodsSelection)


class MethodsExperiment(_Experiment):
    """Experiment of `sqlstress methods`: ways to write and query rows, such as in bulk or from JSON."""

    name = "methods"
    spec = Method
    key = "method"
    command = CommandLine(
        name="methods",
        summary="Ways to write and read rows: one by one, bulk, JSON, in SQL.",
        help=(
            "Measure ways to write and read rows: one by one, in bulk, from JSON, or inside SQLite, with and "
            "without WAL. It takes less than a minute."
        ),
        main_options=("phase", "method", "driver", "scale", "full", "repeat", "output"),
        example="sqlstress methods --phase insert --driver peewee,sqlite3,apsw",
    )
    options = (
        *select_options(_EXTRA, "phase", "method"),
        otherwise(
            "driver",
            parse=choices("peewee", "sqlite3", "apsw"),
            default="peewee,sqlite3",
            group=SWEEP,
            help="Drivers: a list of peewee, sqlite3 (standard library; Peewee uses it too), apsw "
            "(optional).",
            metavar="LIST",
            varies=True,
        ),
        *select_options(_EXTRA, "scale", "full"),
        otherwise("repeat", default=3),
        *select_options(options_of(Method)),
        *common("synchronous", "fullfsync", "wal-autocheckpoint", "page-size", "cache-size", "mmap-size"),
        *common("pragma", "busy-timeout", "verify", "seed"),
    )
    selection = MethodsSelection
    label_fields = frozenset(Method.__slots__)

    def cases(self, request: Request[Any, MethodsSelection]) -> Iterator[Case]:
        selection = request.selection
        if selection.scale is not None and selection.full:
            raise UsageError("--scale and --full contradict each other. Leave one of them out.")
        if selection.scale is not None and len(selection.phase) > 1:
            raise UsageError("--scale counts samples or pairs, which depends on the phase. Give one --phase.")
        check_locking(request)
        planned = [
            _case(request, phase, tricks, scale)
            for phase in selection.phase
            for scales in SCALES
            if scales.phase == phase
            for tricks in scales.methods
            if selection.method is None or tricks.partition(" ")[0].lower() in selection.method
            for scale in (
                sorted(selection.scale or ()) or (scales.published if selection.full else scales.chosen)
            )
        ]
        if not planned:
            names = ",".join(selection.method or ())
            raise UsageError(f"--method {names} does not exist in this --phase. Choose another.")
        for case in planned:
            _check_scale(case.spec)
        for driver in request.values_for("driver"):
            yield from (replace(case, driver=driver) for case in planned)

    def table_key(self, case: Case) -> Case:
        settings = replace(case.settings, journal_mode="")
        return replace(case, concurrency=1, driver="", seed=0, spec=(), settings=settings)

    def work_key(self, case: Case) -> Case:
        return replace(case, spec=replace(case.spec, timeout_s=0.0, samples=0))

    def work_label(self, case: Case) -> str:
        return f"{case.spec.phase} {case.spec.scale:,} by {tricks_of(case)}, {case.driver}"

    def timeout_s(self, case: Case) -> float:
        return float(case.spec.timeout_s)

    def skip_reason(self, case: Case, runs: Sequence[Run]) -> str | None:
        """Return the reason to skip a case or its remaining trials, or None. `runs` has the results so far.

        A case of 1000 rows is skipped if one of its trials, or the same case with fewer rows, such as 100,
        timed out or exceeded a limit of SQLite.
        """
        for run in (run for run in runs if run.case.workload == self.name):
            scale = run.case.spec.scale
            is_same_method = replace(run.case, spec=replace(run.case.spec, scale=case.spec.scale)) == case
            outcome = next((trial.outcome for trial in run.trials if trial.outcome in REASONS), None)
            if outcome and is_same_method and scale <= case.spec.scale:
                return f"{tricks_of(case)} {REASONS[outcome]} at {scale:,} already"
        return None


# `sqlstress keys`.


MOST_PICKS = 10_000_000
"""Maximum number of rows (--users times --picks). The check after each trial keeps all rows in memory."""
_PICKS = options_of(Picks)


class KeysExperiment(_Experiment):
    """Experiment of `sqlstress keys`: time to insert rows, and size of the file, by type of primary key."""

    name = "keys"
    spec = Picks
    key = "picks"
    command = CommandLine(
        name="keys",
        summary="Primary keys: integers, UUIDs and ULIDs, in five schemas.",
        help=(
            "Measure primary keys: concurrent writers insert rows whose ids are integers, UUIDs or ULIDs.\n\n"
            "Each user picks about 100 items in one transaction. The report shows the time and space of each "
            "type of id, by schema. It takes less than a minute."
        ),
        main_options=("schema", "id-type", "full", "users", "concurrency", "synchronous", "output"),
        example="sqlstress keys --schema id-rowid --id-type uuid4,uuid7 -o keys.json",
    )
    options = (
        otherwise("concurrency", default="4"),
        *select_options(_PICKS, "schema"),
        *select_options(options_of(KeysSelection)),
        *select_options(_PICKS, "id-type"),
        otherwise("repeat", default=5),
        # With 1000 users, as in the article that is repeated, five trials of each case would take minutes.
        replace(_PICKS["users"], default=150),
        *select_options(_PICKS, "picks", "items", "begin"),
        *common("journal-mode"),
        otherwise("synchronous", default="normal"),
        *common("fullfsync", "wal-autocheckpoint", "page-size", "cache-size", "mmap-size"),
        otherwise("pragma", help="Any other PRAGMA. May be repeated. foreign_keys is on by default."),
        *common("busy-timeout", "driver", "verify", "max-failed", "seed"),
    )
    selection = KeysSelection
    label_fields = frozenset(("schema", "id_type"))

    def cases(self, request: Request[Picks, KeysSelection]) -> Iterator[Case]:
        if request.selection.full and "schema" in request.given:
            raise UsageError("--full measures every schema. Leave out --full or --schema.")
        load = request.spec
        if load.most_picks > load.items:
            raise UsageError(
                f"--picks {load.picks} needs up to {load.most_picks:,} distinct items, and --items is "
                f"{load.items:,}. Lower --picks or raise --items."
            )
        if load.users * load.picks > MOST_PICKS:
            raise UsageError(f"--users times --picks is more than {MOST_PICKS:,} rows. Lower one of them.")
        if (most := request.most_processes) > load.users:
            raise UsageError(f"--users {load.users} is less than the {most} processes. Raise --users.")
        check_locking(request)
        schemas = SCHEMAS if request.selection.full else request.values_for("schema")
        settings = request.settings
        if "foreign_keys" not in dict(settings.pragmas):
            settings = request.with_settings(pragmas=(("foreign_keys", "on"), *settings.pragmas))
        for schema, concurrency, id_type in product(
            schemas, request.values_for("concurrency"), request.values_for("id-type")
        ):
            picks = replace(load, schema=schema, id_type=id_type)
            yield replace(request.case, settings=settings, concurrency=concurrency, spec=picks)

    def table_key(self, case: Case) -> Case:
        return replace(case, concurrency=1, seed=0, spec=replace(case.spec, schema="", id_type=""))

    def work_label(self, case: Case) -> str:
        return f"{case.spec.schema}, {case.spec.id_type}"


# `sqlstress cycles`.


class CyclesExperiment(_Experiment):
    """Experiment of `sqlstress cycles`: insert rows, delete all rows and insert rows again, many times."""

    name = "cycles"
    spec = Cycling
    key = "cycling"
    command = CommandLine(
        name="cycles",
        summary="Insert, delete all, insert again: the time of each cycle.",
        help=(
            "Measure cycles of inserting rows, deleting all of them and inserting again, under five "
            "settings.\n\nThe settings are: rollback journal (delete) or WAL; each row or the whole run in "
            "one transaction (tx); WAL without automatic checkpoints (off). The report shows the time and "
            "the checkpoints of each cycle. It takes about a minute."
        ),
        main_options=("settings", "cycles", "rows", "synchronous", "output"),
        example="sqlstress cycles --settings wal,wal-tx --synchronous normal",
    )
    options = (
        *select_options(options_of(CyclesSelection), "settings"),
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

    def cases(self, request: Request[Cycling, CyclesSelection]) -> Iterator[Case]:
        names = request.selection.settings
        if "wal-autocheckpoint" in request.given and not {"wal", "wal-tx"} & set(names):
            raise UsageError("--wal-autocheckpoint needs the setting wal or wal-tx. Add one to --settings.")
        check_locking(request)
        if is_exclusive(request.settings) and any(name.startswith("wal") for name in names):
            raise UsageError(
                "PRAGMA locking_mode=exclusive hides the WAL index, so checkpoints cannot be counted. Use it "
                "with --settings delete,delete-tx only."
            )
        for name in dict.fromkeys(names):
            journal, *rest = name.split("-")
            frames = request.settings.wal_autocheckpoint if journal == "wal" else None
            frames = 0 if "off" in rest else frames
            settings = request.with_settings(journal_mode=journal, wal_autocheckpoint=frames)
            cycling = replace(request.spec, transaction="run" if "tx" in rest else "none")
            yield replace(request.case, settings=settings, spec=cycling)

    def table_key(self, case: Case) -> Case:
        settings = replace(case.settings, journal_mode="", wal_autocheckpoint=None)
        cycling = replace(case.spec, transaction="", timeout_s=None)
        return replace(case, seed=0, spec=cycling, settings=settings)

    def work_key(self, case: Case) -> Case:
        return replace(case, spec=replace(case.spec, timeout_s=None))

    def work_label(self, case: Case) -> str:
        return setting_of(case)

    def unit(self, case: Case) -> str:
        return "statement"

    def rate_units(self, case: Case) -> str:
        return "cycles"
