"""The queue with a race: between SELECT and DELETE another consumer can take the same job."""

from __future__ import annotations

import sqlite3

from job_queue import create, no_job_is_done_twice, no_job_is_lost, open_it, put

from sqlstress import transaction

__all__ = ["create", "no_job_is_done_twice", "no_job_is_lost", "open_it", "put"]


@transaction
def take(connection: sqlite3.Connection) -> None:
    for row in connection.execute("SELECT id FROM job ORDER BY id LIMIT 1").fetchall():
        connection.execute("DELETE FROM job WHERE id = ?", row)
        connection.execute("INSERT INTO done VALUES (?)", row)
