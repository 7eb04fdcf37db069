"""The report of methods in the corpus, and runs that differ from its runs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from sqlstress.experiments.classics.spec import Method
from sqlstress.report import Check, Run, Trial, Verdict
from sqlstress.report.case import Case, Settings
from tests.example_report import corpus_report, example_report

EXAMPLE = example_report()
OK = Verdict((Check("quick_check", "ok", 1), Check("samples", "ok", 100)), 0.01)
LIMITS = {
    "allocate": "303,075 parameters in one statement; this SQLite takes 250,000",
    "query": "parser stack overflow; 86 pairs at most",
}
methods_report = partial(corpus_report, "methods")
"""Runs of all phases through Peewee, and of some methods through sqlite3, by one process."""


def run(phase: str, tricks: str, scale: int, figure: float | str = 1000.0, **fields: Any) -> Run:
    """Return a run of a case with `fields`; `figure` is its rows per second, or how its trial failed."""
    case = case_of(phase, tricks, scale, **fields)
    if figure == "skipped":
        return Run(case, skipped=f"{tricks} met a limit at 100 already")
    return Run(case, (_trial(case, figure),))


def case_of(phase: str, tricks: str, scale: int, **fields: Any) -> Case:
    """Return the case of a method, named as its column is."""
    name, *others = tricks.split(" + ")
    method = Method(phase, name, "TSC" in others, scale, 2.6, 500)
    settings = Settings(journal_mode="wal" if "WAL" in others else "delete")
    return Case(
        workload="methods", duration_s=0.0, warmup_s=0.0, seed=7, settings=settings, spec=method, **fields
    )


def _trial(case: Case, figure: float | str) -> Trial:
    done = not isinstance(figure, str)
    rows_per_s = float(figure) if done else 0.0
    seconds = case.spec.rows / rows_per_s if rows_per_s else case.spec.timeout_s
    return replace(
        EXAMPLE.runs[0].trials[0],
        seconds=seconds,
        transactions=int(done),
        rows=case.spec.rows if done else 0,
        tps=1 / seconds if done else 0.0,
        rows_per_s=rows_per_s,
        latency={},
        workers=(),
        effective={"journal_mode": case.settings.journal_mode, "synchronous": "full"},
        verdict=OK,
        half_ratio=None,
        outcome="done" if done else str(figure),
        note=LIMITS.get(case.spec.phase, "") if figure == "limit" else "",
    )
