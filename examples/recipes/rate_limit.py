"""A rate limiter: 10 requests a second for each client; one statement looks and counts.

sqlstress app examples/recipes/rate_limit.py -c 4
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter

from sqlstress import Notes, check, connect, note, setup, transaction

LIMIT = 10
SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE used (client TEXT, second INTEGER, number INTEGER, PRIMARY KEY (client, second));
"""
COUNT = """
INSERT INTO used VALUES (?, ?, 1)
ON CONFLICT (client, second) DO UPDATE SET number = number + 1 WHERE number < ?
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
def request(connection: sqlite3.Connection) -> None:
    now = ("anna", int(time.time()))
    if connection.execute(COUNT, (*now, LIMIT)).rowcount == 1:
        note("let through", now)


@check
def no_client_gets_more(notes: Notes) -> None:
    most = max(Counter(notes.of("let through")).values(), default=0)
    assert most <= LIMIT, f"{most} were let through in a second"
