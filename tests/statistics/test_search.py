"""The search for the highest rate, on machines that are made up: noisy, moody, and with stalls."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, pairwise
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.search import (
    ALL,
    BREAKS,
    HOLDS,
    LADDER,
    OPEN,
    UNDECIDED,
    Answer,
    answer,
    next_rate,
    verdict,
)

MOST = 45
"""Windows for which there is time: five minutes of them."""


@dataclass(frozen=True)
class Machine:
    """What a machine does to a window, as standard deviations of a logarithm, and a probability."""

    noise: float
    """Of each window."""
    mood: float
    """Of what changes within `slowness` windows."""
    day: float
    """Of what is so for a whole run."""
    stalls: float
    """How often a window breaks its promise at whatever rate."""
    slowness: float = 7.0


QUIET = Machine(0.03, 0.03, 0.02, 0.02, slowness=5)
BUSY = Machine(0.08, 0.08, 0.03, 0.05)


def searched(machine: Machine, limit: float, seed: int) -> tuple[Answer, int]:
    """Search for a limit; return what was found, and after how many windows."""
    draw, keeps = Random(seed), math.exp(-1 / machine.slowness)
    day, mood = draw.gauss(0, machine.day), draw.gauss(0, machine.mood)
    windows: defaultdict[int, list[bool]] = defaultdict(list)
    start = int(0.9 * limit * math.exp(day + mood + draw.gauss(0, machine.noise)))
    for count in range(MOST):
        rate = next_rate(windows, start)
        if rate is None:
            return answer(windows), count
        mood = keeps * mood + math.sqrt(1 - keeps * keeps) * draw.gauss(0, machine.mood)
        now = limit * math.exp(day + mood + draw.gauss(0, machine.noise))
        windows[rate].append(rate <= now and draw.random() >= machine.stalls)
    return answer(windows), MOST


def overlap(one: Answer, other: Answer) -> bool:
    low, high = max(one.holds or 0, other.holds or 0), min(one.breaks or 10**9, other.breaks or 10**9)
    return low <= high


@pytest.mark.parametrize(("machine", "widest"), [(QUIET, 1.3), (BUSY, 1.7)], ids=["quiet", "busy"])
def test_of_five_answers_all_overlap_in_nine_of_ten_cases_and_most_take_three_minutes(
    machine: Machine, widest: float
) -> None:
    agreed, windows, widths = 0, [], []
    for case in range(60):
        limit = Random(case).uniform(300, 20_000)
        found = [searched(machine, limit, 10 * case + number) for number in range(5)]
        agreed += all(overlap(one, other) for (one, _), (other, _) in combinations(found, 2))
        windows += [count for _, count in found]
        widths += [one.breaks / one.holds for one, _ in found if one.breaks and one.holds]
    assert agreed >= 54
    assert median(windows) * 6.5 <= 180  # seconds of a window of 4 s, with what is around it
    assert median(widths) < widest
    assert len(widths) > 0.95 * 300


@given(st.integers(1, 999_999), st.integers(1, 999_999))
def test_without_noise_it_finds_the_two_steps_of_the_ladder_around_the_limit(limit: int, start: int) -> None:
    windows: defaultdict[int, list[bool]] = defaultdict(list)
    for _ in range(100):
        rate = next_rate(windows, start)
        if rate is None:
            break
        windows[rate].append(rate <= limit)
    found = answer(windows)
    assert found.holds is not None and found.breaks is not None
    assert found.holds <= limit < found.breaks
    assert LADDER.index(found.breaks) == LADDER.index(found.holds) + 1


@given(st.integers(1, 10**6), st.randoms(use_true_random=False))
def test_it_comes_to_an_end_whatever_windows_say_and_never_contradicts_itself(
    start: int, random: Random
) -> None:
    windows: defaultdict[int, list[bool]] = defaultdict(list)
    for _ in range(ALL * len(LADDER)):
        rate = next_rate(windows, start)
        if rate is None:
            break
        assert len(windows[rate]) < ALL
        assert verdict(windows[rate]) == UNDECIDED
        windows[rate].append(random.random() < 0.5)
    else:
        raise AssertionError("it has no end")
    found = answer(windows)
    if found.holds is not None and found.breaks is not None:
        assert found.holds < found.breaks


@pytest.mark.parametrize(("always", "found"), [(True, Answer(10**6, None)), (False, Answer(None, 1))])
def test_a_promise_that_always_holds_or_never_has_one_end(always: bool, found: Answer) -> None:
    windows: defaultdict[int, list[bool]] = defaultdict(list)
    while (rate := next_rate(windows, 1000)) is not None:
        windows[rate].append(always)
    assert answer(windows) == found


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ([], UNDECIDED),
        ([True], UNDECIDED),
        ([False] * (ALL - 1), UNDECIDED),
        ([True] * ALL, HOLDS),
        ([False] * ALL, BREAKS),
        ([True, False], OPEN),
        ([True] * ALL + [False], OPEN),
    ],
)
def test_what_is_known_of_a_rate(kept: list[bool], said: str) -> None:
    assert verdict(kept) == said


def test_what_holds_above_a_rate_that_does_not_is_no_answer() -> None:
    windows = {100: [True] * ALL, 200: [False] * ALL, 300: [True] * ALL}
    assert answer(windows) == Answer(100, 200)


def test_the_neighbours_are_looked_at_in_turns() -> None:
    windows: dict[int, list[bool]] = {100: [True], 110: [False]}
    order = []
    while (rate := next_rate(windows, 100)) is not None:
        order.append(rate)
        windows[rate].append(rate == 100)
    assert len(order) == 2 * (ALL - 1)
    assert all({one, other} == {100, 110} for one, other in zip(order[::2], order[1::2], strict=True))


def test_steps_of_the_ladder_are_about_a_tenth_apart() -> None:
    assert all(1.05 < after / before < 1.16 for before, after in pairwise(LADDER) if before >= 10)
    assert LADDER[0] == 1 and LADDER[-1] == 10**6
