"""Whether a case kept up with its rate: tried on trials that did, that did not, and that leave it open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from sqlstress.analysis.scaling import KEPT_UP, RATE_UNKNOWN, SATURATED, achieved, saturation
from sqlstress.report import Trial
from tests.rate_report import rate_trial


def trials(*shares: float, due: int = 1000) -> Sequence[Trial]:
    """Return trials in which these shares of what was due were done."""
    base = rate_trial(due, 1e9, seconds=1.0)
    return [replace(base, transactions=round(share * due)) for share in shares]


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ([1.0], KEPT_UP),
        ([0.99], KEPT_UP),
        ([1.3, 0.8], KEPT_UP),  # what the first one did more was left from its warm-up
        ([0.5], SATURATED),
        ([0.97], RATE_UNKNOWN),  # of 1,000 independent arrivals 30 more or less are chance
        ([0.5, 0.52, 0.48], SATURATED),
        ([0.96, 0.961, 0.959], SATURATED),
        ([0.99, 0.7, 1.0], RATE_UNKNOWN),
        ([0.0, 0.0, 0.0], SATURATED),
    ],
)
def test_what_is_said_of_shares(shares: list[float], said: str) -> None:
    assert saturation(trials(*shares), 0.05) == said


def test_a_closed_loop_and_a_window_in_which_nothing_was_due_say_nothing() -> None:
    closed = replace(rate_trial(10, 1e9), arrived=None)
    assert achieved([closed]) is None
    assert saturation([closed], 0.05) == saturation([], 0.05) == KEPT_UP
    assert achieved(trials(1.0, due=0)) is None


@pytest.mark.thorough
def test_a_case_that_keeps_up_is_hardly_ever_called_saturated() -> None:
    draw = Random(1)
    wrong = 0
    for _ in range(500):
        shares = [math.exp(draw.gauss(0, 0.02)) for _ in range(5)]
        wrong += saturation(trials(*shares, due=100_000), 0.05) == SATURATED
    assert wrong < 500 * 0.05
