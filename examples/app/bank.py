"""A bank, written with the standard library: money moves between accounts, and none appears or is lost.

sqlstress app examples/app/bank.py
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from typing import Any

from sqlstress import check, connect, setup, transaction

ACCOUNTS = 10
MONEY = 1000


@setup
def accounts(database: str) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)")
    rows = [(number, MONEY) for number in range(ACCOUNTS)]
    connection.executemany("INSERT INTO account VALUES (?, ?)", rows)
    connection.commit()
    connection.close()


@connect
def bank(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=30, isolation_level=None)


@transaction(weight=3)
def transfer(connection: sqlite3.Connection) -> None:
    source, target = random.sample(range(ACCOUNTS), 2)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for account, change in ((source, -10), (target, 10)):
            (balance,) = connection.execute("SELECT balance FROM account WHERE id = ?", (account,)).fetchone()
            connection.execute("UPDATE account SET balance = ? WHERE id = ?", (balance + change, account))
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


@transaction
def balance(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT balance FROM account WHERE id = ?", (random.randrange(ACCOUNTS),)).fetchone()


@check
def no_money_appears(query: Callable[..., Any]) -> None:
    ((total,),) = query("SELECT sum(balance) FROM account")
    assert total == ACCOUNTS * MONEY, f"there are {total}, not {ACCOUNTS * MONEY}"
