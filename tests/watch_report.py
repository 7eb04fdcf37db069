"""The watch of the corpus, and watches that differ from it."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.watch.spec import (
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
    Process,
    Watch,
    Watching,
)
from sqlstress.report import Report
from sqlstress.report.results import Holds
from tests.example_report import corpus_report

_KEPT = corpus_report("watch").results["watch"]
assert isinstance(_KEPT, Watch)
WATCH = _KEPT
IMPORT, WORKER, READER = WATCH.processes
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
    return replace(corpus_report("watch"), results={"watch": watch})
