"""gigq 0.5.1: a job that was submitted is carried out once.

sqlstress app examples/tried/queue_gigq.py -c 4
"""

import itertools
import os

from gigq import JobQueue, Worker, task

from sqlstress import check, exactly_once, note, setup, transaction

PATH = os.environ["SQLSTRESS_DATABASE"]
numbers = itertools.count()


@task()
def work(number):
    note("done", number)


@setup
def tables():
    JobQueue(PATH)


@transaction
def submit():
    number = f"{os.getpid()}-{next(numbers)}"
    work.submit(JobQueue(PATH, initialize=False), number=number)
    note("put", number)


@transaction
def carry_out():
    Worker(PATH).process_one()


@check
def each_job_is_carried_out_once(query, notes):
    left = [p for (p,) in query("SELECT json_extract(params, '$.number') FROM jobs WHERE status = 'pending'")]
    exactly_once(notes.of("put"), notes.of("done") + left)
