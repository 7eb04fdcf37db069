"""asyncio: tasks share one connection, and a lock lets one transaction run at a time.

sqlstress app examples/recipes/async_transfers.py -c 2
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import AbstractAsyncContextManager
from typing import Any

from sqlstress import connect, conserved, setup, transaction

TASKS, ACCOUNTS, MONEY = 4, 10, 1000
SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
"""


@setup
def create(database: str) -> None:
    connection = sqlite3.connect(database)
    connection.executescript(SCHEMA)
    connection.executemany(
        "INSERT INTO account VALUES (?, ?)", [(account, MONEY) for account in range(ACCOUNTS)]
    )
    connection.commit()
    connection.close()


@connect
def open_it(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=30, isolation_level=None)


async def move(connection: sqlite3.Connection) -> None:
    """Move money. A quarter of the transfers fail half-way and are rolled back."""
    source, target = random.sample(range(ACCOUNTS), 2)
    if not connection.in_transaction:
        connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE account SET balance = balance - 10 WHERE id = ?", (source,))
    await asyncio.sleep(0)  # here another task runs, as it does at any await
    if random.random() < 0.25:
        connection.rollback()
        return
    connection.execute("UPDATE account SET balance = balance + 10 WHERE id = ?", (target,))
    connection.commit()


async def locked(lock: AbstractAsyncContextManager[Any], connection: sqlite3.Connection) -> None:
    async with lock:
        await move(connection)


async def all_tasks(connection: sqlite3.Connection) -> None:
    lock = asyncio.Lock()
    await asyncio.gather(*(locked(lock, connection) for _ in range(TASKS)))


@transaction
def transfers(connection: sqlite3.Connection) -> None:
    asyncio.run(all_tasks(connection))


no_money_appears = conserved("SELECT sum(balance) FROM account")
