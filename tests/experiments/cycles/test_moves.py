"""A worker's moves in its cycles, and the expected content of its table, compared with SQLite itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.classics.cycles_worker import (
    DEFINITION,
    INSERT,
    SQL,
    Move,
    committed,
    moves_of,
)
from sqlstress.experiments.classics.spec import Cycling

SALT = 7

cyclings = st.builds(
    Cycling, st.integers(1, 4), st.integers(1, 3), st.sampled_from(("none", "cycle", "run")), st.none()
)


def all_moves(cycling: Cycling) -> list[Move]:
    cycles = range(1, cycling.cycles + 1)
    return list(chain.from_iterable(moves_of(cycling, cycle, SALT) for cycle in cycles))


def kept_by_sqlite(moves: list[Move]) -> list[str]:
    """Return the values in a table after these moves and the close of the connection."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(DEFINITION)
        for kind, value in moves:
            connection.execute(SQL[kind], (value,) if kind == INSERT else ())
        if connection.in_transaction:
            connection.rollback()
        return [row[0] for row in connection.execute("SELECT value FROM t1 ORDER BY id")]


@given(cyclings, st.data())
def test_committed_values_are_those_that_sqlite_keeps(cycling: Cycling, data: st.DataObject) -> None:
    moves = all_moves(cycling)
    done = data.draw(st.integers(0, len(moves) + 2))
    assert committed(cycling, SALT, done) == kept_by_sqlite(moves[:done])


@given(cyclings)
def test_last_cycles_second_insertion_remains_at_the_end(cycling: Cycling) -> None:
    moves = all_moves(cycling)
    last = [move.value for move in moves if move.kind == INSERT][-cycling.rows :]
    assert committed(cycling, SALT, len(moves)) == last


@given(cyclings)
def test_row_values_are_unique(cycling: Cycling) -> None:
    values = [move.value for move in all_moves(cycling) if move.kind == INSERT]
    assert len(values) == 2 * cycling.cycles * cycling.rows
    assert len(set(values)) == len(values)
