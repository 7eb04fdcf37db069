"""huey 3.5: a task that was put into the queue is carried out once, by any worker.

sqlstress app examples/tried/queue_huey.py -c 4
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable
from functools import cache
from typing import Any

from huey import SqliteHuey

from sqlstress import check, setup, transaction

PATH = os.environ["SQLSTRESS_DATABASE"]
huey = SqliteHuey(filename=PATH)
numbers = itertools.count(1)


@cache
def notes() -> sqlite3.Connection:
    return sqlite3.connect(PATH, timeout=30, isolation_level=None)


def note(table: str, number: str) -> None:
    notes().execute(f"INSERT INTO {table} VALUES (?)", (number,))


@huey.task()
def work(number: str) -> None:
    note("done", number)


@setup
def tables(database: str) -> None:
    connection = sqlite3.connect(database)
    connection.executescript("CREATE TABLE asked (number TEXT); CREATE TABLE done (number TEXT)")
    connection.close()


@transaction
def put() -> None:
    number = f"{os.getpid()}-{next(numbers)}"
    work(number)
    note("asked", number)


@transaction
def take() -> None:
    task = huey.dequeue()
    if task is not None:
        huey.execute(task)


@check
def no_task_is_carried_out_twice(query: Callable[..., Any]) -> None:
    twice = query("SELECT number, count(*) FROM done GROUP BY number HAVING count(*) > 1")
    assert not twice, f"{len(twice)} of them, such as {twice[0]}"


@check
def no_task_is_lost(query: Callable[..., Any]) -> None:
    ((asked,),), ((waiting,),), ((done,),) = (
        query(f"SELECT count(*) FROM {table}") for table in ("asked", "task", "done")
    )
    # Jobs that run now have left the queue: at most one for each process.
    assert asked - waiting - done <= 8, f"{asked} asked for, {waiting} wait, {done} done"
