"""APScheduler 3.11.3, two schedulers on one store in SQLite: a run that is due is carried out once.

sqlstress app examples/tried/scheduler_apscheduler.py -c 4
"""

import os
import threading
from datetime import UTC, datetime

from apscheduler.executors.debug import DebugExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.blocking import BlockingScheduler

from sqlstress import check, connect, note, transaction


def run(number):
    note("run", number)


@connect
def scheduler(database):
    found = BlockingScheduler(timezone="UTC", executors={"default": DebugExecutor()})
    found.add_jobstore(SQLAlchemyJobStore(f"sqlite:///{database}"))
    found._event = threading.Event()
    super(BlockingScheduler, found).start(paused=True)
    return found


@transaction
def add(scheduler):
    number = os.urandom(6).hex()
    scheduler.add_job(
        run, "date", run_date=datetime.now(UTC), args=[number], id=number, misfire_grace_time=60
    )


@transaction
def process(scheduler):  # what the thread of a running scheduler does when it wakes
    scheduler.state = 1
    scheduler._process_jobs()
    scheduler.state = 2


@check
def each_run_is_carried_out_once(query, notes):
    runs = notes.of("run")
    assert runs and len(runs) == len({*runs}), f"{len(runs) - len({*runs})} of {len(runs)} twice"
