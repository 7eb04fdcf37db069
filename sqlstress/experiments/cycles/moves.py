"""What a worker does to its table, move by move, and what the table holds after so many of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlstress.experiments.cycles.experiment import Cycling


KINDS = ("begin", "insert", "delete", "commit", "checkpoint")
BEGIN, INSERT, DELETE, COMMIT, CHECKPOINT = range(len(KINDS))

STATEMENTS = "statements"
"""Series: ns in the inserts and deletes of each cycle."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""Series: ns in those of transactions, in the cycle in which they fell."""


class Move(NamedTuple):
    """One statement."""

    kind: int
    """Index into KINDS."""
    value: str = ""
    """What an INSERT writes."""


def table(worker: int) -> str:
    """Return the name of a worker's own table."""
    return f"t{worker}"


def definition(worker: int) -> str:
    """Return what creates a worker's table: without AUTOINCREMENT, so an insert writes one page."""
    return f"CREATE TABLE {table(worker)} (id INTEGER PRIMARY KEY, value TEXT NOT NULL)"


def moves_of(cycling: Cycling, cycle: int, worker: int, salt: int) -> Iterator[Move]:
    """Yield the moves of one cycle (from 1), BEGIN and COMMIT where they fall; no two rows have one value."""
    who = f"salt {salt} worker {worker} cycle {cycle}"
    if cycling.transaction == "cycle" or (cycling.transaction == "run" and cycle == 1):
        yield Move(BEGIN)
    for insertion in (1, 2):
        if insertion == 2:
            yield Move(DELETE)
        for row in range(1, cycling.rows + 1):
            yield Move(INSERT, f"{who} insertion {insertion} row {row}")
    if cycling.transaction == "cycle" or (cycling.transaction == "run" and cycle == cycling.cycles):
        yield Move(COMMIT)


def committed(cycling: Cycling, worker: int, salt: int, done: int) -> list[str]:
    """Return the values that a worker's table must hold after its first `done` moves, in their order."""
    cycles = range(1, cycling.cycles + 1)
    moves = (move for cycle in cycles for move in moves_of(cycling, cycle, worker, salt))
    rows: list[str] = []
    durable: list[str] = []
    for kind, value in islice(moves, done):
        if kind == INSERT:
            rows.append(value)
        elif kind == DELETE:
            rows.clear()
        elif kind == COMMIT:
            durable = rows.copy()
    return rows if cycling.transaction == "none" else durable
