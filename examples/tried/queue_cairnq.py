"""cairnq 0.15.1: a task goes to one worker, and none is lost.

sqlstress app examples/tried/queue_cairnq.py -c 4
"""

import asyncio
import itertools
import os

from cairnq import CairnQ

from sqlstress import check, connect, exactly_once, finish, note, setup, transaction

ME = str(os.getpid())
numbers = itertools.count()
loop = asyncio.new_event_loop()


@setup
def tables(database):
    close(tasks(database))


@connect
def tasks(database):
    tasks = CairnQ.sqlite(database)
    loop.run_until_complete(tasks.connect())
    return tasks


@transaction
def submit(tasks):
    number = f"{ME}-{next(numbers)}"
    loop.run_until_complete(tasks.submit("work", {"number": number}))
    note("put", number)


@transaction
def work(tasks):
    loop.run_until_complete(one(tasks.store))


async def one(store):
    for task in await store.claim(queues=["default"], worker_id=ME):
        await store.succeed(task_id=task.id, worker_id=ME, result={})
        note("done", task.payload["number"])


@finish
def close(tasks):
    loop.run_until_complete(tasks.close())


@check
def each_task_is_done_once(query, notes):
    queued = "SELECT json_extract(payload, '$.number') FROM cairnq_tasks WHERE status = 'queued'"
    exactly_once(notes.of("put"), notes.of("done") + [number for (number,) in query(queued)])
