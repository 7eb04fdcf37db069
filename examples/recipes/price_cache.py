"""A cache: a miss reads the source and fills the cache in one transaction, so nothing stale stays.

sqlstress app examples/recipes/price_cache.py -c 4
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from sqlstress import check, connect, setup, transaction

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE price (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL);
CREATE TABLE cache (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
"""
ITEMS = 10
FILL = "INSERT OR REPLACE INTO cache VALUES (?, ?)"


@setup
def create(database: str) -> None:
    connection = sqlite3.connect(database)
    connection.executescript(SCHEMA)
    connection.executemany("INSERT INTO price VALUES (?, 100)", [(item,) for item in range(ITEMS)])
    connection.commit()
    connection.close()


@connect
def open_it(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=30, isolation_level=None)


@transaction
def change(connection: sqlite3.Connection) -> None:
    item = random.randrange(ITEMS)
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        connection.execute("UPDATE price SET cents = cents + 1 WHERE id = ?", (item,))
        connection.execute("DELETE FROM cache WHERE id = ?", (item,))


@transaction
def show(connection: sqlite3.Connection) -> None:
    item = random.randrange(ITEMS)
    if connection.execute("SELECT text FROM cache WHERE id = ?", (item,)).fetchone():
        return
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        (cents,) = connection.execute("SELECT cents FROM price WHERE id = ?", (item,)).fetchone()
        time.sleep(0.001)  # rendering it takes a while
        connection.execute(FILL, (item, f"{cents} cents"))


@check
def nothing_cached_is_stale(query: Callable[..., Any]) -> None:
    stale = query("SELECT id FROM cache JOIN price USING (id) WHERE text <> cents || ' cents'")
    assert not stale, f"stale: {stale}"
