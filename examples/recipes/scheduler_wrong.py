"""The scheduler with a race: a task that several processes have found due runs in each of them."""

from __future__ import annotations

import sqlite3

from scheduler import NEXT, create, nothing_runs_twice, open_it

from sqlstress import note, transaction

__all__ = ["create", "nothing_runs_twice", "open_it"]


@transaction
def run_the_next(connection: sqlite3.Connection) -> None:
    task, due = connection.execute(NEXT).fetchone()
    note("ran", (task, due))
    connection.execute("UPDATE task SET due = ? WHERE id = ?", (due + 60, task))
