"""localqueue 1.4.1, whose SQLite is in Rust: a job is got once.

sqlstress app examples/tried/queue_localqueue.py -c 4
"""

import itertools
import os
from contextlib import suppress
from pathlib import Path

from localqueue import Empty, SimpleQueue

from sqlstress import check, connect, exactly_once, note, transaction

numbers = itertools.count()


@connect
def queue(database):
    return SimpleQueue(Path(database).parent)


@transaction
def put(queue):
    number = f"{os.getpid()}-{next(numbers)}"
    queue.put(number)
    note("put", number)


@transaction
def take(queue):
    with suppress(Empty):
        job = queue.get(block=False)
        note("taken", job.data)
        queue.ack(job)


@check
def each_job_is_got_once(notes, database):
    queue, left = SimpleQueue(Path(database).parent), []
    with suppress(Empty):
        while True:
            left.append(queue.get(block=False).data)
    exactly_once(notes.of("put"), notes.of("taken") + left)
