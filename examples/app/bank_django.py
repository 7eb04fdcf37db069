"""The bank with Django: each transfer is atomic, and begins IMMEDIATE (Django 5.1 and later).

sqlstress app examples/app/bank_django.py
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import django
from django.conf import settings

from sqlstress import check, setup, transaction

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ["SQLSTRESS_DATABASE"],
            "OPTIONS": {
                "timeout": 30,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL",
            },
        }
    }
)
django.setup()

from django.db import connection, models  # noqa: E402
from django.db.transaction import atomic  # noqa: E402

ACCOUNTS, MONEY = 10, 1000


class Account(models.Model):
    balance = models.IntegerField()

    class Meta:
        app_label = "bank"
        db_table = "account"


@setup
def accounts() -> None:
    with connection.schema_editor() as editor:
        editor.create_model(Account)
    Account.objects.bulk_create(Account(id=number, balance=MONEY) for number in range(1, ACCOUNTS + 1))


def move(source: int, target: int) -> None:
    for number, change in ((source, -10), (target, 10)):
        account = Account.objects.get(id=number)
        account.balance += change
        account.save()


@transaction
def transfer() -> None:
    with atomic():
        move(*random.sample(range(1, ACCOUNTS + 1), 2))


@check
def no_money_appears(query: Callable[..., Any]) -> None:
    ((total,),) = query("SELECT sum(balance) FROM account")
    assert total == ACCOUNTS * MONEY, f"there are {total}, not {ACCOUNTS * MONEY}"
