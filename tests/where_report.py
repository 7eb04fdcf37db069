"""A report by hand that tells where the time went."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Report, Run
from sqlstress.report.case import Case
from sqlstress.report.results import (
    BINDING,
    CHECKPOINT,
    COMMIT,
    FREE,
    HARNESS,
    HELD,
    OWN,
    PROCESSOR,
    SQLITE,
    SYNC,
    WRITE,
    Held,
    Moment,
    Slowest,
    Where,
)
from tests.analysis.hand_made import run, trial
from tests.example_report import example_report

MS = 1_000_000
ALONE = Where(
    time_ns=300 * MS,
    parts={
        HELD: 0, FREE: 0, CHECKPOINT: 6 * MS, SYNC: 210 * MS, WRITE: 12 * MS, PROCESSOR: 3 * MS,
        SQLITE: 36 * MS, BINDING: 24 * MS, HARNESS: 9 * MS,
    },
)  # fmt: skip
SLOWEST = Slowest(
    operations=40,
    of=4000,
    fastest_ns=12 * MS,
    total_ns=1000 * MS,
    parts={HELD: 610 * MS, FREE: 220 * MS, CHECKPOINT: 20 * MS, SYNC: 100 * MS, OWN: 50 * MS},
    behind={CHECKPOINT: 500 * MS, COMMIT: 80 * MS, SYNC: 30 * MS},
    held_by=(Held(3, CHECKPOINT, 500 * MS), Held(1, COMMIT, 45 * MS), Held(2, COMMIT, 35 * MS)),
)
TOGETHER = Where(
    time_ns=900 * MS,
    parts={
        HELD: 500 * MS, FREE: 150 * MS, CHECKPOINT: 20 * MS, SYNC: 90 * MS, WRITE: 10 * MS,
        PROCESSOR: 50 * MS, SQLITE: 40 * MS, BINDING: 30 * MS, HARNESS: 10 * MS,
    },
    told=0.75,
    pending_ns=70 * MS,
    slowest=SLOWEST,
    moment=Moment(
        2, 40 * MS, 90 * MS,
        ((1, COMMIT, 0, 20 * MS), (2, "wait", 0, 80 * MS), (3, CHECKPOINT, 20 * MS, 80 * MS)),
    ),
)  # fmt: skip


def told(*wheres: Where, processes: int = 3, checkpointer: str = "", **settings: Any) -> Run:
    """Return a run whose passes tell this."""
    own = Load(where=True, checkpointing=Checkpointing(checkpointer) if checkpointer else None)
    case = Case(spec=own)
    case = replace(case, settings=replace(case.settings, **settings))
    return run(1, processes, *(trial(where=one) for one in wheres), case=case)


def where_report() -> Report:
    """Return one process, and three that wait for each other."""
    runs = (told(ALONE, processes=1), told(TOGETHER))
    return replace(example_report(), runs=runs, planned=2)
