"""Tests of the figure by which a run is compared with others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.group import rate_of
from sqlstress.experiment import face_of
from sqlstress.experiments.cycles.experiment import Cycling
from sqlstress.experiments.cycles.moves import STATEMENTS
from sqlstress.experiments.keys.experiment import Picks
from sqlstress.experiments.methods.experiment import Method
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_MS
from tests.analysis.hand_made import run, trial

WRONG = Verdict((Check("last write", "failed", 1, 1),))
METHOD = Case(workload="methods", spec=Method("insert", "BLK", True, 10, 1.0))


@pytest.mark.parametrize(
    ("case", "unit"),
    [
        (Case(), "transactions"),
        (Case(workload="classic"), "pairs"),
        (METHOD, "rows"),
        (Case(workload="keys", spec=Picks("no-key", "ulid")), "rows"),
        (Case(workload="cycles", spec=Cycling()), "cycles"),
    ],
)
def test_every_experiment_counts_something(case: Case, unit: str) -> None:
    assert face_of(case).rate_counts == unit


def test_the_rate_is_the_median_tps_or_the_rows_a_second() -> None:
    assert rate_of(run(1, 1, trial(100), trial(300), trial(200))) == 200
    assert rate_of(run(1, 1, trial(100, rows_per_s=1000.0), case=METHOD)) == 1000


def test_the_rate_of_cycles_is_that_of_all_processes_over_their_statements() -> None:
    own = tuple(Series(STATEMENTS, "ns", (2 * NS_PER_MS,) * 100, worker=worker) for worker in (1, 2))
    case = Case(workload="cycles", spec=Cycling())
    assert rate_of(run(1, 2, trial(1, series=own, seconds=9.0), case=case)) == pytest.approx(1000)


def test_what_was_not_done_or_is_wrong_has_no_rate() -> None:
    assert rate_of(Run(Case())) is None
    assert rate_of(run(1, 1, trial(5, error="worker 1 died"))) is None
    assert rate_of(run(1, 1, trial(0, rows_per_s=0.0, outcome="timeout"), case=METHOD)) is None
    assert rate_of(run(1, 1, replace(trial(5), verdict=WRONG))) is None
