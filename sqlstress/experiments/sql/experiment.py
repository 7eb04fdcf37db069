"""The experiment `sql`, whose cases differ in number of processes, target, rate and ledger.

The ledger is a table of sqlstress with a row per writing transaction, which proves its commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.errors import NoWork, UsageError
from sqlstress.experiment import CommandLine
from sqlstress.experiments.sql.builtin import SCRIPTS, checks
from sqlstress.experiments.sql.script import Script, Sql, statements, states_behind
from sqlstress.experiments.sql.spec import (
    Scripted,
    Scripts,
    ScriptsRequest,
    SqlSelection,
    read_scripts,
    script_labels,
)
from sqlstress.options.option import options_of, select_options
from sqlstress.options.parsing import choice, suggestion
from sqlstress.report.case import Case, Server, common, otherwise
from sqlstress.request import cases_at_rates, supported_traits
from sqlstress.statistics.histogram import MAX_KINDS
from sqlstress.target import driver_help, script_drivers, stores_nothing
from sqlstress.targets import target_of
from sqlstress.user_work import options
from sqlstress.user_work.experiment import UserExperiment
from sqlstress.user_work.options import TargetOptions
from sqlstress.user_work.statements import dialect_of

if TYPE_CHECKING:
    from sqlstress.experiments.sql.show import SqlShown
    from sqlstress.experiments.sql.work import SqlWork
    from sqlstress.experiments.sql.worker import SqlSource

MAX_TEXT_BYTES = 64 << 10
"""Maximum size of all scripts together, in bytes: a report stores the scripts in each case."""
TRANSACTION_S = 500e-6
ROWS_S = 1e-6


def _first(request: ScriptsRequest, driver: str) -> Case:
    """Return a case with all options of the request except concurrency and rate. Raises UsageError."""
    scripts = tuple(_scripts(request.selection, driver))
    data = options.read(request.selection.data, dialect_of(driver))
    builtin_names = [script.name for script in scripts if script.name in SCRIPTS]
    tables = tuple(sorted({SCRIPTS[name].tables for name in builtin_names}))
    if not (tables or data.setup or data.database):
        raise UsageError("the scripts need tables. Give --setup FILE, --database FILE, or both.")
    data = replace(data, checks=(*checks(builtin_names, request.spec.scale), *data.checks))
    spec = replace(request.spec, scripts=scripts, data=data, builtin_setup=tables)
    settings = options.settings_of(request, data)
    _check(spec, driver)
    case = options.check_together(request, data)
    if case.ops is not None:
        case = replace(case, warmup_s=0.0, repeat=case.repeat if "repeat" in request.given else 1)
    case = replace(case, driver=driver, spec=spec, settings=settings)
    return target_of(driver).checked(case, request.selection.where.server, request.selection.where.anyway)


def _scripts(selection: SqlSelection, driver: str) -> Iterator[Scripted]:
    if not selection.script and not selection.builtin:
        raise NoWork(
            "nothing to run. Give a script (sqlstress sql transfer.sql), or --builtin bank.",
            'nothing to run. Give script=["transfer.sql"] or builtin=["bank"].',
        )
    for word in selection.builtin:
        name, weight = options.parse_weighted(word)
        if name not in SCRIPTS:
            names = ", ".join(SCRIPTS)
            raise UsageError(f"--builtin {name!r:.60} is not one of {names}.{suggestion(name, SCRIPTS)}")
        yield Scripted(name, SCRIPTS[name].text_for(driver), weight)
    for word in selection.script:
        name, weight = options.parse_weighted(word)
        if " " in name.strip() and not Path(name).exists():
            raise UsageError(
                f"no such file: {name!r:.60}. A script is a file: save the statement as query.sql, and give "
                "the name of that file."
            )
        yield Scripted(name, options.read_text_of(name, MAX_TEXT_BYTES), weight)


def _check(spec: Scripts, driver: str) -> None:
    names = [script.name for script in spec.scripts]
    if len(set(names)) < len(names):
        raise UsageError("a script is given twice. Give it once, with a weight (transfer.sql@2).")
    if spec.per_statement and len({Path(name).name for name in names}) < len(names):
        raise UsageError("--per-statement needs scripts with different names. Rename one of them.")
    if sum(len(script.text) for script in spec.scripts) > MAX_TEXT_BYTES:
        raise UsageError(f"the scripts have more than {MAX_TEXT_BYTES >> 10} KiB in all. Shorten them.")
    scripts = read_scripts(spec, driver)
    for script in scripts:
        _check_transaction(script, ledger=spec.ledger)
    all_sql = [command for script in scripts for command in statements(script.commands)]
    timed = len(all_sql) * spec.per_statement
    if len(scripts) + timed > MAX_KINDS:
        counted = "scripts and statements" if timed else "scripts"
        raise UsageError(f"there are more than {MAX_KINDS} {counted}. Measure fewer at once.")
    if stores_nothing(driver):
        for command in all_sql:
            if command.prefix is not None:
                raise command.statement.place.error(
                    "\\gset needs a row, and the dry driver returns none: use another --driver"
                )
    for script in scripts if spec.max_tries > 1 else ():
        _check_whole(script)


def _check_transaction(script: Script, *, ledger: bool) -> None:
    """Raise UsageError if a script begins a transaction that no statement ends.

    With `ledger` (--ledger), also raise it if the script writes without a BEGIN and exactly one COMMIT.
    """
    sql = list(statements(script.commands))
    begins = [command for command in sql if command.statement.begins]
    if begins and not any(command.statement.ends for command in sql):
        raise begins[0].statement.place.error("the transaction that begins here never ends: add COMMIT")
    commits = sum(command.statement.commits for command in sql)
    if ledger and any(map(_may_write, sql)) and (not begins or commits != 1):
        raise UsageError(
            f"{script.name}: --ledger adds a row to its transaction. Write exactly one BEGIN and one COMMIT."
        )


class _State(NamedTuple):
    is_open: bool
    """Whether a transaction is open at this position in a script."""
    has_written: bool
    """Whether the script has written before this position, committed or not."""


def _check_whole(script: Script) -> None:
    """Raise UsageError if a script writes, commits, and then runs further statements.

    If such a statement failed, a retry of the whole script would repeat the committed statements.
    """

    def next_state(command: Sql, state: _State) -> _State:
        sql = command.statement
        if state.has_written and not state.is_open:
            raise sql.place.error(
                "--max-tries begins a script again from the start, but earlier statements are already "
                "committed: put all into one transaction, or into separate scripts"
            )
        is_open = (state.is_open or sql.begins) and not sql.ends
        return _State(is_open, state.has_written or _may_write(command))

    states_behind(script.commands, {_State(False, False)}, next_state)


def _may_write(command: Sql) -> bool:
    return not (command.statement.reads or command.statement.begins or command.statement.ends)


class SqlExperiment(UserExperiment):
    """The experiment `sql`: the user's SQL scripts."""

    name = "sql"
    spec = Scripts
    key = "sql"
    command = CommandLine(
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
    )
    options = (
        *select_options(options_of(SqlSelection), "script", "builtin"),
        *options.DATA,
        *options.SWEPT,
        *select_options(options_of(TargetOptions), "target"),
        *select_options(options_of(Scripts), "scale", "define", "max-tries"),
        *options.CONNECTED,
        otherwise("driver", parse=choice(*script_drivers()), help=driver_help(script_drivers())),
        *select_options(options_of(Server)),
        *select_options(options_of(TargetOptions), "anyway"),
        *common("verify", "max-failed"),
        *options.CHECKS,
        *select_options(options_of(Scripts), "per-statement", "ledger", "strict"),
        *options.SEED,
    )
    selection = SqlSelection
    single_case_values = MappingProxyType({"ledger": None, "strict": None, "target": None})
    activity = "SQL scripts"
    retries_refused = False

    def cases(self, request: ScriptsRequest) -> Iterator[Case]:
        """Yield a case for each combination of concurrency, target (such as SQLite, PostgreSQL) and rate.

        Raise UsageError for invalid options. With --ledger, each case occurs a second time without the
        ledger, to show its cost. The cases without the ledger come first.
        """
        drivers = options.drivers(request, request.selection.where.target, script_drivers())
        firsts = [_first(request, driver) for driver in drivers]
        for ledger in (False, True) if request.spec.ledger else (False,):
            for concurrency in request.values_for("concurrency"):
                for first in firsts:
                    spec = replace(first.spec, ledger=ledger)
                    yield from cases_at_rates(request, replace(first, concurrency=concurrency, spec=spec))

    def traits(self, case: Case) -> dict[str, str]:
        # Scripts with equal names and different texts have equal labels: "script" shows no difference.
        return {**supported_traits(case), "script": script_labels(case.spec.scripts)}

    def work_label(self, case: Case) -> str:
        return script_labels(case.spec.scripts)

    def writes(self, case: Case) -> bool:
        try:
            scripts = read_scripts(case.spec, case.driver)
        except UsageError:
            # A report may contain a script that cannot be parsed. Assume that such a script writes.
            return True
        return any(_may_write(sql) for script in scripts for sql in statements(script.commands))

    def estimated_s(self, case: Case) -> float:
        load = case.duration_s + case.warmup_s
        if case.ops is not None:
            load = case.ops * case.concurrency * TRANSACTION_S
        rows: int = 100_000 * case.spec.scale * len(case.spec.builtin_setup)
        return load + ROWS_S * rows

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> SqlWork:
        from sqlstress.experiments.sql.work import SqlWork

        return SqlWork(case, place, salt, carry)

    def worker_half(self) -> Callable[..., SqlSource]:
        from sqlstress.experiments.sql.worker import SqlSource

        return SqlSource

    def presenter(self) -> SqlShown:
        from sqlstress.experiments.sql.show import SqlShown

        return SqlShown()
