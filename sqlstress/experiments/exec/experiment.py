"""The experiment with commands: for each number of processes the command, and one that does nothing."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlstress.errors import NoWork, UsageError
from sqlstress.experiment import Alike, CommandLine, Experiment, Words
from sqlstress.experiments.exec.refusal import refuse_original
from sqlstress.experiments.exec.template import has_number, parsed
from sqlstress.options.option import LOAD, REST, SWEEP, chosen, option, options_of
from sqlstress.options.parsing import choice, duration, either, shown, switch, whole
from sqlstress.plan import AT_A_RATE, Request, at_rates
from sqlstress.report.case import Case, common, otherwise
from sqlstress.statistics.units import format_duration
from sqlstress.target import for_programs, takes
from sqlstress.user_work import options
from sqlstress.user_work.options import NOWHERE, Data, DataOptions, Where
from sqlstress.user_work.statements import dialect_of

NOTHING = "empty command"
MOST_WORDS = 1000
MOST_BYTES = 100_000
"""Of all words together: less than any system takes."""


def words(value: Any) -> tuple[str, ...]:
    """Read a program and its words."""
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(one, str) and "\0" not in one for one in found):
        raise ValueError(f"{shown(value)} is not a list of texts: the program and its arguments")
    if len(found) > MOST_WORDS or sum(len(one.encode(errors="replace")) for one in found) > MOST_BYTES:
        raise ValueError(f"the command has more than {MOST_WORDS:,} words or {MOST_BYTES:,} bytes")
    return found


@dataclass(frozen=True, slots=True)
class Command:
    """The experiment with commands."""

    data: Data = field(default_factory=Data)
    """The database that they find, and what must hold of it."""
    command: tuple[str, ...] = option(
        words,
        (),
        LOAD,
        "The program and its arguments, after --. {n}, {worker}, {db}, {inner} and {random:1:1000} are "
        "replaced by values. Write {{ for a brace.",
        metavar="COMMAND...",
        argument=REST,
        meaning="The program and its arguments, with placeholders; empty: a command that does nothing.",
    )
    stdin: str | None = option(
        options.name,
        None,
        LOAD,
        "File for the standard input of each command. Default: empty input.",
        metavar="FILE",
        meaning="File for the standard input of each command; None: empty input.",
    )
    timeout_s: float = option(
        duration(0.01),
        "10s",
        LOAD,
        "Time limit of a command. A command that exceeds it is killed, with its children, and counts as "
        "failed.",
        name="timeout",
        metavar="TIME",
        meaning="Time limit of a command, in seconds.",
    )

    lines: bool = option(
        switch,
        False,
        LOAD,
        "Start the program once per process. It reads a line, works, and answers with the line ok or "
        "error MESSAGE.",
        flag=True,
        meaning="Whether the program is started once, and answers a line for each operation.",
    )
    inner: int = option(
        whole(1, 10**6),
        1,
        LOAD,
        "Operations that one command does; TPS counts each. {inner} is replaced by N.",
        metavar="N",
        meaning="Operations that one command does.",
    )
    where: bool = options.where_option()

    @property
    def called(self) -> str:
        """The command, as it is typed."""
        words = shlex.join(self.command)
        return f"{words} < {shlex.quote(self.stdin)}" if self.stdin else words or NOTHING


@dataclass(frozen=True, slots=True)
class Extra(DataOptions):
    """Options that only say which cases there are, and what is read."""

    alone: bool | None = option(
        switch,
        None,
        SWEEP,
        "Do not measure the empty command, which shows the cost of starting a process.",
        flag=True,
    )
    where: Where = NOWHERE


_KEPT_MODES = ("wal", "delete")
"""Those that a database keeps; the others are of a connection."""
GUESS_S = 0.3
"""What making the database and looking at it takes, about."""

ExecRequest = Request[Command, Extra]


def cases(request: ExecRequest) -> Iterator[Case]:
    """Yield the command for each number of processes, each target and each rate, and one that does nothing.

    Raises UsageError.
    """
    _check(request.spec)
    if request.spec.inner > 1 and "rate" in request.given:
        raise UsageError("--inner needs a closed loop. Leave out --inner or --rate.")
    drivers = options.drivers(request, request.extra.where.target, for_programs())
    firsts = [_first(request, driver) for driver in drivers]
    for concurrency in request.some("concurrency"):
        for first in firsts:
            for case in at_rates(request, replace(first, concurrency=concurrency)):
                yield case
                # It comes near no database: once is enough.
                if first is firsts[0] and not (request.extra.alone or first.spec.lines):
                    yield replace(case, spec=replace(first.spec, command=(), stdin=None, where=False))


def _first(request: ExecRequest, driver: str) -> Case:
    """Return the first case on the target of a driver. Raises UsageError."""
    data = options.read(request.extra, dialect_of(driver))
    if data.database:
        refuse_original(request.spec.command, data.database)
    settings = replace(options.settings_of(request, data), synchronous=None)
    case = options.check_together(request, data)
    case = replace(case, spec=replace(request.spec, data=data), settings=settings)
    if case.ops is not None:
        case = replace(case, warmup_s=0.0)
    return options.on_target(request, case, driver, request.extra.where)


def _check(spec: Command) -> None:
    """Raise UsageError for a command that can't be started."""
    if not spec.command or not spec.command[0]:
        raise NoWork(
            "no command given. Use: sqlstress exec [OPTIONS] -- PROGRAM ARGUMENT...",
            'exec needs a command. Give command=["python", "work.py"].',
        )
    (first, *_), program = parsed(spec.command), spec.command[0]
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


def _traits(case: Case) -> dict[str, str]:
    spec, settings = case.spec, case.settings
    there = {"isolation": case.server.isolation} if case.server else {}
    if takes(case.driver, "journal-mode"):
        there |= {"journal-mode": settings.journal_mode, "page-size": str(settings.page_size)}
    return {
        "driver": case.driver,
        **there,
        "command": spec.called,
        "lines": str(spec.lines),
        "inner": str(spec.inner),
        "timeout": format_duration(spec.timeout_s),
        "setup": f"{spec.data.setup} {spec.data.setup_digest}",
        "database": spec.data.database,
        "checks": str(spec.data.checks),
    }


def _variant(case: Case) -> Experiment:
    is_command = not isinstance(case.spec, Command) or (case.spec.inner == 1 and not case.spec.lines)
    return EXEC if is_command else replace(EXEC, words=Words(unit="operation"))


EXEC: Experiment = Experiment(
    name="exec",
    spec=Command,
    key="exec",
    command=CommandLine(
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
    ),
    options=(
        otherwise("concurrency", default="1,2,4,8"),
        otherwise("duration", default="1s"),
        *common("warmup"),
        otherwise("ops", help="Commands per process. Replaces --duration."),
        *common(*AT_A_RATE, "repeat"),
        *chosen(options_of(Extra), "alone"),
        *options.WHERE,
        *options.DATA,
        *chosen(options_of(Command), "command", "lines", "inner", "stdin", "timeout"),
        otherwise(
            "journal-mode",
            parse=choice(*_KEPT_MODES),
            help=f"PRAGMA journal_mode of the database: {either(_KEPT_MODES)}. Your commands choose the "
            "other settings.",
        ),
        otherwise("page-size", help="PRAGMA page_size of the database."),
        *options.CHECKS,
        *chosen(options_of(Command), "where"),
        *common("verify"),
        otherwise(
            "max-failed",
            help="Share of commands that may fail (a non-zero exit code, or a timeout). Exits 1 if more "
            "fail.",
        ),
        *options.SEED,
    ),
    by_itself={"alone": True},
    extra=Extra,
    without=options.ITS_OWN,
    cases=cases,
    alike=Alike(
        traits=_traits,
        same_work=lambda case: replace(case, spec=replace(case.spec, timeout_s=0.0, where=False)),
    ),
    words=Words(unit="command"),
    behaviour=replace(
        options.BEHAVIOUR,
        connects=False,
        sets=False,
        own_folder=True,
        starts_programs=True,
        guess_s=lambda case: case.duration_s + case.warmup_s + GUESS_S,
        timeout_s=lambda case: case.spec.timeout_s,
        transactions_each=lambda case: case.spec.inner if case.spec.command else 1,
    ),
    work="sqlstress.experiments.exec.work:ExecWork",
    worker="sqlstress.experiments.exec.worker:open_source",
    shown="sqlstress.experiments.exec.show:ExecShown",
    imports=lambda case: options.IMPORTS,
    companions=options.COMPANIONS,
    variant=_variant,
)
