"""A worker's half: draws scripts by weight, and runs each as a transaction."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.sql.ledger import Ledger
from sqlstress.experiments.sql.script.compiling import Compiler, Failed, Step, leading, sets
from sqlstress.experiments.sql.script.expressions import Variables, draws
from sqlstress.experiments.sql.script.functions import NoValue, meant
from sqlstress.experiments.sql.script.reading import read, statements
from sqlstress.experiments.sql.script.tree import Command, If, Script, Value
from sqlstress.statistics.histogram import Recorder
from sqlstress.targets import target_of
from sqlstress.user_work.source import OwnSource
from sqlstress.user_work.statements import dialect_of

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.engine.protocols import Findings
    from sqlstress.experiments.sql.ledger import Ledger
    from sqlstress.experiments.sql.script.compiling import Step
    from sqlstress.experiments.sql.script.expressions import Variables
    from sqlstress.experiments.sql.script.tree import Sql
    from sqlstress.report.case import Case
    from sqlstress.targets.dry.store import DryPlace
    from sqlstress.targets.place import SqlPlace


class SqlSource(OwnSource):
    """Runs scripts. What only sets variables at their beginning is done before the time is taken."""

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        spec = case.spec
        super().__init__(
            case, worker, salt, [one.name for one in spec.scripts], [one.weight for one in spec.scripts]
        )
        self._client = place.client(worker) if place.stores else None
        self._connection = self._client.connect(0) if self._client else None
        self._acknowledged = memoryview(shared[1]).cast("B").cast("q")[worker - 1 : worker]
        self._times: dict[str, Times] | None = {} if spec.per_statement else None
        names = [name for name, _ in spec.define]
        dialect = dialect_of(case.driver)
        scripts = [read(one.name, one.text, names, dialect) for one in spec.scripts]
        self._variables = self._base()
        # A script may leave variables to those after it, unless all of them set theirs before they begin.
        late = any(_sets_late(script) for script in scripts)
        self._compiler = self._compiled(scripts)
        heads = [0 if late else leading(script) for script in scripts]
        self._heads = [
            self._compiler.steps(script.commands[:head]) for script, head in zip(scripts, heads, strict=True)
        ]
        self.calls = [
            self._transaction(script, head, late) for script, head in zip(scripts, heads, strict=True)
        ]
        self.prepared = self._shared_variables if late else self._own_variables  # type: ignore[method-assign]
        self._window: Window | None = None

    def _base(self) -> Variables:
        spec = self.case.spec
        own: Variables = {
            "client_id": self.worker - 1,
            "default_seed": self.case.seed,
            "random_seed": self.case.seed,
            "scale": spec.scale,
        }
        return {**own, **{name: _meant(text) for name, text in spec.define}}

    def _compiled(self, scripts: Sequence[Script]) -> Compiler:
        changed = {name for script in scripts for name in sets(script.commands)}
        gets = any(one.prefix is not None for script in scripts for one in statements(script.commands))
        fixed = {} if gets else {k: v for k, v in self._variables.items() if k not in changed}
        database = self._connection or Nowhere()
        ledger = Ledger(database, self.worker, self._acknowledged) if self.case.spec.ledger else None
        # What a sleep takes is no cost of the harness, which is what is looked for where nothing is stored.
        sleep = None if self._connection else _awake
        return Compiler(self.random, database, fixed, Around(ledger, self._times), sleep)

    def _own_variables(self, picks: Sequence[int]) -> list[Variables]:
        """Set the variables of each transaction, which it does not change.

        Those of the last one that is run are what the next ones begin with.
        """
        found, variables, heads = [], self._variables, self._heads
        for pick in picks:
            variables = variables.copy()
            for step in heads[pick]:
                step(variables)
            found.append(variables)
        return found

    def _shared_variables(self, picks: Sequence[int]) -> list[Variables]:
        """Give all transactions the same variables, which they change one after the other."""
        return [self._variables] * len(picks)

    def _transaction(self, script: Script, head: int, late: bool) -> Callable[[Variables], None]:
        """Return what runs a script; after BUSY it is begun again as a whole, with the same values."""
        steps = self._compiler.steps(script.commands[head:])
        once = self._once(script, steps)
        if self._client is None or self._connection is None:
            return once
        if late:
            once = self._restored(once)
        if self._client.waits_outside:
            once = self._client.retried(once, self._connection.rollback)
        return self._tried(once)

    def _once(self, script: Script, steps: Sequence[Step]) -> Callable[[Variables], None]:
        is_open = self._connection.in_transaction if self._connection else _never

        def once(variables: Variables) -> None:
            for step in steps:
                step(variables)
            if is_open():
                raise Failed(f"{script.name}: it ends within a transaction: add COMMIT or ROLLBACK")

        return once

    def _restored(self, once: Callable[[Variables], None]) -> Callable[[Variables], None]:
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

    def _tried(self, once: Callable[[Variables], None]) -> Callable[[Variables], None]:
        assert self._client and self._connection
        client, rollback, tries = self._client, self._connection.rollback, range(self.case.spec.max_tries - 1)

        def transaction(variables: Variables) -> None:
            for _ in tries:
                try:
                    return once(variables)
                except Exception as error:
                    rollback()
                    if not client.was_busy(error):
                        raise
            try:
                return once(variables)
            except Exception:
                rollback()
                raise

        return transaction

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

    def hear(self, window: Window) -> None:
        """Learn which window is measured."""
        self._window = window

    def settle(self, chunk: Any, done: int, results: list[Any], stamps: Any) -> None:
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
        found = super().findings()
        found.latency = {name: times.histogram() for name, times in (self._times or {}).items()}
        return found

    def close(self) -> None:
        if self._client:
            self._client.close()


def _meant(text: str) -> Value:
    """Return what stands on the command line for a variable: a number if it is one, as in pgbench."""
    try:
        found = meant(text)
    except NoValue:
        return text
    is_number = isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)
    return found if is_number else text


def _awake(_: float) -> None:
    pass


def _never() -> bool:
    return False


def _sets_late(script: Script) -> bool:
    """Return whether a script changes variables behind what it sets at its beginning."""
    behind = script.commands[leading(script) :]
    gets = any(one.prefix is not None for one in statements(behind))
    return gets or any(True for _ in sets(behind)) or _draws_late(behind)


def _draws_late(commands: Sequence[Command]) -> bool:
    """Return whether a condition draws a number: for a second try it has to be the same."""
    return any(
        draws(branch.condition) or _draws_late(branch.body)
        for command in commands
        if isinstance(command, If)
        for branch in command.branches
    )


# What is done around the statements of a script: they are timed, and a row of ours proves their commit.


_LONGEST = 60


class Nowhere:
    """A database that does nothing: what remains is the harness's own cost."""

    def runs(self, sql: str) -> Callable[[Variables], Any]:
        return _nothing

    def reads(self, sql: str) -> Callable[[Variables], Any]:
        return _nothing

    def names(self, sql: str) -> Callable[[Variables], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        return lambda _: ((), ((),))


def _nothing(_: Variables) -> None:
    pass


class Around:
    """Times statements, and writes into the ledger before a commit, as far as that is asked for."""

    def __init__(self, ledger: Ledger | None, times: dict[str, Times] | None) -> None:
        self._ledger, self._times = ledger, times

    def statement(self, sql: Sql, run: Step) -> Step:
        timed = self._timed(sql, run)
        return self._ledger.committed(timed) if self._ledger and sql.statement.commits else timed

    def _timed(self, sql: Sql, run: Step) -> Step:
        if self._times is None:
            return run
        keep = self._times.setdefault(called(sql), Times()).add
        clock = time.perf_counter_ns

        def timed(variables: Variables) -> None:
            begun = clock()
            run(variables)
            keep((begun, clock()))

        return timed


class Times:
    """How long a statement took, and when it ended."""

    def __init__(self) -> None:
        self._recorder, self._found = Recorder(), list[tuple[int, int]]()
        self.add = self._found.append

    def fold(self, window: Window) -> None:
        """Keep what ended within the window."""
        opens, closes = window.opens_ns, window.closes_ns
        self._recorder.record([end - begun for begun, end in self._found if opens <= end < closes])
        self._found.clear()

    def histogram(self) -> tuple[dict[int, int], int]:
        """Return the histogram, and the longest, in nanoseconds."""
        buckets = self._recorder.buckets()
        return buckets, self._recorder.largest() if buckets else 0


def called(sql: Sql) -> str:
    """Return what a statement is called: its line, and how it begins."""
    text = " ".join(sql.statement.text.split())
    return f"{Path(sql.place.file).name}:{sql.place.line} {text}"[:_LONGEST]
