"""A rate limiter: 10 requests a second for each client; one statement looks and counts.

sqlstress app examples/recipes/rate_limit.py -c 4
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any

from sqlstress import check, connect, setup, transaction

LIMIT = 10
SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE used (client TEXT, second INTEGER, number INTEGER, PRIMARY KEY (client, second));
CREATE TABLE request (client TEXT, second INTEGER);
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
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if connection.execute(COUNT, (*now, LIMIT)).rowcount == 1:
            connection.execute("INSERT INTO request VALUES (?, ?)", now)


@check
def no_client_gets_more(query: Callable[..., Any]) -> None:
    most = f"SELECT client, count(*) FROM request GROUP BY client, second HAVING count(*) > {LIMIT}"
    assert not query(most), query(most)
