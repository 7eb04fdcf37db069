"""The bank with Peewee: each transfer is atomic, and begins IMMEDIATE.

sqlstress app examples/app/bank_peewee.py
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from peewee import IntegerField, Model, SqliteDatabase

from sqlstress import check, connect, setup, transaction

ACCOUNTS, MONEY = 10, 1000
bank = SqliteDatabase(None)


class Account(Model):
    balance = IntegerField()

    class Meta:
        database = bank


@connect
def open_bank(database: str) -> SqliteDatabase:
    bank.init(database, timeout=30, pragmas={"journal_mode": "wal"})
    bank.connect(reuse_if_open=True)
    return bank


@setup
def accounts(database: str) -> None:
    open_bank(database)
    bank.create_tables([Account])
    Account.insert_many([{"balance": MONEY} for _ in range(ACCOUNTS)]).execute()


def move(source: int, target: int) -> None:
    for number, change in ((source, -10), (target, 10)):
        account = Account.get_by_id(number)
        account.balance += change
        account.save()


@transaction
def transfer(bank: SqliteDatabase) -> None:
    with bank.atomic("IMMEDIATE"):
        move(*random.sample(range(1, ACCOUNTS + 1), 2))


@check
def no_money_appears(query: Callable[..., Any]) -> None:
    ((total,),) = query("SELECT sum(balance) FROM account")
    assert total == ACCOUNTS * MONEY, f"there are {total}, not {ACCOUNTS * MONEY}"
