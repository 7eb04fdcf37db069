"""The bank with a lost update: the read is not in the transaction that writes.

Python begins a transaction before the UPDATE, and not before the SELECT. This works if only one process runs.
"""

from __future__ import annotations

import random
import sqlite3

from bank import ACCOUNTS, accounts, balance, no_money_appears

from sqlstress import connect, transaction

__all__ = ["accounts", "balance", "no_money_appears"]


@connect
def bank(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=30)


@transaction(weight=3)
def transfer(connection: sqlite3.Connection) -> None:
    source, target = random.sample(range(ACCOUNTS), 2)
    for account, change in ((source, -10), (target, 10)):
        (found,) = connection.execute("SELECT balance FROM account WHERE id = ?", (account,)).fetchone()
        connection.execute("UPDATE account SET balance = ? WHERE id = ?", (found + change, account))
    connection.commit()
