"""litequeue 0.9: a message that was put into the queue is popped once, by any worker.

sqlstress app examples/tried/queue_lite.py -c 4
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable
from typing import Any

from litequeue import LiteQueue

from sqlstress import check, connect, setup, transaction

numbers = itertools.count(1)


@setup
def tables(database: str) -> None:
    LiteQueue(database).close()
    connection = sqlite3.connect(database)
    connection.executescript("CREATE TABLE taken (message TEXT)")
    connection.close()


@connect
def queue(database: str) -> LiteQueue:
    return LiteQueue(database)


@transaction
def put(queue: LiteQueue) -> None:
    queue.put(f"{os.getpid()}-{next(numbers)}")


@transaction
def take(queue: LiteQueue) -> None:
    message = queue.pop()
    if message is not None:
        queue.conn.execute("INSERT INTO taken VALUES (?)", (str(message.message_id),))
        queue.done(message.message_id)


@check
def no_message_is_popped_twice(query: Callable[..., Any]) -> None:
    twice = query("SELECT message, count(*) FROM taken GROUP BY message HAVING count(*) > 1")
    assert not twice, f"{len(twice)} of them, such as {twice[0]}"
