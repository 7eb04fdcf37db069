"""Watches made by hand."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.watch.spec import (
    CHECKPOINT,
    DELETED,
    DELETED_WAL,
    EXCLUSIVE,
    JOURNAL,
    PENDING,
    READ,
    REPLACED,
    WRITE,
    Course,
    Event,
    Pin,
    Process,
    Watch,
    Watching,
)
from sqlstress.report import Report
from sqlstress.report.results import Holds
from tests.example_report import example_report

IMPORT = Process(
    2598,
    ("/usr/bin/python3.11", "manage.py", "import_orders"),
    "www-data",
    "2026-11-26T05:40:12+00:00",
    locks={
        WRITE: Holds(863, 4, 3.04, 3.06, 2.1, 1.2),
        READ: Holds(880),
        CHECKPOINT: Holds(21, 3, 0.12, 0.14, 5.1),
    },
)
WORKER = Process(
    2600,
    ("gunicorn: worker [shop]",),
    "www-data",
    "2026-11-26T04:00:00+00:00",
    locks={WRITE: Holds(104, 98, 0.0, 0.021, 3.3)},
)
READER = Process(
    2601,
    ("/usr/bin/python3.11", "/srv/shop/report.py"),
    "backup",
    "2026-11-26T05:41:00+00:00",
    gone=True,
    locks={READ: Holds(1000)},
)
WATCH = Watch(
    "app.db",
    Watching(),
    seconds=10.01,
    samples=1000,
    open_samples=1000,
    longest_gap_s=0.041,
    journal="wal",
    commits=812,
    write=Holds(967, 20, 3.1, 3.12, 2.1, 1.2),
    processes=(IMPORT, WORKER, READER),
    pins=(Pin((2,), 4, 0.004, 9.99, 8227, True),),
    page_bytes=4096,
    frames=8231,
    frames_now=8231,
    checkpointed=4,
    wal_bytes=33_912_032,
    wal_bytes_now=33_912_032,
    openers=3,
    links=1,
    course=Course(
        0.1,
        (10,) * 100,
        {"0": (9, 9, 0, 10) * 25, "1": (1, 0, 8, 0) * 25},
        tuple(82 * step for step in range(1, 101)),
        (4,) * 100,
    ),
)
TOO_LONG = replace(
    WATCH,
    asked=Watching(None, 100, 2.0),
    held_too_long=0,
    processes=(replace(IMPORT, locks={WRITE: Holds(863, 4, 2.01, 2.03, 8.0, 2.01)}), WORKER, READER),
)
OLD = replace(
    WATCH,
    journal="rollback",
    open_samples=900,
    commits=40,
    write=Holds(300, 8, 0.9, 0.92),
    pins=(),
    frames=0,
    frames_now=0,
    hot_journal=True,
    processes=(
        replace(IMPORT, locks={WRITE: Holds(300, 8, 0.9, 0.92), PENDING: Holds(120, 8, 0.4, 0.42)}),
        replace(READER, locks={READ: Holds(800)}),
        Process(0, locks={READ: Holds(12)}),
    ),
    events=(Event(2.0, JOURNAL, "rollback"), Event(3.0, DELETED), Event(4.0, REPLACED)),
    course=Course(),
)
ALONE = replace(
    WATCH,
    open_samples=0,
    commits=None,
    frames=0,
    frames_now=0,
    pins=(),
    write=Holds(1000, 1, 10.0, 10.0, 0.0, 10.0),
    processes=(
        replace(IMPORT, locks={name: Holds(1000, 1, 10.0, 10.0, 0.0, 10.0) for name in (WRITE, EXCLUSIVE)}),
    ),
)
NOBODY = Watch("app.db", Watching(), seconds=10.0, samples=1000, openers=0)
LOSING = replace(WATCH, processes=(replace(WORKER, wal=DELETED_WAL, name="app.db", writes=True), IMPORT))


def watch_report(watch: Watch = WATCH) -> Report:
    """Return a report of a watch."""
    return replace(example_report(), runs=(), planned=0, results={"watch": watch})
