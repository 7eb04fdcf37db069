"""The experiment with SQL scripts: its cases are scripts with numbers of processes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from sqlstress.errors import NoWork, UsageError
from sqlstress.experiment import Alike, CommandLine, Experiment, Words
from sqlstress.experiments.sql.builtin import SCRIPTS, checks
from sqlstress.experiments.sql.script import Script, Sql, read, statements, states_behind
from sqlstress.options.option import LOAD, MANY, TRUST, chosen, option, options_of
from sqlstress.options.parsing import choice, suggestion, switch, whole
from sqlstress.plan import Request, at_rates, traits_there
from sqlstress.report.case import Case, Server, Settings, common, otherwise
from sqlstress.statistics.histogram import MOST_KINDS
from sqlstress.target import driver_help, for_scripts, stores_nothing, target_name
from sqlstress.targets import target_of
from sqlstress.user_work import options
from sqlstress.user_work.options import NO_DATA, NO_OPTIONS, NOWHERE, Data, DataOptions, Where
from sqlstress.user_work.statements import dialect_of

MOST_TRIES = 1000
MOST_TEXT = 64 << 10
"""Bytes of all scripts together: they stand in every case of a report."""
TRANSACTION_S = 500e-6
ROWS_S = 1e-6
_DEFINED = re.compile(r"(\w+)=(.*)", re.ASCII | re.DOTALL)


def defines(value: Any) -> tuple[tuple[str, str], ...]:
    """Read several NAME=VALUE."""
    found = []
    for one in value if isinstance(value, list | tuple) else [value]:
        match = _DEFINED.fullmatch(one) if isinstance(one, str) else None
        if not match:
            raise ValueError(f"{str(one)[:40]!r} is not NAME=VALUE")
        found.append((match[1], match[2]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Scripted:
    """A script: a transaction, in pgbench's dialect."""

    name: str
    """The file, or the name of the one that is built in."""
    text: str
    """What stands in it."""
    weight: int = 1
    """How often it is drawn, beside the others."""


@dataclass(frozen=True, slots=True)
class Scripts:
    """What the workers of a case of SQL scripts do."""

    scripts: tuple[Scripted, ...] = ()
    """The scripts, of which each worker draws one after the other."""
    data: Data = NO_DATA
    """The database that they find, and what must hold of it."""
    builtin_setup: tuple[str, ...] = ()
    """Which tables that are built in are made: tpcb, bank."""
    scale: int = option(
        whole(1, 10_000), 1, LOAD, "Value of the variable :scale, and size of the built-in tables."
    )
    define: tuple[tuple[str, str], ...] = option(
        defines,
        (),
        LOAD,
        "Define a variable for all scripts. May be repeated.",
        short="D",
        metavar="NAME=VALUE",
        multiple=True,
        meaning="Variables of all scripts, as (name, value).",
    )
    max_tries: int = option(
        whole(1, MOST_TRIES),
        1,
        LOAD,
        "How often to try a transaction that fails with BUSY, as a whole, with the same values. On a server: "
        "with a serialization failure, a deadlock or a lock timeout.",
    )
    per_statement: bool = option(
        switch,
        False,
        TRUST,
        "Also show the latency of each statement.",
        flag=True,
        meaning="Whether each statement is timed too.",
    )
    ledger: bool = option(
        switch,
        False,
        TRUST,
        "Add a row to each writing transaction, which proves that every acknowledged transaction is there. "
        "Also measures the load without it, which shows the cost.",
        flag=True,
        meaning="Whether sqlstress adds a row to each transaction that writes.",
    )
    strict: bool = options.strict_option()


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that only say which cases there are."""

    script: tuple[str, ...] = option(
        options.names,
        (),
        LOAD,
        "Scripts, each with an optional weight: transfer.sql@3.",
        metavar="[SCRIPT[@N]]...",
        argument=MANY,
    )
    builtin: tuple[str, ...] = option(
        options.names,
        (),
        LOAD,
        "A built-in script, with an optional weight: tpcb-like, simple-update, select-only or "
        "bank. May be repeated.",
        aliases=("-b",),
        metavar="NAME[@N]",
        multiple=True,
    )
    where: Where = NOWHERE
    data: DataOptions = NO_OPTIONS


ScriptsRequest = Request[Scripts, Extra]


def cases(request: ScriptsRequest) -> Iterator[Case]:
    """Yield the cases, targets inside, rates innermost; with a ledger each also without it.

    Raises UsageError.
    """
    drivers = options.drivers(request, request.extra.where.target, for_scripts())
    firsts = [_first(request, driver) for driver in drivers]
    for ledger in (False, True) if request.spec.ledger else (False,):
        for concurrency in request.some("concurrency"):
            for first in firsts:
                spec = replace(first.spec, ledger=ledger)
                yield from at_rates(request, replace(first, concurrency=concurrency, spec=spec))


def _first(request: ScriptsRequest, driver: str) -> Case:
    """Return the first case with a driver. Raises UsageError."""
    scripts = tuple(_scripts(request.extra, driver))
    data = options.read(request.extra.data, dialect_of(driver))
    own = [one.name for one in scripts if one.name in SCRIPTS]
    tables = tuple(sorted({SCRIPTS[name].tables for name in own}))
    if not (tables or data.setup or data.database):
        raise UsageError("the scripts need tables. Give --setup FILE, --database FILE, or both.")
    data = replace(data, checks=(*checks(own, request.spec.scale), *data.checks))
    spec = replace(request.spec, scripts=scripts, data=data, builtin_setup=tables)
    settings = options.settings_of(request, data)
    _check(spec, settings, driver)
    case = options.check_together(request, data)
    if case.ops is not None:
        case = replace(case, warmup_s=0.0, repeat=case.repeat if "repeat" in request.given else 1)
    case = replace(case, driver=driver, spec=spec, settings=settings)
    return target_of(driver).checked(case, request.extra.where.server, request.extra.where.anyway)


def _scripts(extra: Extra, driver: str) -> Iterator[Scripted]:
    if not extra.script and not extra.builtin:
        raise NoWork(
            "nothing to run. Give a script (sqlstress sql transfer.sql), or --builtin bank.",
            'nothing to run. Give script=["transfer.sql"] or builtin=["bank"].',
        )
    for word in extra.builtin:
        name, weight = options.weighted(word)
        if name not in SCRIPTS:
            known = ", ".join(SCRIPTS)
            raise UsageError(f"--builtin {name!r:.60} is not one of {known}.{suggestion(name, SCRIPTS)}")
        yield Scripted(name, SCRIPTS[name].text_for(driver), weight)
    for word in extra.script:
        name, weight = options.weighted(word)
        if " " in name.strip() and not Path(name).exists():
            raise UsageError(
                f"no such file: {name!r:.60}. A script is a file: save the statement as query.sql, and give "
                "the name of that file."
            )
        yield Scripted(name, options.text_of(name, MOST_TEXT), weight)


def read_scripts(spec: Scripts, driver: str) -> list[Script]:
    """Return the scripts of a case. Raises UsageError, with the place in the file."""
    variables, dialect = [name for name, _ in spec.define], dialect_of(driver)
    return [read(one.name, one.text, variables, dialect) for one in spec.scripts]


def named(scripts: Sequence[Scripted]) -> str:
    """Return scripts in a few words."""
    return ", ".join(f"{one.name}@{one.weight}" if one.weight > 1 else one.name for one in scripts)


# What can't be run is refused.


def _check(spec: Scripts, settings: Settings, driver: str) -> None:
    names = [one.name for one in spec.scripts]
    if len(set(names)) < len(names):
        raise UsageError("a script is given twice. Give it once, with a weight (transfer.sql@2).")
    if spec.per_statement and len({Path(name).name for name in names}) < len(names):
        raise UsageError("--per-statement needs scripts with different names. Rename one of them.")
    if sum(len(one.text) for one in spec.scripts) > MOST_TEXT:
        raise UsageError(f"the scripts have more than {MOST_TEXT >> 10} KiB in all. Shorten them.")
    scripts = read_scripts(spec, driver)
    for script in scripts:
        _check_transaction(script, ledger=spec.ledger)
    all_sql = [one for script in scripts for one in statements(script.commands)]
    timed = len(all_sql) * spec.per_statement
    if len(scripts) + timed > MOST_KINDS:
        what = "scripts and statements" if timed else "scripts"
        raise UsageError(f"there are more than {MOST_KINDS} {what}. Measure fewer at once.")
    if stores_nothing(driver):
        for one in all_sql:
            if one.prefix is not None:
                raise one.statement.place.error(
                    "\\gset needs a row, and the dry driver returns none: use another --driver"
                )
    if again := _begun_again_by(spec.max_tries, settings, driver):
        for script in scripts:
            _check_whole(script, again)


def _check_transaction(script: Script, *, ledger: bool) -> None:
    """See that the transactions of a script end. What its conditions decide is seen when it runs."""
    sql = list(statements(script.commands))
    begins = [one for one in sql if one.statement.begins]
    if begins and not any(one.statement.ends for one in sql):
        raise begins[0].statement.place.error("the transaction that begins here never ends: add COMMIT")
    commits = sum(one.statement.commits for one in sql)
    if ledger and any(map(_may_write, sql)) and (not begins or commits != 1):
        raise UsageError(
            f"{script.name}: --ledger adds a row to its transaction. Write exactly one BEGIN and one COMMIT."
        )


def _begun_again_by(max_tries: int, settings: Settings, driver: str) -> str:
    """Return what begins scripts again as a whole, in words; nothing where nothing does."""
    if max_tries > 1:
        return "--max-tries begins a script again"
    if settings.busy != "fair" or target_name(driver) != "sqlite":
        return ""
    # Help loads this, and needs no SQLite.
    from sqlstress.targets.sqlite.drivers import load_driver

    return "" if load_driver(driver).HANDLES_BUSY else f"--busy fair begins a script again with {driver}"


class _State(NamedTuple):
    """What may be so at a place of a script."""

    is_open: bool
    has_written: bool


def _check_whole(script: Script, again: str) -> None:
    """See that a script is one transaction: begun again, it would do twice what was committed by itself."""

    def moved(command: Sql, state: _State) -> _State:
        sql = command.statement
        if state.has_written and not state.is_open:
            raise sql.place.error(
                f"{again} from the start, but earlier statements are already committed: put all into "
                "one transaction, or into separate scripts"
            )
        is_open = (state.is_open or sql.begins) and not sql.ends
        return _State(is_open, state.has_written or _may_write(command))

    states_behind(script.commands, {_State(False, False)}, moved)


def _may_write(one: Sql) -> bool:
    """Return whether a statement may write, as far as its words say it."""
    return not (one.statement.reads or one.statement.begins or one.statement.ends)


# What the others are told of its cases.


def _writes(case: Case) -> bool:
    try:
        scripts = read_scripts(case.spec, case.driver)
    except UsageError:
        return True  # a report is shown whatever texts it holds, and one that can't be read may write
    return any(_may_write(one) for script in scripts for one in statements(script.commands))


def _traits(case: Case) -> dict[str, str]:
    # A script that differs in its text only has the name of the other.
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
            "Measure your own SQL: files in the dialect of pgbench, each a transaction.\n\n"
            "Each process draws scripts by their weight (transfer.sql@3). The tables come from --setup or "
            "from a copy of your --database. --check names queries that test the data. It takes about half "
            "a minute; -c 4 takes less."
        ),
        takes=(".sql",),
        main_options=("setup", "check", "database", "builtin", "concurrency", "target", "output"),
        example=(
            "sqlstress sql examples/transfer/right.sql --setup examples/transfer/schema.sql "
            "--check examples/transfer/invariants.sql"
        ),
    ),
    options=(
        *chosen(options_of(Extra), "script", "builtin"),
        *options.DATA,
        *options.SWEPT,
        *chosen(options_of(Where), "target"),
        *chosen(options_of(Scripts), "scale", "define", "max-tries"),
        *options.CONNECTED,
        otherwise("driver", parse=choice(*for_scripts()), help=driver_help(for_scripts())),
        *chosen(options_of(Server)),
        *chosen(options_of(Where), "anyway"),
        *common("verify", "max-failed"),
        *options.CHECKS,
        *chosen(options_of(Scripts), "per-statement", "ledger", "strict"),
        *options.SEED,
    ),
    by_itself={"ledger": None, "strict": None, "target": None},
    extra=Extra,
    behaviour=replace(options.BEHAVIOUR, begins_again=False, writes=_writes, guess_s=_guess_s),
    cases=cases,
    words=Words(does="SQL scripts", work_of=lambda case: named(case.spec.scripts)),
    alike=Alike(traits=_traits),
    work="sqlstress.experiments.sql.work:SqlWork",
    worker="sqlstress.experiments.sql.worker:SqlSource",
    shown="sqlstress.experiments.sql.show:SqlShown",
    imports=lambda case: options.IMPORTS,
    companions=options.COMPANIONS,
)
