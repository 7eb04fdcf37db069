"""Tests of what is said of waiting: a long operation is none that waited long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.group import group_runs
from sqlstress.analysis.scaling import fewer_processes, starvation
from sqlstress.report import Latency
from sqlstress.statistics.histogram import bucket_of
from tests.example_report import example_report


@pytest.mark.parametrize(("usual_ns", "is_told"), [(100_000, True), (1_000_000_000, False)])
def test_an_operation_that_takes_long_anyway_did_not_starve(usual_ns: int, is_told: bool) -> None:
    report = example_report()
    run = next(one for one in report.runs if one.case.concurrency > 1)
    usual = Latency.from_buckets({bucket_of(usual_ns): 100}, usual_ns)
    trials = tuple(
        replace(one, fairness=1.0, longest_wait_ns=1_500_000_000, latency={"get": usual})
        for one in run.trials
    )
    (group,) = group_runs((replace(run, trials=trials),))
    assert bool(list(starvation(group, fewer_processes))) is is_told
