"""Properties of results: verdicts, medians and percentiles."""

from dataclasses import replace

import pytest
from hypothesis import given

from sqlstress.report import Check, Latency, Run, Trial, Verdict
from sqlstress.report.case import Case
from tests.example_report import example_report
from tests.strategies import histograms

TRIAL = example_report().runs[1].trials[0]


def trials(*tps: float) -> tuple[Trial, ...]:
    return tuple(replace(TRIAL, index=index, tps=value) for index, value in enumerate(tps))


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((), "skipped"),
        (("ok", "skipped"), "ok"),
        (("ok", "unknown"), "unknown"),
        (("unknown", "failed", "ok"), "failed"),
    ],
)
def test_verdict_is_the_worst_of_its_checks(statuses: tuple[str, ...], status: str) -> None:
    assert Verdict(tuple(Check("any", check_status) for check_status in statuses)).status == status


def test_verdict_includes_all_checks_and_invalid_trials() -> None:
    checks = (
        Check("a", "failed", counterexamples=("one",)),
        Check("b", "failed", counterexamples=("two", "three")),
    )
    assert Verdict(checks).counterexamples == ("one", "two", "three")
    lost = Verdict((Check("last write", "failed"),), seconds=1.0)
    run = Run(Case(), (TRIAL, replace(TRIAL, error="a worker died", verdict=lost)))
    assert run.verdict.status == "failed"
    assert run.verdict.seconds == TRIAL.verdict.seconds + 1.0


@pytest.mark.parametrize(
    ("tps", "typical", "median"), [((3, 1, 2), 2, 2), ((4, 1, 3, 2), 2, 2.5), ((7,), 7, 7)]
)
def test_typical_trial_is_the_lower_median(tps: tuple[float, ...], typical: float, median: float) -> None:
    run = Run(Case(), trials(*tps))
    typical_trial = run.typical()
    assert typical_trial is not None and typical_trial.tps == typical
    assert run.median_tps() == median


def test_run_uses_valid_trials_and_shows_invalid_ones_only_alone() -> None:
    slow, fast = trials(1, 9)
    run = Run(Case(), (replace(slow, error="a worker died"), fast))
    assert (
        run.valid == (fast,) and run.typical() == run.valid_median_trial() == fast and run.median_tps() == 9
    )
    run = Run(Case(), (replace(TRIAL, error="a worker died"),))
    assert run.typical() == run.trials[0] and run.median_tps() is None and run.valid_median_trial() is None
    assert Run(Case()).typical() is None and Run(Case()).valid_median_trial() is None
    assert replace(TRIAL, tps=500.0).tps_per_process == 250.0
    assert replace(TRIAL, workers=()).tps_per_process == 0.0


@given(histograms)
def test_percentiles_are_sorted_and_at_most_the_slowest(histogram: dict[int, int]) -> None:
    slowest = 10**14
    latency = Latency.from_buckets(histogram, slowest)
    percentiles = [latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.p999_ns]
    values = [value for value in percentiles if value is not None]
    assert values == sorted(values) and len(values) >= (3 if histogram else 0)
    assert latency.count == sum(histogram.values())
    assert dict(latency.buckets) == histogram and list(latency.buckets) == sorted(latency.buckets)


def test_percentile_is_limited_to_the_slowest_and_needs_enough_values() -> None:
    assert Latency.from_buckets({18_000: 5}, 3).p99_ns == 3.0
    assert Latency.from_buckets({18_000: 9_999}, 10**9).p999_ns is None
    assert Latency.from_buckets({18_000: 10_000}, 10**9).p999_ns is not None
