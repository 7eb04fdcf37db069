"""Crash tests made by hand."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.crash.spec import ACKNOWLEDGED, INTEGRITY, SURVIVORS, WHOLE, Kills, Transactions
from sqlstress.report import Check, Report, Verdict
from sqlstress.report.case import Case, Settings
from tests.example_report import example_report

EXAMPLE = example_report()
CASE = Case(
    workload="crash",
    concurrency=3,
    duration_s=0.0,
    warmup_s=0.0,
    seed=7,
    verify="full",
    settings=Settings(wal_autocheckpoint=100),
    spec=Transactions(batch=4, value_size=256),
)
PROVED = Verdict(
    (
        Check(INTEGRITY, "ok", 134),
        Check(ACKNOWLEDGED, "ok", 412_345),
        Check(WHOLE, "ok", 8576),
        Check(SURVIVORS, "ok", 34),
    ),
    1.234,
)
LOST = Verdict(
    (
        Check(INTEGRITY, "ok", 134),
        Check(
            ACKNOWLEDGED,
            "failed",
            412_345,
            2,
            ("round 3: transaction 4 of writer 7 was acknowledged and is gone", "round 9: one more"),
        ),
        Check(
            WHOLE,
            "failed",
            8576,
            1,
            ("round 9: record 5: 1 of its 4 rows are not as its creation left them",),
        ),
    )
)
KILLS = Kills(
    CASE,
    planned=100,
    rounds=100,
    alone=34,
    kills=300,
    opening=17,
    acknowledged=25_113,
    finished=66,
    undone=217,
    databases=2,
    wals=100,
    checkpoints=5,
    verdict=PROVED,
    effective={"journal_mode": "wal", "synchronous": "full", "fullfsync": "0"},
    seconds=28.75,
)


def crash_report(kills: Kills = KILLS, *, interrupted: bool = False) -> Report:
    """Return the report of a crash test."""
    return replace(
        EXAMPLE,
        runs=(),
        planned=0,
        results={"crash": kills},
        interrupted=interrupted,
        command=("sqlstress", "crash", "--rounds", "100"),
    )


def lost_report() -> Report:
    """Return the report of a crash test in which something was lost."""
    settings = replace(CASE.settings, journal_mode="off")
    return crash_report(replace(KILLS, case=replace(CASE, settings=settings), verdict=LOST))


def empty_report() -> Report:
    """Return the report of a crash test whose writers died before they were told anything."""
    return crash_report(replace(KILLS, acknowledged=0, planned=100, rounds=1, kills=3), interrupted=True)
