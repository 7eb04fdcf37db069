"""A report that tells where the time went, of the corpus."""

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
ALONE, TOGETHER = (where for one in where_report().runs if (where := one.trials[0].where))
assert TOGETHER.slowest
SLOWEST = TOGETHER.slowest


def told(*wheres: Where, processes: int = 3, checkpointer: str = "", **settings: Any) -> Run:
    """Return a run whose passes tell this."""
    own = Load(where=True, checkpointing=Checkpointing(checkpointer) if checkpointer else None)
    case = Case(spec=own)
    case = replace(case, settings=replace(case.settings, **settings))
    return run(1, processes, *(trial(where=one) for one in wheres), case=case)
