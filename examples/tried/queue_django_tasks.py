"""django-tasks-db 0.13: a task goes to one worker.

sqlstress app examples/tried/queue_django_tasks.py -c 4
"""

import django_project

django_project.configured(
    "django_tasks", "django_tasks_db", TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
)

from django_tasks import task  # noqa: E402
from django_tasks_db.models import DBTaskResult  # noqa: E402
from django_tasks_db.utils import exclusive_transaction  # noqa: E402

from sqlstress import check, note, setup, transaction  # noqa: E402


@task()
def work(): ...


@setup
def tables():
    django_project.migrated()


@transaction
def enqueue():
    work.enqueue()


@transaction
def take():  # as its db_worker does
    with exclusive_transaction():
        found = DBTaskResult.objects.ready().get_locked()
        if found:
            found.claim("worker")
    if found:
        note("taken", found.id)


@check
def a_task_goes_to_one_worker(query, notes):
    taken = notes.of("taken")
    assert len(taken) == len({*taken}), f"{len(taken) - len({*taken})} of {len(taken)} twice"
