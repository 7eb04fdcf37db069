"""The times of failed operations, as both loops record them."""

from __future__ import annotations

from pathlib import Path

import pytest

import sqlstress


@pytest.mark.parametrize("loop", ["native", "python"])
def test_failures_have_a_time_for_each_failed_operation(tmp_path: Path, loop: str) -> None:
    report = sqlstress.measure(
        directory=tmp_path,
        loop=loop,
        concurrency=4,
        buckets=1,
        duration="200ms",
        repeat=1,
        read_ratio=0,
        busy_timeout="1ms",
        max_failed="100%",
    )
    (trial,) = report.runs[0].trials
    assert trial.failed == sum(each.latency.count for each in trial.failures)
    assert all(each.latency.max_ns > 0 for each in trial.failures)
    assert all(
        sum(count for _, count in each.latency.buckets) == each.latency.count for each in trial.failures
    )
