"""A queue: each job is taken by one consumer.

sqlstress app examples/recipes/job_queue.py -c 4
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from sqlstress import Notes, check, connect, exactly_once, note, setup, transaction

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE job (id INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT NOT NULL);
"""


@setup
def create(database: str) -> None:
    connection = sqlite3.connect(database)
    connection.executescript(SCHEMA)
    connection.close()


@connect
def open_it(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=30, isolation_level=None)


@transaction
def put(connection: sqlite3.Connection) -> None:
    note("put", connection.execute("INSERT INTO job (task) VALUES ('send the mail')").lastrowid)


@transaction
def take(connection: sqlite3.Connection) -> None:
    first = "DELETE FROM job WHERE id = (SELECT min(id) FROM job) RETURNING id"
    for (job,) in connection.execute(first).fetchall():
        note("taken", job)


@check
def each_job_is_taken_once(query: Callable[..., Any], notes: Notes) -> None:
    left = [job for (job,) in query("SELECT id FROM job")]
    exactly_once(notes.of("put"), notes.of("taken") + left)
