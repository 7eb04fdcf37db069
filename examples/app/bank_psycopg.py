"""A bank on PostgreSQL, written with psycopg: a balance that was read stays locked until it is written.

sqlstress app examples/app/bank_psycopg.py --target postgres
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import psycopg

from sqlstress import check, connect, setup, transaction

ACCOUNTS = 10
MONEY = 1000


@setup
def accounts(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL)")
        rows = [(number, MONEY) for number in range(ACCOUNTS)]
        connection.cursor().executemany("INSERT INTO account VALUES (%s, %s)", rows)


@connect
def bank(database: str) -> psycopg.Connection[Any]:
    return psycopg.connect(database, autocommit=True)


@transaction(weight=3)
def transfer(connection: psycopg.Connection[Any]) -> None:
    source, target = random.sample(range(ACCOUNTS), 2)
    with connection.transaction():
        # In the order of their numbers: two that wait for each other would be a deadlock.
        for account, change in sorted([(source, -10), (target, 10)]):
            found = connection.execute("SELECT balance FROM account WHERE id = %s FOR UPDATE", [account])
            ((balance,),) = found.fetchall()
            connection.execute("UPDATE account SET balance = %s WHERE id = %s", [balance + change, account])


@transaction
def balance(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SELECT balance FROM account WHERE id = %s", [random.randrange(ACCOUNTS)]).fetchone()


@check
def no_money_appears(query: Callable[..., Any]) -> None:
    ((total,),) = query("SELECT sum(balance) FROM account")
    assert total == ACCOUNTS * MONEY, f"there are {total}, not {ACCOUNTS * MONEY}"
