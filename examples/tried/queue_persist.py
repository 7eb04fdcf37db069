"""persist-queue 1.1: an item that was put into the queue is got once, by any worker.

sqlstress app examples/tried/queue_persist.py -c 4
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from persistqueue import Empty, SQLiteQueue

from sqlstress import check, connect, setup, transaction

PATH = Path(os.environ["SQLSTRESS_DATABASE"])
numbers = itertools.count(1)


def opened() -> SQLiteQueue:
    return SQLiteQueue(str(PATH.parent), db_file_name=PATH.name, auto_commit=True, timeout=30)


@cache
def notes() -> sqlite3.Connection:
    return sqlite3.connect(PATH, timeout=30, isolation_level=None)


@setup
def tables(database: str) -> None:
    opened().close()
    connection = sqlite3.connect(database)
    connection.executescript("CREATE TABLE done (number TEXT)")
    connection.close()


@connect
def queue(database: str) -> SQLiteQueue:
    return opened()


@transaction
def put(queue: SQLiteQueue) -> None:
    queue.put(f"{os.getpid()}-{next(numbers)}")


@transaction
def take(queue: SQLiteQueue) -> None:
    with suppress(Empty):
        notes().execute("INSERT INTO done VALUES (?)", (queue.get(block=False),))


@check
def no_item_is_got_twice(query: Callable[..., Any]) -> None:
    twice = query("SELECT number, count(*) FROM done GROUP BY number HAVING count(*) > 1")
    assert not twice, f"{len(twice)} of them, such as {twice[0]}"
