"""The Django bank without atomic: each account is read and saved in a separate transaction."""

from __future__ import annotations

import random

from bank_django import ACCOUNTS, accounts, move, no_money_appears

from sqlstress import transaction

__all__ = ["accounts", "no_money_appears"]


@transaction
def transfer() -> None:
    move(*random.sample(range(1, ACCOUNTS + 1), 2))
