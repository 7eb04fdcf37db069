"""The experiment `exec`: the user's command, and an empty command to show the cost of a process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlstress.errors import NoWork, UsageError
from sqlstress.experiment import CommandLine
from sqlstress.experiments.exec.refusal import refuse_original
from sqlstress.experiments.exec.spec import Command, CommandSelection, ExecRequest
from sqlstress.experiments.exec.template import has_number, parse
from sqlstress.options.option import options_of, select_options
from sqlstress.options.parsing import choice, join_alternatives
from sqlstress.report.case import Case, common, otherwise
from sqlstress.request import OPEN_LOOP_OPTIONS, cases_at_rates
from sqlstress.statistics.units import format_duration
from sqlstress.target import program_drivers, takes
from sqlstress.user_work import options
from sqlstress.user_work.experiment import UserExperiment
from sqlstress.user_work.options import UNSUPPORTED_OPTIONS
from sqlstress.user_work.statements import dialect_of

if TYPE_CHECKING:
    from sqlstress.experiments.exec.show import ExecShown
    from sqlstress.experiments.exec.work import ExecWork

_KEPT_MODES = ("wal", "delete")
"""Journal modes that stay after the connection that sets them is closed, so that commands can use them.
"""
DATABASE_S = 0.3
"""Estimated time to create and check a trial's database, in seconds."""


def _first(request: ExecRequest, driver: str) -> Case:
    """Return a case (set of options) with the driver `driver`. Raises UsageError.

    All cases with this driver follow from it: they differ in the number of processes and the rate.
    """
    data = options.read(request.selection, dialect_of(driver))
    if data.database:
        refuse_original(request.spec.command, data.database)
    settings = replace(options.settings_of(request, data), synchronous=None)
    case = options.check_together(request, data)
    case = replace(case, spec=replace(request.spec, data=data), settings=settings)
    if case.ops is not None:
        case = replace(case, warmup_s=0.0)
    return options.on_target(request, case, driver, request.selection.where)


def _check_command(spec: Command) -> None:
    if not spec.command or not spec.command[0]:
        raise NoWork(
            "no command given. Use: sqlstress exec [OPTIONS] -- PROGRAM ARGUMENT...",
            'exec needs a command. Give command=["python", "work.py"].',
        )
    (first, *_), program = parse(spec.command), spec.command[0]
    hint = " Write its arguments as separate words." if " " in program.strip() else ""
    if not all(isinstance(part, str) for part in first):
        raise UsageError(f"the program {program!r:.200} must not contain placeholders.{hint}")
    if not shutil.which(program):
        raise UsageError(f"no such program: {program!r:.200}.{hint}")
    if spec.lines and spec.stdin is not None:
        raise UsageError("--lines writes the program's standard input itself. Leave out --stdin.")
    if spec.lines and has_number(spec.command):
        raise UsageError("with --lines, {n} is the line that the program reads. Leave it out of the command.")
    if spec.stdin is not None and not Path(spec.stdin).is_file():
        raise UsageError(f"--stdin: no such file: {spec.stdin!r:.200}.")


class ExecExperiment(UserExperiment):
    """Experiment `exec`: the user's command, repeated by several workers, each time in a new process."""

    name = "exec"
    spec = Command
    key = "exec"
    command = CommandLine(
        name="exec",
        summary="Any command, N at once, on a copy of your database.",
        help=(
            "Run a command repeatedly, N at once, each in a new process, on one database.\n\n"
            "Each trial uses a copy of --database, or the database that --setup makes. {db} and the "
            "variable SQLSTRESS_DATABASE hold its path. --check tests the data before, during and after "
            "the load. An empty command is measured in turns with yours. It takes about a minute."
        ),
        main_options=("setup", "check", "database", "concurrency", "lines", "inner", "timeout", "output"),
        example='sqlstress exec -c 4 -- sqlite3 -cmd ".timeout 5000" {db} "PRAGMA user_version={n}"',
    )
    options = (
        otherwise("concurrency", default="1,2,4,8"),
        otherwise("duration", default="1s"),
        *common("warmup"),
        otherwise("ops", help="Commands per process. Replaces --duration."),
        *common(*OPEN_LOOP_OPTIONS, "repeat"),
        *select_options(options_of(CommandSelection), "alone"),
        *options.WHERE,
        *options.DATA,
        *select_options(options_of(Command), "command", "lines", "inner", "stdin", "timeout"),
        otherwise(
            "journal-mode",
            parse=choice(*_KEPT_MODES),
            help=f"PRAGMA journal_mode of the database: {join_alternatives(_KEPT_MODES)}. Your commands "
            "choose the other settings.",
        ),
        otherwise("page-size", help="PRAGMA page_size of the database."),
        *options.CHECKS,
        *select_options(options_of(Command), "where"),
        *common("verify"),
        otherwise(
            "max-failed",
            help="Share of commands that may fail (a non-zero exit code, or a timeout). Exits 1 if more "
            "fail.",
        ),
        *options.SEED,
    )
    selection = CommandSelection
    unsupported = UNSUPPORTED_OPTIONS
    single_case_values = MappingProxyType({"alone": True})
    opens_database = False
    applies_settings = False

    def cases(self, request: ExecRequest) -> Iterator[Case]:
        """Yield a case of the command for each number of processes, target and rate.

        A target is SQLite or a server. Each case on the first target is followed by a case of the empty
        command, except with --alone or --lines. Raises UsageError for an invalid request.
        """
        _check_command(request.spec)
        if request.spec.inner > 1 and "rate" in request.given:
            raise UsageError("--inner needs a closed loop. Leave out --inner or --rate.")
        drivers = options.drivers(request, request.selection.where.target, program_drivers())
        firsts = [_first(request, driver) for driver in drivers]
        for concurrency in request.values_for("concurrency"):
            for first in firsts:
                for case in cases_at_rates(request, replace(first, concurrency=concurrency)):
                    yield case
                    # The empty command opens no database, so it is measured on the first target only.
                    if first is firsts[0] and not (request.selection.alone or first.spec.lines):
                        yield replace(case, spec=replace(first.spec, command=(), stdin=None, where=False))

    def traits(self, case: Case) -> dict[str, str]:
        spec, settings = case.spec, case.settings
        target_traits = {"isolation": case.server.isolation} if case.server else {}
        if takes(case.driver, "journal-mode"):
            target_traits |= {"journal-mode": settings.journal_mode, "page-size": str(settings.page_size)}
        return {
            "driver": case.driver,
            **target_traits,
            "command": spec.called,
            "lines": str(spec.lines),
            "inner": str(spec.inner),
            "timeout": format_duration(spec.timeout_s),
            "setup": f"{spec.data.setup} {spec.data.setup_digest}",
            "database": spec.data.database,
            "checks": str(spec.data.checks),
        }

    def work_key(self, case: Case) -> Case:
        return replace(case, spec=replace(case.spec, timeout_s=0.0, where=False))

    def unit(self, case: Case) -> str:
        spec = case.spec
        return "operation" if isinstance(spec, Command) and (spec.inner > 1 or spec.lines) else "command"

    def transactions_each(self, case: Case) -> int:
        return case.spec.inner if case.spec.command else 1

    def is_reference(self, case: Case) -> bool:
        return isinstance(case.spec, Command) and not case.spec.command

    def estimated_s(self, case: Case) -> float:
        return super().estimated_s(case) + DATABASE_S

    def timeout_s(self, case: Case) -> float:
        return float(case.spec.timeout_s)

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> ExecWork:
        from sqlstress.experiments.exec.work import ExecWork

        return ExecWork(case, place, salt, carry)

    def worker_half(self) -> Callable[..., Any]:
        from sqlstress.experiments.exec.worker import open_source

        return open_source

    def presenter(self) -> ExecShown:
        from sqlstress.experiments.exec.show import ExecShown

        return ExecShown()
