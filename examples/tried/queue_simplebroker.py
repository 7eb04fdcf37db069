"""simplebroker 8.7.2: a message is read once.

sqlstress app examples/tried/queue_simplebroker.py -c 4
"""

import itertools
import os

from simplebroker import Queue

from sqlstress import check, connect, exactly_once, note, setup, transaction

numbers = itertools.count()


@setup
def open_once(database):
    Queue("tasks", db_path=database).write("first")
    note("put", "first")


@connect
def queue(database):
    return Queue("tasks", db_path=database)


@transaction
def write(queue):
    message = f"{os.getpid()}-{next(numbers)}"
    queue.write(message)
    note("put", message)


@transaction
def read(queue):
    message = queue.read_one()
    if message is not None:
        note("taken", message)


@check
def each_message_is_read_once(notes, database):
    left = list(Queue("tasks", db_path=database).read_many(1_000_000))
    exactly_once(notes.of("put"), notes.of("taken") + left)
