"""Findings for every load: saturation, starvation and waits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.scaling import (
    KEPT_UP,
    RATE_UNKNOWN,
    SATURATED,
    achieved_share,
    saturation,
    starvation,
    waits,
)
from sqlstress.report import Latency, Run, Trial
from sqlstress.statistics.histogram import bin_of
from tests.analysis.hand_made import group, run, trial
from tests.rate_report import rate_trial


@pytest.mark.parametrize(("usual_ns", "starved"), [(100_000, True), (1_000_000_000, False)])
def test_slow_operation_is_not_starvation(usual_ns: int, starved: bool) -> None:
    usual = Latency.from_buckets({bin_of(usual_ns): 100}, usual_ns)
    waited = run(1, 2, trial(longest_wait_ns=1_500_000_000, latency={"get": usual}))
    assert bool(list(starvation(group(waited)))) is starved


def trials(*shares: float, due: int = 1000) -> Sequence[Trial]:
    """Return trials that completed these shares of the due operations."""
    base = rate_trial(due, 1e9, seconds=1.0)
    return [replace(base, transactions=round(share * due)) for share in shares]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([1.0], KEPT_UP),
        ([0.99], KEPT_UP),
        ([1.3, 0.8], KEPT_UP),  # the excess of the first trial comes from its warm-up
        ([0.5], SATURATED),
        ([0.97], RATE_UNKNOWN),  # of 1,000 independent arrivals 30 more or less are chance
        ([0.96, 0.961, 0.959], SATURATED),
        ([0.99, 0.7, 1.0], RATE_UNKNOWN),
        ([0.0, 0.0, 0.0], SATURATED),
        ([], KEPT_UP),
    ],
)
def test_saturation_follows_from_the_completed_shares(shares: list[float], expected: str) -> None:
    assert saturation(trials(*shares), 0.05) == expected


def test_closed_loop_and_empty_window_are_not_saturated() -> None:
    closed = replace(rate_trial(10, 1e9), arrived=None)
    assert achieved_share([closed]) is None and saturation([closed], 0.05) == KEPT_UP
    assert achieved_share(trials(1.0, due=0)) is None


@pytest.mark.thorough
def test_case_that_keeps_up_is_rarely_called_saturated() -> None:
    draw = Random(1)
    wrong = 0
    for _ in range(500):
        shares = [math.exp(draw.gauss(0, 0.02)) for _ in range(5)]
        wrong += saturation(trials(*shares, due=100_000), 0.05) == SATURATED
    assert wrong < 500 * 0.05


MS = 1_000_000


def waited(files: int, processes: int, *waits_ms: float, fairness: float = 1.0) -> Run:
    """Return a run with a pass for each longest wait."""
    passes = (trial(longest_wait_ns=round(ms * MS), fairness=fairness) for ms in waits_ms)
    return run(files, processes, *passes)


def facts(code: str, *runs: Run) -> dict[str, object] | None:
    """Return the facts of the first finding with a code, whose sentence takes them; None if there is none."""
    for finding in advise_group(group(*runs)):
        if finding.code == code:
            assert finding.text
            return dict(finding.facts)
    return None


def test_effect_of_more_files_on_waits_and_fairness_is_reported() -> None:
    single_file = waited(1, 8, 900, 931, 800, 850, 870, fairness=0.12)
    many = waited(20, 8, 50, 56, 40, 45, 48, fairness=0.99)
    values = facts("waits", waited(1, 1, *[2] * 5), single_file, waited(20, 1, *[2] * 5), many)
    assert values == {
        "change": ("20 buckets", "1 bucket"),
        "most": 8,
        "wait_before_ns": 931 * MS,
        "wait_ns": 56 * MS,
        "fairness_before": 0.12,
        "fairness": 0.99,
    }


def test_waits_with_more_processes_are_not_compared() -> None:
    assert facts("waits", waited(1, 1, *[2] * 5), waited(1, 8, *[90] * 5)) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((2, 3, 2, 2, 50), (40, 60, 70, 80, 90)),  # the passes of the two cases overlap
        ((2, 3, 2, 2), (60, 70, 80, 90)),  # four passes of each may be chance
        ((20, 21, 20, 20, 20), (23, 24, 25, 26, 27)),  # significant, but small
    ],
)
def test_similar_or_uncertain_waits_are_not_reported(
    one: tuple[float, ...], other: tuple[float, ...]
) -> None:
    assert facts("waits", waited(1, 8, *one), waited(20, 8, *other)) is None


def test_waits_need_more_passes_with_more_tables() -> None:
    single_group = group(waited(1, 8, 2, 3, 2, 2, 2), waited(20, 8, 90, 60, 70, 80, 75))
    has_finding = [
        "waits" in [finding.code for finding in waits(replace(single_group, groups=count))]
        for count in (1, 3, 4)
    ]
    assert has_finding == [True, True, False]
