"""Worker's part of the experiment `sql`: runs scripts, drawn by weight, as transactions.

A step is a function that gets the variables and runs one command of a script. The window is the measured time
of a trial. The ledger is a table of sqlstress with a numbered row per writing transaction. The row proves
that the transaction was committed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.sql.expressions import Evaluator, NoValue, Value, Variables, parse_number
from sqlstress.experiments.sql.script import (
    Branch,
    Compiler,
    Script,
    ScriptFailed,
    Sql,
    Step,
    leading,
    read,
    script_uses,
    sets,
    statements,
    walked,
)
from sqlstress.recording.failures import (
    FailureCounter,
    FailureFacts,
    Kind,
    is_busy,
    is_checkpoint,
    short_sql,
    statement_kind,
    transaction_of,
)
from sqlstress.recording.failures import Step as Ran
from sqlstress.sqlite_codes import BUSY
from sqlstress.statistics.histogram import Recorder
from sqlstress.targets import target_of
from sqlstress.user_work.source import UserSource
from sqlstress.user_work.statements import dialect_of

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.engine.protocols import Findings
    from sqlstress.races.tracing import Tracer
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Session
    from sqlstress.user_work.rehearsal import Calls

LEDGER = "sqlstress_ledger"
"""Name of the table that `--ledger` adds to the database."""
_NUMBER = "sqlstress_number"
_LONGEST_NAME = 60


class SqlSource(UserSource):
    r"""Operations of a worker: scripts that it draws by weight and runs as transactions.

    The leading \set commands of a script run in advance, so that they do not count as latency.
    """

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        spec = case.spec
        super().__init__(case, worker, salt, {script.name: script.weight for script in spec.scripts})
        self._client = place.client(worker) if place.stores else None
        self._connection: Session = self._client.connect(0) if self._client else NoDatabase()
        acknowledged = memoryview(shared[0]).cast("B").cast("q")[worker - 1 : worker]
        self._ledger = ScriptLedger(self._connection, worker, acknowledged) if spec.ledger else None
        self._times: dict[str, StatementTimes] | None = {} if spec.per_statement else None
        self._window: Window | None = None
        self._variables: Variables = {
            "client_id": worker - 1,
            "default_seed": case.seed,
            "random_seed": case.seed,
            "scale": spec.scale,
            **{name: _variable_value(text) for name, text in spec.define},
        }
        names, dialect = [name for name, _ in spec.define], dialect_of(case.driver)
        self.scripts = scripts = [read(script.name, script.text, names, dialect) for script in spec.scripts]
        # If a script changes variables later than in its leading \set commands, the next script must see the
        # changes. So no script's leading \set commands can run in advance.
        self._sets_late = any(map(_changes_late, scripts))
        # Without a database (driver dry) only the time of our own code is measured, so scripts do not sleep.
        sleep = self.sleep if self._client else _do_nothing
        self._evaluator = Evaluator(self.random)
        self._failures = None if case.server else ScriptFailures(case)
        compiler = Compiler(self._evaluator, self._connection, self._around, sleep)
        heads = [0 if self._sets_late else leading(script) for script in scripts]
        self._heads = [
            compiler.steps(script.commands[:head]) for script, head in zip(scripts, heads, strict=True)
        ]
        self.calls = [
            self._transaction(script, compiler.steps(script.commands[head:]))
            for script, head in zip(scripts, heads, strict=True)
        ]

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _around(self, sql: Sql, run: Step) -> Step:
        """Return a step that runs a statement by `run`, and times it if --per-statement is set.

        With --ledger, the step of a COMMIT also writes a row of the ledger. The step of a checkpoint also
        checks whether its result is "busy".
        """
        if self._failures and is_checkpoint(sql.statement.text):
            run = self._failures.checkpoint(sql, run)
        if self._times is not None:
            run = self._times.setdefault(statement_label(sql), StatementTimes()).timed(run)
        if self._ledger and sql.statement.commits:
            run = self._ledger.committed(run)
        return run

    def prepare(self, picks: Sequence[int]) -> list[Variables]:
        r"""Return the variables for each of the next transactions. `picks` has their script numbers.

        The leading \set commands of the script are run in advance. Other variables keep their values from
        transaction to transaction. If any script also changes variables later, nothing is set in advance: all
        transactions share one mapping.
        """
        if self._sets_late:
            return [self._variables] * len(picks)
        prepared, variables = [], self._variables
        for pick in picks:
            variables = variables.copy()
            for step in self._heads[pick]:
                step(variables)
            prepared.append(variables)
        return prepared

    def _transaction(self, script: Script, steps: Sequence[Step]) -> Step:
        """Return a function that runs a script as one transaction.

        If the database is busy, the function rolls back and runs the script again, up to --max-tries times
        in all, with the variables and random numbers of the first try.
        """
        in_transaction, clock, failures = self._connection.in_transaction, time.perf_counter, self._failures

        def once(variables: Variables) -> None:
            started_s = clock()
            try:
                for step in steps:
                    step(variables)
            except Exception as error:
                if failures:
                    failures.add(script, error, clock() - started_s)
                raise
            if in_transaction():
                raise ScriptFailed(f"{script.name} ends inside a transaction: add COMMIT or ROLLBACK")

        if not self._client:
            return once
        attempt = self._with_rollback(once) if self._sets_late else once
        client, rollback, max_tries = self._client, self._connection.rollback, self.case.spec.max_tries

        def transaction(variables: Variables) -> None:
            for tries_left in reversed(range(max_tries)):
                try:
                    attempt(variables)
                except Exception as error:
                    rollback()
                    if not (tries_left and client.was_busy(error)):
                        raise
                else:
                    return

        return transaction

    def _with_rollback(self, once: Step) -> Step:
        """Return a step that runs a script by `once`, and permits a retry after an error.

        After an error, the returned step restores the variables and the state of the random numbers.
        """
        stream = self.random

        def attempt(variables: Variables) -> None:
            previous, state = variables.copy(), stream.getstate()
            try:
                once(variables)
            except Exception:
                variables.clear()
                variables.update(previous)
                stream.setstate(state)
                raise

        return attempt

    def was_busy(self, error: Exception) -> bool:
        if self._client is None:
            # Without a database \gset sets no variable, so later uses of the variable fail. Treat such an
            # error like a busy database: the transaction is counted as failed, and the load continues.
            return True
        if self._client.was_busy(error):
            return True
        place = getattr(error, "place", None)
        if place is None:
            raise error
        driver = self.case.driver
        raise EnvironmentFailure(f"{place}: {target_of(driver).explain(driver, error)}") from error

    def error_name(self, error: Exception) -> str:
        # Of all drivers, only the standard library's sqlite3 sets the attribute sqlite_errorname.
        return str(getattr(error, "sqlite_errorname", ""))

    def hear(self, window: Window) -> None:
        super().hear(window)
        self._window = window
        if self._failures:
            self._failures.counter.window = window

    def settle(self, chunk: Any, done: int, results: list[Any], stamps: Any) -> None:
        super().settle(chunk, done, results, stamps)
        if done:
            self._variables = chunk.params[done - 1]
        if self._times and self._window:
            for times in self._times.values():
                times.fold(self._window)

    def busy_counts(self) -> tuple[int, int]:
        return self._client.busy_counts() if self._client else (0, 0)

    def effective(self) -> dict[str, str]:
        return self._client.effective() if self._client else {}

    def findings(self) -> Findings:
        findings = super().findings()
        if self._failures:
            findings.sightings += self._failures.records()
        findings.latency = {name: times.histogram() for name, times in (self._times or {}).items()}
        return findings

    def close(self) -> None:
        self._evaluator.close()
        if self._client:
            self._client.close()


def _variable_value(text: str) -> Value:
    """Return the value of a variable from `-D NAME=TEXT`: a number if possible, as in pgbench."""
    try:
        value = parse_number(text)
    except NoValue:
        return text
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if is_number else text


def _changes_late(script: Script) -> bool:
    r"""Return whether a script, after its leading \set commands, changes variables or draws in an \if.

    If so, a retry must first restore the variables and the state of the random numbers.
    """
    remainder = script.commands[leading(script) :]
    gets = any(command.prefix is not None for command in statements(remainder))
    decides = any(isinstance(command, Branch) and command.expression.draws for command in walked(remainder))
    return gets or decides or bool(sets(remainder))


class NoDatabase:
    """Connection that does nothing, with which the cost of our own code is measured (driver `dry`)."""

    def runs(self, sql: str) -> Step:
        return _do_nothing

    reads = runs

    def names(self, sql: str) -> Callable[[Any], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        return lambda _: ((), ((),))

    def rollback(self) -> None:
        """Do nothing: without a database there is no transaction."""

    def in_transaction(self) -> bool:
        return False


def _do_nothing(_: Any) -> None:
    pass


class ScriptLedger:
    """Writer of a worker's ledger rows: a numbered row at the end of each transaction."""

    def __init__(self, database: Session, worker: int, acknowledged: memoryview) -> None:
        """`acknowledged[0]`, in shared memory, is the number of acknowledged commits."""
        self._insert = database.runs(f"INSERT INTO {LEDGER} VALUES ({worker}, :{_NUMBER})")
        self._acknowledged = acknowledged

    def committed(self, commit: Step) -> Step:
        """Return a step that adds a row to the ledger, calls `commit`, and counts an acknowledged commit."""
        insert, acknowledged = self._insert, self._acknowledged

        def step(variables: Variables) -> None:
            number = acknowledged[0] + 1
            insert({_NUMBER: number})
            commit(variables)
            acknowledged[0] = number

        return step


class StatementTimes:
    """Recorder of the latencies of one statement, for --per-statement."""

    def __init__(self) -> None:
        self._recorder, self._ended = Recorder(), list[tuple[int, int]]()

    def timed(self, run: Step) -> Step:
        """Return `run` with a timer, whose times are kept until `fold`."""
        keep, clock = self._ended.append, time.perf_counter_ns

        def timed(variables: Variables) -> None:
            started_ns = clock()
            run(variables)
            keep((started_ns, clock()))

        return timed

    def fold(self, window: Window) -> None:
        """Record the latencies of executions that ended within the measured window; discard all others."""
        opens, closes = window.opens_ns, window.closes_ns
        self._recorder.record([end - start for start, end in self._ended if opens <= end < closes])
        self._ended.clear()

    def histogram(self) -> tuple[dict[int, int], int]:
        """Return (histogram, longest latency in ns)."""
        buckets = self._recorder.buckets()
        return buckets, self._recorder.largest() if buckets else 0


def statement_label(sql: Sql) -> str:
    """Return the label of a statement, such as "transfer.sql:3 UPDATE account SET"."""
    text, place = " ".join(sql.statement.text.split()), sql.statement.place
    return f"{Path(place.file).name}:{place.line} {text}"[:_LONGEST_NAME]


class ScriptFailures:
    """Counter of failed statements in a worker's scripts, with the time until each failure.

    The time is measured from the start of the script, or of the statement if it is a checkpoint. Each script
    begins outside a transaction, so its text shows whether a failed statement was in a transaction.
    """

    def __init__(self, case: Case) -> None:
        self._settings = case.settings
        self.counter = FailureCounter()
        self.records = self.counter.records

    def add(self, script: Script, error: Exception, waited_s: float) -> None:
        """Record a failed statement, if `error` has an SQLite result code and a position in the script."""
        code = getattr(error, "sqlite_errorcode", getattr(error, "extendedresult", None))
        place = getattr(error, "place", None)
        steps = [*statements(script.commands)]
        numbers = [number for number, step in enumerate(steps) if step.statement.place == place]
        if not isinstance(code, int) or not numbers:
            return
        statement = steps[numbers[0]].statement
        kind = Kind(code, short_sql(statement.text), f"{statement.place.file}:{statement.place.line}")
        self.counter.add(kind, str(error), waited_s, lambda: self._examine(steps[: numbers[0] + 1]))

    def checkpoint(self, sql: Sql, run: Step) -> Step:
        """Return a step that runs PRAGMA wal_checkpoint, and records a failure if its row reports busy.

        A checkpoint that is blocked raises no error: the first column of its row is 1.
        """
        text, place = sql.statement.text, sql.statement.place
        kind = Kind(BUSY, short_sql(text), f"{place.file}:{place.line}")

        def step(variables: Variables) -> Any:
            begun_s = time.perf_counter()
            rows = run(variables)
            if is_busy(rows):
                waited_s = time.perf_counter() - begun_s
                self.counter.add(kind, f"its answer was {rows[0]}", waited_s, lambda: self._examine([sql]))
            return rows

        return step

    def _examine(self, steps: list[Sql]) -> FailureFacts:
        """Return facts on a failed statement: the last of `steps`, the statements of its script so far."""
        history, is_open = list[Ran](), False
        for step in steps:
            history.append((step.statement.text, is_open, None))
            kind = statement_kind(step.statement.text)
            is_open = kind == "begin" or (is_open and kind != "commit")
        *earlier, (sql, was_open, _) = history
        state, began, _ = transaction_of(earlier) if was_open else ("none", "", None)
        return FailureFacts(
            timeout_ms=str(self._settings.busy_timeout_ms),
            journal=self._settings.journal_mode,
            statement=statement_kind(sql),
            transaction=state,
            began=began,
            open_cursor="no",
            shared_cache="no",
            holder="",
        )


class RehearsalSource(SqlSource):
    """Scripts in a rehearsal: traced runs on a copy of the data, to find races.

    The tracer gets the position of each statement in its script, so that findings can name the line.
    """

    def __init__(self, case: Case, place: SqlPlace, tracer: Tracer) -> None:
        self._tracer = tracer
        acknowledged = bytearray(8 * case.concurrency)
        super().__init__(case, place, 1, 0, (acknowledged,))
        self._uses = {place: use for script in self.scripts for place, use in script_uses(script.commands)}

    def sleep(self, seconds: float) -> None:
        """Do not sleep, because a rehearsal measures no latencies."""

    def _around(self, sql: Sql, run: Step) -> Step:
        run, tracer, place = super()._around(sql, run), self._tracer, sql.statement.place
        at = f"{place.file}:{place.line}"

        def placed(variables: Variables) -> Any:
            tracer.place, tracer.script = at, self._uses[place]
            return run(variables)

        return placed


def open_calls(case: Case, place: SqlPlace, tracer: Tracer) -> Calls:
    """Connect to the database; return functions that run a script once, by name of the script.

    While a function runs, `tracer` gets the position of each statement.
    """
    source = RehearsalSource(case, place, tracer)

    def run(number: int) -> None:
        (variables,) = source.prepare([number])
        source.calls[number](variables)

    return {name: partial(run, number) for number, name in enumerate(source.kinds)}
