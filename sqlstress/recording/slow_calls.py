"""Records after slow calls: slow reads, and the orders in which calls lock two database files.

Two calls that lock two files in opposite orders can wait for each other: one call has locked a.db and waits
for b.db, while the other call has locked b.db and waits for a.db. SQLite does not notice this, so both wait
until the busy timeout. The statements of a call are only examined if it took MIN_WAIT_S or longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import inf
from os.path import realpath
from pathlib import Path
from threading import get_ident
from time import perf_counter
from typing import NamedTuple

from sqlstress.recording import LOCK_ORDER, SLOW_READ, PlainObservation
from sqlstress.recording.connections import is_in_transaction
from sqlstress.recording.failures import (
    MAX_KINDS,
    Caller,
    Kind,
    TimedStep,
    count_kind,
    is_in_memory,
    is_write,
    short_sql,
    statement_kind,
    takes_write_lock,
    transaction_steps,
)
from sqlstress.recording.history import History

SLOW_READ_S = 0.05
"""Minimum time for which a call runs no further statement after a slow read, in seconds."""
MIN_WAIT_S = 0.05
"""Minimum time for which a call waited for the lock of a second file, in seconds, to record the order."""


class SlowReads:
    """Recorder of slow reads: statements whose rows the user's code probably processed for a long time.

    A slow read is a query, or a write with RETURNING, after which the call did not use the connection for
    SLOW_READ_S or longer. If the code fetched rows during this time, the statement kept its lock. Since the
    recorder does not see fetches, the report uses a slow read only if another process waited for the lock.
    """

    def __init__(self) -> None:
        self._longest: dict[tuple[str, str], float] = {}
        """Longest time from a query to the next statement, in seconds, by SQL text and line."""

    def end_call(
        self, histories: Sequence[History], begun_s: float, line_text: Callable[[Caller | None], str]
    ) -> None:
        """Record the slow reads of the call by this thread that began at `begun_s`.

        `line_text` converts a position in code to text, such as "bank.py:27".
        """
        now_s = perf_counter()
        if not begun_s or now_s - begun_s < SLOW_READ_S:
            return
        for history in histories:
            steps = [step for step in history.steps if step[3] >= begun_s and history.thread == get_ident()]
            next_s = [*(step[3] for step in steps), now_s][1:]
            for (sql, was_open, at, _, ended_s), until_s in zip(steps, next_s, strict=True):
                if until_s - ended_s >= SLOW_READ_S and _may_keep_lock(sql, was_open=was_open):
                    kind = short_sql(sql), line_text(at)
                    if kind in self._longest or len(self._longest) < MAX_KINDS:
                        self._longest[kind] = max(until_s - ended_s, self._longest.get(kind, 0.0))

    def records(self) -> Iterator[PlainObservation]:
        """Yield an observation for each statement that was a slow read, with the longest time."""
        for (sql, at), seconds in self._longest.items():
            traits = {"at": at, "seconds": f"{seconds:.3g}", "kind": statement_kind(sql)}
            yield SLOW_READ, sql, 1, "", traits


def _may_keep_lock(sql: str, *, was_open: bool) -> bool:
    """Return whether a statement with unfetched rows keeps its lock: a query, or a write with RETURNING.

    If a transaction was already open (`was_open`), the transaction keeps the write lock, not the statement.
    """
    return statement_kind(sql) == "read" or (not was_open and is_write(sql) and "returning" in sql.lower())


class TakenLock(NamedTuple):
    """Write lock of a file that a transaction took, or failed to take."""

    step: TimedStep
    """Statement that took the lock, or failed to take it."""
    first: TimedStep
    """First statement of the transaction."""
    until_s: float
    """Time at which the lock was released; infinity if still held, the end of `step` if `step` failed."""


class LockOrder(NamedTuple):
    """Order in which a call locked two files: it had locked the first and waited for the second."""

    call: str
    """Name of the user's function."""
    files: tuple[str, str]
    """Names of the first and the second file, such as ("a.db", "b.db")."""
    first_at: str
    """Line that began the transaction on the first file; empty if unknown."""
    then_at: str
    """Line that began the transaction on the second file; empty if unknown.

    If SQLite refused the second lock, this is the line at which the user's outermost function was running.
    """
    sql: str = ""
    """SQL of the statement to which SQLite refused the second lock; empty if it got the lock."""
    at: str = ""
    """Line of the statement in `sql`; empty if `sql` is empty."""


class LockOrders:
    """Recorder of calls that waited for the lock of a file while they held the lock of another file."""

    def __init__(self) -> None:
        self._orders = Counter[LockOrder]()
        self._failed: list[tuple[TimedStep, Kind, str]] = []
        """Arguments of `add_failure` for the statements of the current call that got no lock."""

    def add_failure(self, step: TimedStep, kind: Kind, outer_line: str) -> None:
        """Record a statement that got no lock after MIN_WAIT_S or longer. `kind` has its SQL and line.

        `outer_line` is the line of the user's outermost function from which the statement was run.
        """
        if step[4] - step[3] >= MIN_WAIT_S:
            self._failed.append((step, kind, outer_line))

    def end_call(
        self,
        call: str,
        histories: Sequence[History],
        begun_s: float,
        line_text: Callable[[Caller | None], str],
    ) -> None:
        """Record the lock orders of a call of the function `call`, which began at `begun_s`.

        `line_text` converts a position in code to text, such as "bank.py:27".
        """
        failed = {id(step): (kind, outer_line) for step, kind, outer_line in self._failed}
        self._failed.clear()
        own = [history for history in histories if history.thread == get_ident() and not history.is_shared]
        names = {history.name for history in own}
        if not begun_s or perf_counter() - begun_s < MIN_WAIT_S or len(names) < 2:
            return
        paths = {name: _file(name) for name in names}
        locks = [(paths[history.name], lock) for history in own for lock in _locks(history, begun_s)]
        waits = [(file, lock) for file, lock in locks if lock.step[4] - lock.step[3] >= MIN_WAIT_S]
        for (file, lock), (other_file, other) in product(locks, waits):
            is_nested = lock.step[4] <= other.step[3] and other.step[4] <= lock.until_s
            if file and other_file and file != other_file and is_nested:
                kind, outer_line = failed.get(id(other.step), (None, ""))
                files = _distinct_names(file, other_file)
                order = LockOrder(call, files, line_text(lock.first[2]), line_text(other.first[2]))
                if kind:
                    order = order._replace(then_at=outer_line or order.then_at, sql=kind.sql, at=kind.at)
                count_kind(self._orders, order)

    def records(self) -> Iterator[PlainObservation]:
        """Yield an observation (LOCK_ORDER) for each order, with the number of calls."""
        for order, count in self._orders.items():
            first, then = order.files
            traits = {"first": first, "then": then, "first_at": order.first_at, "then_at": order.then_at}
            yield LOCK_ORDER, order.call, count, "", {**traits, "statement": order.sql, "at": order.at}


def _locks(history: History, begun_s: float) -> Iterator[TakenLock]:
    """Yield the write locks that a connection took, or failed to take, since `begun_s`, latest first."""
    refused, steps = history.refused(), [step for step in history.steps if step[3] >= begun_s]
    is_open = is_in_transaction(history.connection())
    while steps:
        transaction = transaction_steps(steps)
        del steps[-len(transaction) :]
        for step in transaction:
            if takes_write_lock(step[0]):
                is_held = id(step) not in refused
                until_s = inf if is_open else transaction[-1][4]
                yield TakenLock(step, transaction[0], until_s if is_held else step[4])
                if is_held:
                    break
        is_open = False


def _file(name: str) -> str:
    """Return the path of the database file that a connection was opened with; empty if it has no file."""
    path = name.removeprefix("file:").partition("?")[0] if name.startswith("file:") else name
    return "" if not path or is_in_memory(name) else realpath(path)


def _distinct_names(file: str, other_file: str) -> tuple[str, str]:
    names = Path(file).name, Path(other_file).name
    return names if names[0] != names[1] else (file, other_file)
