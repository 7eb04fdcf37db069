"""A history of what scripts read and wrote: which rows, and which versions of them.

A line of comment before a statement, `-- @history account`, says that the first two columns that it returns
are a row's key and its version, a whole number that each write makes larger. What a statement that writes
returns is what it has written. See `anomalies` for what a history shows.
"""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.experiments.sql.expressions import NoValue
from sqlstress.experiments.sql.script import Command, If, Script, Sql, Step, statements

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
    return _SEVERAL not in _walked(script.commands, {_BEFORE})


def _walked(commands: Collection[Command], states: set[int]) -> set[int]:
    for command in commands:
        if isinstance(command, If):
            states = set().union(*(_walked(branch.body, states) for branch in command.branches))
        elif isinstance(command, Sql):
            states = {_moved(command.statement, state) for state in states}
    return states


def _moved(one: Statement, state: int) -> int:
    """Return where a run is behind a statement. One with a mark outside of BEGIN has to be the only one."""
    if one.begins:
        return _WITHIN if state == _BEFORE else _SEVERAL
    if one.ends:
        return _AFTER if state == _WITHIN else _SEVERAL
    if table_of(one) is None or state == _WITHIN:
        return state
    return _AFTER if state == _BEFORE else _SEVERAL


class Recorded(NamedTuple):
    """What one process has recorded."""

    rows: list[tuple[str, Any]]
    """The rows that it met, as table and key."""
    runs: array[int]
    """Of each run of a script: its number, its begin and end, which script it was, how many accesses."""
    accesses: array[int]
    """Of each: READ, WRITE or UNDONE, the row's place in `rows`, and the version."""
    stopped: bool
    """Whether there was no more room before the end."""


RUN_WORDS, ACCESS_WORDS = 5, 3


class HistoryRecorder:
    """Records what one process reads and writes; memory is bounded."""

    def __init__(self, most: int, in_transaction: Callable[[], bool]) -> None:
        self._room = most * ACCESS_WORDS
        self._in_transaction = in_transaction
        self._places: dict[tuple[str, Any], int] = {}
        self._runs, self._accesses = array("q"), array("q")
        self._begin_ns = self._number = 0
        self._first = self._open = 0
        """Where the accesses begin of the run, and of its open transaction."""
        self.stopped = False

    def recorded(self) -> Recorded:
        return Recorded(list(self._places), self._runs, self._accesses, self.stopped)

    def seen(self, sql: Sql) -> Callable[[Sequence[Sequence[Any]]], None] | None:
        """Return what is to be told the rows that a statement returns; None for one that has no mark."""
        table = table_of(sql.statement)
        if table is None:
            return None
        kind = READ if sql.statement.reads else WRITE
        places, in_transaction = self._places, self._in_transaction

        def see(rows: Sequence[Sequence[Any]]) -> None:
            if self.stopped:
                return
            for row in rows:
                if len(row) < 2 or row[0] is None or type(row[1]) is not int:
                    shown = ", ".join(map(repr, row[:2]))
                    raise NoValue(f"a history needs a key and a whole number as its version, not {shown:.80}")
                place = places.setdefault((table, row[0]), len(places))
                self._accesses.extend((kind, place, row[1]))
            if not in_transaction():
                self._open = len(self._accesses)

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
        undone = self._accesses[self._open :]
        del self._accesses[self._open :]
        for at in range(0, len(undone), ACCESS_WORDS):
            if undone[at] == WRITE:
                self._accesses.extend((UNDONE, *undone[at + 1 : at + ACCESS_WORDS]))
        self._keep()

    def _end(self, script: int, now_ns: int) -> None:
        self._number += 1
        count = (len(self._accesses) - self._first) // ACCESS_WORDS
        if count:
            self._runs.extend((self._number, self._begin_ns, now_ns, script, count))
            self._first = len(self._accesses)
            self.stopped = self._first >= self._room
