"""django-db-queue 3.3: a job is processed once.

sqlstress app examples/tried/queue_django_db_queue.py -c 4
"""

import django_project

django_project.configured("django_dbq", JOBS={"mail": {"tasks": ["queue_django_db_queue.work"]}})

from django_dbq.management.commands.worker import Worker  # noqa: E402
from django_dbq.models import Job  # noqa: E402

from sqlstress import check, connect, note, setup, transaction  # noqa: E402


def work(job):
    note("done", job.pk)


@setup
def tables():
    django_project.migrated()


@connect
def worker():
    return Worker("default", 0)


@transaction
def put():
    Job.objects.create(name="mail")


@transaction
def take(worker):
    worker._process_job()


@check
def each_job_is_processed_once(query, notes):
    done = notes.of("done")
    assert len(done) == len({*done}), f"{len(done) - len({*done})} of {len(done)} twice"
