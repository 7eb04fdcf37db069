"""The experiment with SQL scripts: its cases are scripts with numbers of processes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sqlstress.errors import UsageError
from sqlstress.experiment import Alike, CommandLine, Experiment, Words
from sqlstress.experiments.sql.builtin import SCRIPTS, checks
from sqlstress.experiments.sql.script.reading import read, statements
from sqlstress.experiments.sql.script.tree import Command, If, Script, Sql
from sqlstress.experiments.sql.spec import Extra, Scripted, Scripts, named
from sqlstress.options.option import chosen, options_of
from sqlstress.options.parsing import choice
from sqlstress.plan import Request, at_rates, suggestion
from sqlstress.report.case import SETTINGS, Case, Settings, common, otherwise
from sqlstress.report.server import Server
from sqlstress.statistics.histogram import MOST_KINDS
from sqlstress.target import for_scripts, stores_nothing, target_name, told
from sqlstress.targets import options as target_options
from sqlstress.targets import target_of
from sqlstress.targets.options import traits_there
from sqlstress.user_work import options
from sqlstress.user_work.files import text_of, weighted
from sqlstress.user_work.options import BEHAVIOUR, CHECKS, COMPANIONS, DATA, Data
from sqlstress.user_work.options import read as read_data
from sqlstress.user_work.statements import dialect_of

MOST_TEXT = 64 << 10
"""Bytes of all scripts together: they stand in every case of a report."""
TRANSACTION_S = 500e-6
ROWS_S = 1e-6

DRIVER = otherwise("driver", parse=choice(*for_scripts()), help=told(for_scripts()))

ScriptsRequest = Request[Scripts, Extra]


def cases(request: ScriptsRequest) -> Iterator[Case]:
    """Yield the cases, targets inside, rates innermost; with a ledger each also without it.

    Raises UsageError.
    """
    firsts = [_first(request, driver) for driver in drivers(request)]
    for ledger in (False, True) if request.spec.ledger else (False,):
        for concurrency in request.some("concurrency"):
            for first in firsts:
                spec = replace(first.spec, ledger=ledger)
                yield from at_rates(request, replace(first, concurrency=concurrency, spec=spec))


def _first(request: ScriptsRequest, driver: str) -> Case:
    """Return the first case with a driver. Raises UsageError."""
    scripts = tuple(_scripts(request.extra, driver))
    data = read_data(request.extra.data, dialect_of(driver))
    names = [one.name for one in scripts]
    own = [name for name in names if name in SCRIPTS]
    tables = tuple(sorted({SCRIPTS[name].tables for name in own}))
    if not (tables or data.setup or data.database):
        raise UsageError("these scripts have no tables: give --setup FILE, --database FILE, or both.")
    data = replace(data, checks=(*checks(own, request.spec.scale), *data.checks))
    spec = replace(request.spec, scripts=scripts, data=data, builtin_setup=tables)
    _check(spec, driver)
    if stores_nothing(driver):
        _check_without_rows(spec, driver)
    settings = options.settings_of(request, data)
    if again := begun_again_by(spec.max_tries, settings, driver):
        for script in read_scripts(spec, driver):
            check_whole(script, again)
    case = replace(_checked(request, data), driver=driver, spec=spec, settings=settings)
    return target_of(driver).checked(case, request.extra.server, request.extra.anyway)


def _checked(request: ScriptsRequest, data: Data) -> Case:
    case = options.check_together(request, data)
    if case.ops is not None:
        return replace(case, warmup_s=0.0, repeat=case.repeat if "repeat" in request.given else 1)
    return case


def _scripts(extra: Extra, driver: str) -> Iterator[Scripted]:
    if not extra.script and not extra.builtin:
        raise UsageError("nothing to run: give a script (sqlstress sql transfer.sql), or -b bank.")
    for word in extra.builtin:
        name, weight = weighted(word)
        if name not in SCRIPTS:
            known = ", ".join(SCRIPTS)
            raise UsageError(f"--builtin {name!r:.60} is not one of {known}.{suggestion(name, SCRIPTS)}")
        yield Scripted(name, SCRIPTS[name].text_for(driver), weight)
    for word in extra.script:
        name, weight = weighted(word)
        yield Scripted(name, text_of(name, MOST_TEXT), weight)


def read_scripts(spec: Scripts, driver: str) -> list[Script]:
    """Return the scripts of a case. Raises UsageError, with the place in the file."""
    variables, dialect = [name for name, _ in spec.define], dialect_of(driver)
    return [read(one.name, one.text, variables, dialect) for one in spec.scripts]


def _check(spec: Scripts, driver: str) -> None:
    """Refuse what can't be run. Raises UsageError."""
    names = [one.name for one in spec.scripts]
    if len(set(names)) < len(names):
        raise UsageError("a script is given twice: give it once, with a weight (transfer.sql@2).")
    if spec.per_statement and len({Path(name).name for name in names}) < len(names):
        raise UsageError("--per-statement needs scripts of different names: rename one of them.")
    if sum(len(one.text) for one in spec.scripts) > MOST_TEXT:
        raise UsageError(f"the scripts have more than {MOST_TEXT >> 10} KiB together.")
    scripts = read_scripts(spec, driver)
    for script in scripts:
        _check_transaction(script, ledger=spec.ledger)
    timed = sum(len(list(statements(script.commands))) for script in scripts) * spec.per_statement
    if len(scripts) + timed > MOST_KINDS:
        what = "scripts and statements" if timed else "scripts"
        raise UsageError(f"these are more than {MOST_KINDS} {what}: measure fewer at once.")


def _check_without_rows(spec: Scripts, driver: str) -> None:
    for script in read_scripts(spec, driver):
        for one in statements(script.commands):
            if one.prefix is not None:
                raise one.place.error(
                    "the dry driver returns no row for \\gset to take values from: use another --driver"
                )


def _check_transaction(script: Script, *, ledger: bool) -> None:
    """See that the transactions of a script end. What its conditions decide is seen when it runs."""
    own = list(statements(script.commands))
    begins = [one for one in own if one.statement.begins]
    if begins and not any(one.statement.ends for one in own):
        raise begins[0].place.error("the transaction that begins here is never ended: add COMMIT")
    commits = sum(one.statement.commits for one in own)
    if ledger and writes(script) and (not begins or commits != 1):
        raise UsageError(
            f"{script.name}: --ledger needs one BEGIN and one COMMIT in a script that writes, so that a row "
            "of ours is in its transaction."
        )


def writes(script: Script) -> bool:
    """Return whether a script may write, as far as the words of its statements say it."""
    return any(map(may_write, statements(script.commands)))


def _case_writes(case: Case) -> bool:
    try:
        return any(map(writes, read_scripts(case.spec, case.driver)))
    except UsageError:
        return True  # a report is shown whatever texts it holds, and one that can't be read may write


def _work_of(case: Case) -> str:
    """Return what its processes do; a script that differs in its text only has the name of the other."""
    return named(case.spec.scripts)


def _traits(case: Case) -> dict[str, str]:
    return {**traits_there(case), "script": named(case.spec.scripts)}


def _guess_s(case: Case) -> float:
    load: float = case.duration_s + case.warmup_s
    if case.ops is not None:
        load = case.ops * case.concurrency * TRANSACTION_S
    rows: int = 100_000 * case.spec.scale * len(case.spec.builtin_setup)
    return load + ROWS_S * rows


SQL = Experiment(
    name="sql",
    spec=Scripts,
    key="sql",
    command=CommandLine(
        name="sql",
        summary="Your own SQL: scripts in pgbench's dialect, run by N processes.",
        help=(
            "Measure scripts of your own: files of SQL in the dialect of pgbench, each a transaction.\n\n"
            "Each process draws one script after the other by its weight (transfer.sql@3). The tables "
            "come from --setup, or from a copy of your database; --check names what must always hold."
        ),
        example=(
            "sqlstress sql examples/transfer/right.sql --setup examples/transfer/schema.sql "
            "--check examples/transfer/invariants.sql"
        ),
    ),
    options=(
        *chosen(options_of(Extra), "script", "builtin"),
        *DATA,
        *options.SWEPT,
        *chosen(options_of(Extra), "target"),
        *chosen(options_of(Scripts), "scale", "define", "max-tries"),
        *options.CONNECTED,
        DRIVER,
        *chosen(options_of(Server)),
        *chosen(options_of(Extra), "anyway"),
        *common("verify", "max-failed"),
        *CHECKS,
        *chosen(options_of(Scripts), "per-statement", "ledger"),
        *options.SEED,
    ),
    by_itself={"ledger": None, "target": None},
    extra=Extra,
    behaviour=replace(BEHAVIOUR, begins_again=False, writes=_case_writes, guess_s=_guess_s),
    cases=cases,
    words=Words(does="SQL scripts", work_of=_work_of),
    alike=Alike(traits=_traits),
    work="sqlstress.experiments.sql.work:SqlWork",
    worker="sqlstress.experiments.sql.worker:SqlSource",
    shown="sqlstress.experiments.sql.show:SqlShown",
    companions=COMPANIONS,
)


# Whether a script is one transaction: begun again, it would do twice what was committed by itself.


class _State(NamedTuple):
    """What may be so at a place of a script."""

    is_open: bool
    has_written: bool


def begun_again_by(max_tries: int, settings: Settings, driver: str) -> str:
    """Return what begins scripts again as a whole, in words; nothing where nothing does."""
    if max_tries > 1:
        return "--max-tries begins a script again"
    if settings.busy != "fair" or target_name(driver) != "sqlite":
        return ""
    # Help loads this, and needs no SQLite.
    from sqlstress.targets.sqlite.drivers import load_driver

    return "" if load_driver(driver).HANDLES_BUSY else f"--busy fair begins a script again with {driver}"


def check_whole(script: Script, again: str) -> None:
    """See that a script is one transaction, whatever branches it takes. Raises UsageError, with its place."""
    _walked(script.commands, {_State(False, False)}, again)


def _walked(commands: Collection[Command], states: set[_State], again: str) -> set[_State]:
    for command in commands:
        if isinstance(command, Sql):
            states = {_behind(command, state, again) for state in states}
        elif isinstance(command, If):
            bodies = (*(branch.body for branch in command.branches), command.otherwise)
            states = set().union(*(_walked(body, states, again) for body in bodies))
    return states


def _behind(one: Sql, state: _State, again: str) -> _State:
    if state.has_written and not state.is_open:
        raise one.place.error(
            f"{again} as a whole, and what stands before this is committed by itself: put all of it into one "
            "transaction, or into scripts of their own"
        )
    is_open = (state.is_open or one.statement.begins) and not one.statement.ends
    return _State(is_open, state.has_written or may_write(one))


def may_write(one: Sql) -> bool:
    """Return whether a statement may write, as far as its words say it."""
    return not (one.statement.reads or one.statement.begins or one.statement.ends)


# On which targets scripts are run, and what of the options means something there.


def drivers(request: Request[Scripts, Extra]) -> tuple[str, ...]:
    """Return the drivers that are asked for, one of each target. Raises UsageError."""
    found = target_options.drivers(request, request.extra.target, for_scripts())
    target_options.check_options(request, found, SETTINGS, any)
    target_options.check_options(request, found, ("database",), all)
    target_options.check_servers(request, found, for_scripts())
    return found
