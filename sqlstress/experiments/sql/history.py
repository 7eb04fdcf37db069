"""A history of what scripts read and wrote: which rows, and which versions of them.

A line of comment before a statement, `-- @history account`, says that the first two columns that it returns
are a row's key and its version, a whole number that each write makes larger. What a statement that writes
returns is what it has written. See `anomalies` for what a history shows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.experiments.sql.expressions import NoValue
from sqlstress.experiments.sql.script import Script, Sql, Step, statements, states_behind

if TYPE_CHECKING:
    from sqlstress.user_work.statements import Statement

MOST = 200_000
"""Reads and writes of a trial that are recorded, by all processes together."""
READ, WRITE, UNDONE = range(3)
_MARK = re.compile(r"@history\b\s*(.*)")


def table_of(statement: Statement) -> str | None:
    """Return the table that a statement's mark names, in lower case; None where it has no mark."""
    found = _MARK.fullmatch(statement.comment)
    return found[1].strip().lower() if found else None


def has_history(scripts: Iterable[Script]) -> bool:
    """Return whether any statement has a mark."""
    return any(table_of(one.statement) is not None for one in _sql(scripts))


def _sql(scripts: Iterable[Script]) -> Iterator[Sql]:
    return (one for script in scripts for one in statements(script.commands))


def check_marks(scripts: Sequence[Script]) -> None:
    """See that a history can be recorded, and that nobody writes beside it. Raises UsageError."""
    every = [one.statement for one in _sql(scripts)]
    tables = {table for one in every if (table := table_of(one)) is not None}
    for one in every:
        table = table_of(one)
        if table is not None:
            _check_marked(one, table)
        elif tables and one.verb == "savepoint":
            raise one.place.error(
                "a history cannot have savepoints: put each transaction into BEGIN and COMMIT"
            )
        elif not one.reads and (written := tables.intersection(one.words)):
            (name, *_) = written
            raise one.place.error(
                f"this writes {name}, whose history is recorded: put -- @history {name} before it, and add "
                "RETURNING key, version"
            )


def _check_marked(one: Statement, table: str) -> None:
    if table not in one.words:
        raise one.place.error("-- @history needs the name of the table that this statement reads or writes")
    if not one.returns:
        raise one.place.error(
            "a history needs the key and the version of each row: add RETURNING key, version"
        )
    if "delete" in one.words:
        raise one.place.error("a history cannot have DELETE: keep the rows, or leave this table out of it")


_BEFORE, _WITHIN, _AFTER, _SEVERAL = range(4)


def is_one_transaction(script: Script) -> bool:
    """Return whether all that has a mark in a script is in one transaction, whatever branches are taken."""
    return _SEVERAL not in states_behind(script.commands, {_BEFORE}, _moved)


def _moved(sql: Sql, state: int) -> int:
    """Return where a run is behind a statement. One with a mark outside of BEGIN has to be the only one."""
    one = sql.statement
    if one.begins:
        return _WITHIN if state == _BEFORE else _SEVERAL
    if one.ends:
        return _AFTER if state == _WITHIN else _SEVERAL
    if table_of(one) is None or state == _WITHIN:
        return state
    return _AFTER if state == _BEFORE else _SEVERAL


Access = tuple[int, tuple[str, Any], int]
"""READ, WRITE or UNDONE; the row, as table and key; which version of it."""


class Recorded(NamedTuple):
    """A run of a script that met rows with a history."""

    number: int
    """Which run of its process it was, from 1."""
    begin_ns: int
    end_ns: int
    script: int
    accesses: list[Access]


class Record(NamedTuple):
    """What one process has recorded."""

    runs: list[Recorded]
    stopped: bool
    """Whether there was no more room before the end."""


class HistoryRecorder:
    """Records what one process reads and writes; memory is bounded."""

    def __init__(self, most: int, in_transaction: Callable[[], bool]) -> None:
        self._room, self._in_transaction = most, in_transaction
        self._runs: list[Recorded] = []
        self._accesses: list[Access] = []
        """Those of the run."""
        self._open = 0
        """Where those of its open transaction begin."""
        self._rows: dict[tuple[str, Any], tuple[str, Any]] = {}
        """Each row once: it is met again and again."""
        self._begin_ns = self._number = 0

    def recorded(self) -> Record:
        return Record(self._runs, self._room <= 0)

    def seen(self, sql: Sql) -> Callable[[Sequence[Sequence[Any]]], None] | None:
        """Return what is to be told the rows that a statement returns; None for one that has no mark."""
        table = table_of(sql.statement)
        if table is None:
            return None
        kind = READ if sql.statement.reads else WRITE

        def see(rows: Sequence[Sequence[Any]]) -> None:
            if self._room <= 0:
                return
            for row in rows:
                if len(row) < 2 or row[0] is None or type(row[1]) is not int:
                    shown = ", ".join(map(repr, row[:2]))
                    raise NoValue(f"a history needs a key and a whole number as its version, not {shown:.80}")
                met = table, row[0]
                self._accesses.append((kind, self._rows.setdefault(met, met), row[1]))
            if not self._in_transaction():
                self._keep()

        return see

    def ending(self, sql: Sql, run: Step) -> Step:
        """Return a statement, which keeps or undoes what was recorded, if it ends a transaction."""
        if not sql.statement.ends:
            return run
        end = self._keep if sql.statement.commits else self._undo

        def step(variables: Any) -> None:
            run(variables)
            end()

        return step

    def run(self, script: int, once: Step) -> Step:
        """Return a script, of which each run is recorded, whether it fails or not."""
        clock = time.perf_counter_ns

        def attempt(variables: Any) -> None:
            self._begin_ns = clock()
            try:
                once(variables)
            except Exception:
                self._undo()
                raise
            finally:
                self._end(script, clock())

        return attempt

    def _keep(self) -> None:
        self._open = len(self._accesses)

    def _undo(self) -> None:
        """What the open transaction has written is undone, and what it has read says nothing."""
        undone = [
            (UNDONE, row, version) for kind, row, version in self._accesses[self._open :] if kind == WRITE
        ]
        self._accesses[self._open :] = undone
        self._keep()

    def _end(self, script: int, now_ns: int) -> None:
        self._number += 1
        if self._accesses:
            self._runs.append(Recorded(self._number, self._begin_ns, now_ns, script, self._accesses))
            self._room -= len(self._accesses)
            self._accesses, self._open = [], 0
