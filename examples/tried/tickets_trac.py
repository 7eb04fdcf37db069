"""Trac 1.6: tickets are made, and commented; comments of a ticket are numbered 1, 2, 3 and so on.

trac-admin trac initenv Project sqlite:db/trac.db
sqlstress app examples/tried/tickets_trac.py --database trac/db/trac.db -c 4
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trac.env import Environment
from trac.ticket.model import Ticket

from sqlstress import check, connect, setup, transaction

FEW = 5


def opened(database: str) -> Environment:
    env = Environment(os.environ.get("TRAC_ENV", "trac"))
    env.config.set("trac", "database", f"sqlite:{Path(database).absolute()}")
    return env


@setup
def tickets(database: str) -> None:
    env = opened(database)
    for _ in range(FEW):
        create(env)
    env.shutdown()


@connect
def environment(database: str) -> Environment:
    return opened(database)


@transaction
def create(env: Environment) -> None:
    ticket = Ticket(env)
    ticket["summary"], ticket["status"] = "It does not work", "new"
    ticket.insert()


@transaction(weight=3)
def comment(env: Environment) -> None:
    Ticket(env, random.randint(1, FEW)).save_changes("somebody", "It does not work here either")


@transaction(weight=3)
def read(env: Environment) -> None:
    Ticket(env, random.randint(1, FEW)).get_changelog()


@check
def comments_of_a_ticket_have_different_numbers(query: Callable[..., Any]) -> None:
    same = query(
        "SELECT ticket, oldvalue, count(*) FROM ticket_change WHERE field = 'comment' "
        "GROUP BY ticket, oldvalue HAVING count(*) > 1"
    )
    assert not same, f"{len(same)} numbers are given several times, such as {same[0]} (ticket, number, times)"
