"""The experiment with commands: for each number of processes the command, and one that does nothing."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.experiment import Alike, CommandLine, Experiment, Words
from sqlstress.experiments.exec.template import parsed
from sqlstress.options.option import LOAD, REST, SWEEP, chosen, either, option, options_of
from sqlstress.options.parsing import choice, duration, shown, switch
from sqlstress.plan import AT_A_RATE, Request, at_rates
from sqlstress.report.case import Case, common, otherwise
from sqlstress.statistics.units import format_duration
from sqlstress.target import takes
from sqlstress.user_work import options as own_data
from sqlstress.user_work.options import (
    BEHAVIOUR,
    COMPANIONS,
    ITS_OWN,
    NOWHERE,
    SEED,
    WHERE,
    Data,
    DataOptions,
    Where,
    check_together,
    drivers,
    name,
    on_target,
    settings_of,
)
from sqlstress.user_work.statements import dialect_of

# What a case of the experiment with commands says beside what all cases say.


NOTHING = "does nothing"
MOST_WORDS = 1000
MOST_BYTES = 100_000
"""Of all words together: less than any system takes."""


def words(value: Any) -> tuple[str, ...]:
    """Read a program and its words."""
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(one, str) and "\0" not in one for one in found):
        raise ValueError(f"{shown(value)} is not a list of words: the program, and each of its words")
    if len(found) > MOST_WORDS or sum(len(one.encode(errors="replace")) for one in found) > MOST_BYTES:
        raise ValueError(f"that are more than {MOST_WORDS:,} words, or {MOST_BYTES:,} bytes")
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
        "The program and its words, behind --: {n}, {worker}, {db} and {random:1:1000} stand for values, {{ "
        "for a brace.",
        metavar="COMMAND...",
        argument=REST,
        meaning="The program and its words, with what stands for values; none: one that does nothing.",
    )
    stdin: str | None = option(
        name,
        None,
        LOAD,
        "What each command reads as its standard input, from the beginning; nothing if not given.",
        metavar="FILE",
        meaning="The file that each command reads as its standard input; None: nothing.",
    )
    timeout_s: float = option(
        duration(0.01),
        "10s",
        LOAD,
        "How long a command may take: then it is ended, with all that it started, and has failed.",
        name="timeout",
        metavar="TIME",
        meaning="How long a command may take before it is ended, in seconds.",
    )

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
        "Leave out the command that does nothing, which shows what starting a process costs.",
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
    firsts = [_first(request, driver) for driver in drivers(request, request.extra.where)]
    for concurrency in request.some("concurrency"):
        for first in firsts:
            for own_case in at_rates(request, replace(first, concurrency=concurrency)):
                yield own_case
                # It comes near no database: once is enough.
                if first is firsts[0] and not request.extra.alone:
                    yield replace(own_case, spec=replace(first.spec, command=(), stdin=None))


def _first(request: ExecRequest, driver: str) -> Case:
    """Return the first case on the target of a driver. Raises UsageError."""
    data = own_data.read(request.extra, dialect_of(driver))
    settings = replace(settings_of(request, data), synchronous=None)
    case = replace(check_together(request, data), spec=replace(request.spec, data=data), settings=settings)
    if case.ops is not None:
        case = replace(case, warmup_s=0.0)
    return on_target(request, case, driver, request.extra.where)


def _check(spec: Command) -> None:
    """Raise UsageError for a command that can't be started."""
    if not spec.command or not spec.command[0]:
        raise UsageError("no command is given: sqlstress exec [OPTIONS] -- PROGRAM WORD...")
    (first, *_), program = parsed(spec.command), spec.command[0]
    if not all(isinstance(part, str) for part in first):
        hint = " Write its words apart, not as one." if " " in program.strip() else ""
        raise UsageError(f"{program!r:.200} is to be one program: nothing in it can stand for a value.{hint}")
    if not shutil.which(program):
        hint = " Write its words apart, not as one." if " " in program.strip() else ""
        raise UsageError(f"there is no program {program!r:.200} that can be run.{hint}")
    if spec.stdin is not None and not Path(spec.stdin).is_file():
        raise UsageError(f"--stdin {spec.stdin!r:.200}: there is no such file.")


def traits(case: Case) -> dict[str, str]:
    """Return a case in words, by option."""
    spec, settings = case.spec, case.settings
    there = {"isolation": case.server.isolation} if case.server else {}
    if takes(case.driver, "journal-mode"):
        there |= {"journal-mode": settings.journal_mode, "page-size": str(settings.page_size)}
    return {
        "driver": case.driver,
        **there,
        "command": spec.called,
        "timeout": format_duration(spec.timeout_s),
        "setup": f"{spec.data.setup} {spec.data.setup_digest}",
        "database": spec.data.database,
        "checks": str(spec.data.checks),
    }


def _same_work(case: Case) -> Case:
    return replace(case, spec=replace(case.spec, timeout_s=0.0))


EXEC = Experiment(
    name="exec",
    spec=Command,
    key="exec",
    command=CommandLine(
        name="exec",
        summary="Any command, N at once on a copy of your database.",
        help=(
            "Run a command over and over, N at once, each a fresh process, on one database.\n\n"
            "Each trial gets a copy of --database, or what --setup makes: {db} in a word is where it lies, "
            "and so is the variable SQLSTRESS_DB. What must hold of it (--check) is looked at before, "
            "during and after. A command that does nothing is measured in turns with it."
        ),
        example='sqlstress exec -c 4 -- sqlite3 -cmd ".timeout 5000" {db} "PRAGMA user_version={n}"',
    ),
    options=(
        otherwise("concurrency", default="1,2,4,8"),
        otherwise("duration", default="1s"),
        *common("warmup"),
        otherwise("ops", help="Commands for each worker, instead of a window."),
        *common(*AT_A_RATE, "repeat"),
        *chosen(options_of(Extra), "alone"),
        *WHERE,
        *own_data.DATA,
        *chosen(options_of(Command), "command", "stdin", "timeout"),
        otherwise(
            "journal-mode",
            parse=choice(*_KEPT_MODES),
            help=f"PRAGMA journal_mode of the database: {either(_KEPT_MODES)}, which it keeps. Other "
            "settings are those of the commands.",
        ),
        otherwise("page-size", help="PRAGMA page_size of the database."),
        *own_data.CHECKS,
        *common("verify"),
        otherwise(
            "max-failed",
            help="Share of the commands that may fail: exit with another code than 0, or take too long; "
            "more exits 1.",
        ),
        *SEED,
    ),
    by_itself={"alone": True},
    extra=Extra,
    without=ITS_OWN,
    cases=cases,
    alike=Alike(traits=traits, same_work=_same_work),
    words=Words(unit="command"),
    behaviour=replace(
        BEHAVIOUR,
        connects=False,
        sets=False,
        starts_programs=True,
        guess_s=lambda case: case.duration_s + case.warmup_s + GUESS_S,
        timeout_s=lambda case: case.spec.timeout_s,
    ),
    work="sqlstress.experiments.exec.work:ExecWork",
    worker="sqlstress.experiments.exec.worker:ExecSource",
    shown="sqlstress.experiments.exec.show:ExecShown",
    companions=COMPANIONS,
)
