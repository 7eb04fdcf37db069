"""A counter: SQLite adds, so no hit is lost.

sqlstress app examples/recipes/hit_counter.py -c 4
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from sqlstress import Notes, check, connect, counter, note, setup, transaction

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE page (id INTEGER PRIMARY KEY, hits INTEGER NOT NULL);
INSERT INTO page VALUES (1, 0);
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
def count(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE page SET hits = hits + 1 WHERE id = 1")
    note("hit")


@check
def every_hit_is_counted(query: Callable[..., Any], notes: Notes) -> None:
    ((hits,),) = query("SELECT hits FROM page")
    counter(hits, notes.of("hit"))
