"""The order of the trials: every case in every pass, and drift meets all alike."""

from __future__ import annotations

from statistics import fmean

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.report.case import Case
from sqlstress.studies.sweep import turns

repeats = st.lists(st.integers(1, 6), min_size=1, max_size=12)


def cases_of(counts: list[int], seed: int = 0) -> list[Case]:
    return [Case(concurrency=place, repeat=count, seed=seed) for place, count in enumerate(counts, 1)]


@given(repeats, st.integers(0, 99))
def test_every_case_has_all_of_its_trials_in_ascending_passes(counts: list[int], seed: int) -> None:
    found = list(turns(cases_of(counts, seed)))
    assert sorted(found) == [(case, number) for case, count in enumerate(counts) for number in range(count)]
    assert [turn.number for turn in found] == sorted(turn.number for turn in found)


def test_every_second_pass_is_the_one_before_backwards_and_the_others_are_drawn() -> None:
    found = [turn.case for turn in turns(cases_of([6] * 9, seed=3))]
    passes = [found[start : start + 9] for start in range(0, 54, 9)]
    assert passes[0] == list(range(9))
    assert all(passes[place + 1] == passes[place][::-1] for place in (0, 2, 4))
    assert len({tuple(one) for one in passes}) == 6


def test_what_grows_steadily_meets_all_cases_alike_after_an_even_number_of_passes() -> None:
    found = list(turns(cases_of([4] * 5)))
    whens = [fmean(when for when, turn in enumerate(found) if turn.case == case) for case in range(5)]
    assert len(set(whens)) == 1


def test_the_seed_draws_the_order() -> None:
    def order(seed: int) -> list[int]:
        return [turn.case for turn in turns(cases_of([3] * 8, seed))]

    assert order(1) == order(1) != order(2)


def test_the_published_script_is_measured_case_by_case() -> None:
    cases = [Case(workload="classic", ops=5, concurrency=processes, repeat=2) for processes in (1, 2)]
    assert [turn.case for turn in turns(cases)] == [0, 0, 1, 1]
