"""The psycopg bank without FOR UPDATE: at read committed, reading a balance and writing it loses updates."""

from __future__ import annotations

import random
from typing import Any

import psycopg
from bank_psycopg import ACCOUNTS, accounts, bank, no_money_appears

from sqlstress import transaction

__all__ = ["accounts", "bank", "no_money_appears"]


@transaction
def transfer(connection: psycopg.Connection[Any]) -> None:
    source, target = random.sample(range(ACCOUNTS), 2)
    with connection.transaction():
        for account, change in sorted([(source, -10), (target, 10)]):
            found = connection.execute("SELECT balance FROM account WHERE id = %s", [account])
            ((balance,),) = found.fetchall()
            connection.execute("UPDATE account SET balance = %s WHERE id = %s", [balance + change, account])
