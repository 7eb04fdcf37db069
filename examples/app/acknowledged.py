"""The bank with a ledger: each commit that was acknowledged is still there at the end.

The sum of all accounts cannot show a lost commit, because it stays the same without it.

sqlstress app examples/app/acknowledged.py -c 4
"""

from __future__ import annotations

import itertools
import os
import random
import sqlite3
from collections.abc import Callable
from typing import Any

from sqlstress import Notes, check, connect, exactly_once, note, setup, transaction

ACCOUNTS = 10
numbers = itertools.count()


@setup
def accounts(database: str) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)")
    connection.execute("CREATE TABLE ledger (entry TEXT NOT NULL)")
    connection.executemany("INSERT INTO account VALUES (?, 1000)", [(number,) for number in range(ACCOUNTS)])
    connection.commit()
    connection.close()


@connect
def bank(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=30, isolation_level=None)


@transaction
def transfer(connection: sqlite3.Connection) -> None:
    source, target = random.sample(range(ACCOUNTS), 2)
    entry = f"{os.getpid()}-{next(numbers)}"
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        connection.execute("UPDATE account SET balance = balance - 10 WHERE id = ?", (source,))
        connection.execute("UPDATE account SET balance = balance + 10 WHERE id = ?", (target,))
        connection.execute("INSERT INTO ledger VALUES (?)", (entry,))
    note("committed", entry)


@check
def no_acknowledged_commit_is_lost(query: Callable[..., Any], notes: Notes) -> None:
    exactly_once(notes.of("committed"), [entry for (entry,) in query("SELECT entry FROM ledger")])
