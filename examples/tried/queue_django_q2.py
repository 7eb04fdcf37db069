"""django-q2 1.11.1, its broker on the ORM: a task is taken once.

sqlstress app examples/tried/queue_django_q2.py -c 4
"""

import itertools
import os

import django_project

django_project.configured(
    "django_q", Q_CLUSTER={"name": "q", "orm": "default", "retry": 3600, "timeout": 60, "poll": 0.01}
)

from django_q.brokers.orm import ORM  # noqa: E402

from sqlstress import check, connect, note, setup, transaction  # noqa: E402

numbers = itertools.count()


@setup
def tables():
    django_project.migrated()


@connect
def broker():
    return ORM("q")


@transaction
def put(broker):
    broker.enqueue(f"{os.getpid()}-{next(numbers)}")


@transaction
def take(broker):
    for key, payload in broker.dequeue() or ():
        note("taken", payload)
        broker.acknowledge(key)


@check
def each_task_is_taken_once(query, notes):
    taken = notes.of("taken")
    assert len(taken) == len({*taken}), f"{len(taken) - len({*taken})} of {len(taken)} twice"
