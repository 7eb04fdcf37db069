"""Hunts made by hand."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.hunt.proof import STALE, WRITES
from sqlstress.experiments.hunt.result import OWN_LOAD, WAL_RESET, Hunt, Witness
from sqlstress.experiments.hunt.spec import Round, Schedule
from sqlstress.report import Check, Report, Verdict
from sqlstress.report.case import Case, Settings
from tests.example_report import example_report

SPEC = Round(writers=3, readers=1, checkpointers=2, writer_pause=200, reader_pause=50, checkpointer_pause=5)
CASE = Case(
    workload=OWN_LOAD,
    concurrency=6,
    duration_s=1.0,
    warmup_s=0.0,
    seed=9,
    settings=Settings(synchronous="off", wal_autocheckpoint=4),
    spec=SPEC,
)
WRONG = Verdict(
    (
        Check(
            WRITES,
            "failed",
            412,
            2,
            ("741 transactions of writer 1 were acknowledged, and the database has 710",),
        ),
        Check(STALE, "failed", 3012, 1, ("a read found 401 transactions of writer 1",)),
        Check("integrity_check", "ok", 1),
    )
)
FOUND = Witness(CASE, WRONG, tries=5, failed=3, command=("sqlstress", "hunt", "--as-given", "--writers", "3"))
SMALLEST = Witness(
    replace(
        CASE, concurrency=2, spec=Round(checkpointers=1, checkpointer_pause=5, pause_at=("fetch", "read"))
    ),
    WRONG,
    tries=5,
    failed=2,
    command=("sqlstress", "hunt", "--as-given", "--checkpointers", "1"),
)
HUNT = Hunt(
    "sqlite3",
    OWN_LOAD,
    seed=5,
    max_time_s=60.0,
    rounds=6,
    operations={"writer": 23_060, "checkpointer": 54_368, "reader": 3361, "holder": 12},
    seconds=9.876,
    found=FOUND,
    smallest=SMALLEST,
    known=WAL_RESET,
)
NOTHING = replace(HUNT, found=None, smallest=None, known=None, rounds=41, seconds=60.2)
IN_WORK = replace(
    HUNT,
    work="app",
    operations={"transfer": 812},
    found=replace(
        FOUND,
        verdict=Verdict((Check("checks after the load", "failed", 1, 1, ("there are 9,990",)),)),
        schedule=Schedule(("write-lock",), 2, 0.005),
        failed=0,
    ),
    smallest=None,
)


def hunt_report(hunt: Hunt = HUNT) -> Report:
    """Return the report of a hunt."""
    return replace(
        example_report(), runs=(), planned=0, results={OWN_LOAD: hunt}, command=("sqlstress", "hunt")
    )
