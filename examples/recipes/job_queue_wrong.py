"""The queue with a race: between SELECT and DELETE another consumer can take the same job."""

from __future__ import annotations

import sqlite3

from job_queue import create, each_job_is_taken_once, open_it, put

from sqlstress import note, transaction

__all__ = ["create", "each_job_is_taken_once", "open_it", "put"]


@transaction
def take(connection: sqlite3.Connection) -> None:
    for (job,) in connection.execute("SELECT id FROM job ORDER BY id LIMIT 1").fetchall():
        connection.execute("DELETE FROM job WHERE id = ?", (job,))
        note("taken", job)
