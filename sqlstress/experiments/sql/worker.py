"""A worker's half: draws scripts by weight, and runs each as a transaction."""

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
    Failed,
    Script,
    Sql,
    Step,
    leading,
    read,
    sets,
    statements,
    walked,
)
from sqlstress.statistics.histogram import Recorder
from sqlstress.targets import target_of
from sqlstress.user_work.failures import (
    Examined,
    Failures,
    Kind,
    short_sql,
    statement_kind,
    transaction_of,
)
from sqlstress.user_work.failures import Step as Ran
from sqlstress.user_work.source import UserSource
from sqlstress.user_work.statements import dialect_of

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.engine.protocols import Findings
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Session
    from sqlstress.user_work.rehearsal import Calls
    from sqlstress.user_work.tracing import Tracer

LEDGER = "sqlstress_ledger"
"""A table of ours: a row in each transaction proves that what was acknowledged is there, and that once."""
_NUMBER = "sqlstress_number"
_LONGEST_NAME = 60


class SqlSource(UserSource):
    """Runs scripts. What only sets variables at their beginning is done before the time is taken."""

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        spec = case.spec
        super().__init__(case, worker, salt, {one.name: one.weight for one in spec.scripts})
        self._client = place.client(worker) if place.stores else None
        self._connection: Session = self._client.connect(0) if self._client else Nowhere()
        acknowledged = memoryview(shared[0]).cast("B").cast("q")[worker - 1 : worker]
        self._ledger = Ledger(self._connection, worker, acknowledged) if spec.ledger else None
        self._times: dict[str, Times] | None = {} if spec.per_statement else None
        self._window: Window | None = None
        self._variables: Variables = {
            "client_id": worker - 1,
            "default_seed": case.seed,
            "random_seed": case.seed,
            "scale": spec.scale,
            **{name: _meant(text) for name, text in spec.define},
        }
        names, dialect = [name for name, _ in spec.define], dialect_of(case.driver)
        scripts = [read(one.name, one.text, names, dialect) for one in spec.scripts]
        # A script may leave variables to those after it, unless all of them set theirs before they begin.
        self._sets_late = any(map(_changes_late, scripts))
        # What a sleep takes is no cost of the harness, which is what is looked for where nothing is stored.
        sleep = self.sleep if self._client else _nothing
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
        """Do what a script's sleep asks for."""
        time.sleep(seconds)

    def _around(self, sql: Sql, run: Step) -> Step:
        """Time a statement, write into the ledger before a commit: as far as that is asked for."""
        if self._times is not None:
            run = self._times.setdefault(called(sql), Times()).timed(run)
        if self._ledger and sql.statement.commits:
            run = self._ledger.committed(run)
        return run

    def prepared(self, picks: Sequence[int]) -> list[Variables]:
        """Give each transaction its variables: those of the last one that is run are what others begin with.

        What a script sets while it runs the next one may find, so that then all have the same.
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
        """Return what runs a script; after BUSY it is begun again as a whole, with the same values."""
        in_transaction, clock, failures = self._connection.in_transaction, time.perf_counter, self._failures

        def once(variables: Variables) -> None:
            begun = clock()
            try:
                for step in steps:
                    step(variables)
            except Exception as error:
                if failures:
                    failures.add(script, error, clock() - begun)
                raise
            if in_transaction():
                raise Failed(f"{script.name} ends inside a transaction: add COMMIT or ROLLBACK")

        if not self._client:
            return once
        attempt = self._restored(once) if self._sets_late else once
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

    def _restored(self, once: Step) -> Step:
        """Return the same, which leaves variables and random numbers as they were where it fails."""
        stream = self.random

        def attempt(variables: Variables) -> None:
            before, state = variables.copy(), stream.getstate()
            try:
                once(variables)
            except Exception:
                variables.clear()
                variables.update(before)
                stream.setstate(state)
                raise

        return attempt

    def was_busy(self, error: Exception) -> bool:
        if self._client is None:
            return True  # a value that only a database could give is missing: it counts as not done
        if self._client.was_busy(error):
            return True
        place = getattr(error, "place", None)
        if place is None:
            raise error
        driver = self.case.driver
        raise EnvironmentFailure(f"{place}: {target_of(driver).explain(driver, error)}") from error

    def error_name(self, error: Exception) -> str:
        # The standard library's attribute; other drivers have no name for a code.
        return str(getattr(error, "sqlite_errorname", ""))

    def hear(self, window: Window) -> None:
        super().hear(window)
        self._window = window

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


def _meant(text: str) -> Value:
    """Return what stands on the command line for a variable: a number if it is one, as in pgbench."""
    try:
        value = parse_number(text)
    except NoValue:
        return text
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if is_number else text


def _changes_late(script: Script) -> bool:
    """Return whether a script changes variables behind what it sets at its beginning.

    A condition that draws a number counts too: for a second try it has to be the same.
    """
    behind = script.commands[leading(script) :]
    gets = any(one.prefix is not None for one in statements(behind))
    decides = any(isinstance(one, Branch) and one.expression.draws for one in walked(behind))
    return gets or decides or bool(sets(behind))


class Nowhere:
    """A database that does nothing: what remains is the harness's own cost."""

    def runs(self, sql: str) -> Step:
        return _nothing

    reads = runs

    def names(self, sql: str) -> Callable[[Any], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        return lambda _: ((), ((),))

    def rollback(self) -> None:
        """There is nothing to undo."""

    def in_transaction(self) -> bool:
        return False


def _nothing(_: Any) -> None:
    pass


class Ledger:
    """One worker's rows, each in the transaction that it stands for: they are numbered from 1."""

    def __init__(self, database: Session, worker: int, acknowledged: memoryview) -> None:
        """`acknowledged` is the worker's word in shared memory: how many of its commits it was told of."""
        self._insert = database.runs(f"INSERT INTO {LEDGER} VALUES ({worker}, :{_NUMBER})")
        self._acknowledged = acknowledged

    def committed(self, commit: Step) -> Step:
        """Return a commit that writes the row before it, and is noted when it is done."""
        insert, acknowledged = self._insert, self._acknowledged

        def step(variables: Variables) -> None:
            number = acknowledged[0] + 1
            insert({_NUMBER: number})
            commit(variables)
            acknowledged[0] = number

        return step


class Times:
    """How long a statement took, and when it ended."""

    def __init__(self) -> None:
        self._recorder, self._ended = Recorder(), list[tuple[int, int]]()

    def timed(self, run: Step) -> Step:
        """Return the statement, of which each time is kept until it is folded."""
        keep, clock = self._ended.append, time.perf_counter_ns

        def timed(variables: Variables) -> None:
            begun = clock()
            run(variables)
            keep((begun, clock()))

        return timed

    def fold(self, window: Window) -> None:
        """Keep what ended within the window."""
        opens, closes = window.opens_ns, window.closes_ns
        self._recorder.record([end - begun for begun, end in self._ended if opens <= end < closes])
        self._ended.clear()

    def histogram(self) -> tuple[dict[int, int], int]:
        """Return the histogram, and the longest, in nanoseconds."""
        buckets = self._recorder.buckets()
        return buckets, self._recorder.largest() if buckets else 0


def called(sql: Sql) -> str:
    """Return what a statement is called: its line, and how it begins."""
    text, place = " ".join(sql.statement.text.split()), sql.statement.place
    return f"{Path(place.file).name}:{place.line} {text}"[:_LONGEST_NAME]


# Statements that SQLite refused.


class ScriptFailures:
    """Failed statements of the scripts of a process.

    The state of a transaction follows from the script: it has no cursors that stay open, and its transactions
    end in it. The time is that of the transaction, which ends with the failure.
    """

    def __init__(self, case: Case) -> None:
        self._settings = case.settings
        self._failures = Failures()
        self.records = self._failures.records

    def add(self, script: Script, error: Exception, waited_s: float) -> None:
        """Record a failed statement, if the error has a result code of SQLite and a place."""
        code = getattr(error, "sqlite_errorcode", getattr(error, "extendedresult", None))
        place = getattr(error, "place", None)
        steps = [*statements(script.commands)]
        numbers = [number for number, step in enumerate(steps) if step.statement.place == place]
        if not isinstance(code, int) or not numbers:
            return
        statement = steps[numbers[0]].statement
        kind = Kind(code, short_sql(statement.text), f"{statement.place.file}:{statement.place.line}")
        self._failures.add(kind, str(error), waited_s, lambda: self._examine(steps[: numbers[0] + 1]))

    def _examine(self, steps: list[Sql]) -> Examined:
        """Return the facts of the last of these statements."""
        history, is_open = list[Ran](), False
        for step in steps:
            history.append((step.statement.text, is_open, None))
            kind = statement_kind(step.statement.text)
            is_open = kind == "begin" or (is_open and kind != "commit")
        *earlier, (sql, was_open, _) = history
        state, began, _ = transaction_of(earlier) if was_open else ("none", "", None)
        return Examined(
            timeout_ms=str(self._settings.busy_timeout_ms),
            journal=self._settings.journal_mode,
            statement=statement_kind(sql),
            transaction=state,
            began=began,
            open_cursor="no",
            shared_cache="no",
            holder="",
        )


# A rehearsal: scripts are run on a copy, and their statements are traced.


class Rehearsed(SqlSource):
    """Runs scripts, and tells a tracer of each statement before it is run."""

    def __init__(self, case: Case, place: SqlPlace, tracer: Tracer) -> None:
        self._tracer = tracer
        acknowledged = bytearray(8 * case.concurrency)
        super().__init__(case, place, 1, 0, (acknowledged,))

    def sleep(self, seconds: float) -> None:
        """Go on at once."""

    def _around(self, sql: Sql, run: Step) -> Step:
        run, tracer, place = super()._around(sql, run), self._tracer, sql.statement.place
        at = f"{place.file}:{place.line}"

        def placed(variables: Variables) -> Any:
            tracer.place = at
            return run(variables)

        return placed


def open_calls(case: Case, place: SqlPlace, tracer: Tracer) -> Calls:
    """Connect, and return what runs each script."""
    source = Rehearsed(case, place, tracer)

    def run(number: int) -> None:
        (variables,) = source.prepared([number])
        source.calls[number](variables)

    return {name: partial(run, number) for number, name in enumerate(source.kinds)}
