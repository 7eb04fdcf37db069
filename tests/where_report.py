"""The corpus report with times by cause (`--where`)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.report.results import Where
from tests.analysis.hand_made import run, trial
from tests.example_report import corpus_report

MS = 1_000_000
where_report = partial(corpus_report, "where")
"""One process, and three that wait for each other."""
ALONE, TOGETHER = (where for each in where_report().runs if (where := each.trials[0].where))
assert TOGETHER.slowest
SLOWEST = TOGETHER.slowest


def run_with_time_shares(*wheres: Where, processes: int = 3, checkpointer: str = "", **settings: Any) -> Run:
    """Return a run whose passes have these times by cause."""
    own = Load(where=True, checkpointing=Checkpointing(checkpointer) if checkpointer else None)
    case = Case(spec=own)
    case = replace(case, settings=replace(case.settings, **settings))
    return run(1, processes, *(trial(where=where) for where in wheres), case=case)
