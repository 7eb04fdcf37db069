"""Tests of numbers in sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis import wording
from sqlstress.report.case import Arrivals, Case


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12_345.6, "12,300"),
        (987.4, "987"),
        (9.876, "9.88"),
        (0.01234, "0.0123"),
        (0, "0"),
        (1e300, "1.00e+300"),
        (float("nan"), "?"),
        (10**400, "?"),
    ],
)
def test_numbers_are_rounded_to_three_digits(value: float, text: str) -> None:
    assert wording.rounded(value) == text


@given(st.floats() | st.integers())
def test_no_number_breaks_a_sentence(value: float) -> None:
    for write in (wording.rounded, wording.percent, wording.times, wording.duration):
        assert 0 < len(write(value)) < 25


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.05, "5%"), (0.0095, "0.95%"), (0.234, "23%"), (0.0999, "10%"), (1.0, "100%"), (0.0, "0%")],
)
def test_percentages_have_two_digits(share: float, text: str) -> None:
    assert wording.percent(share) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [(2_232_000_000, "2.2 s"), (145_000_000, "145 ms"), (912, "912 ns"), (1_234, "1.2 µs"), (60e9, "60 s")],
)
def test_durations_take_the_unit_that_people_would(ns: float, text: str) -> None:
    assert wording.duration(ns) == text


@pytest.mark.parametrize(
    ("cases", "text"),
    [
        ([(1, 1)], "1 process on 1 file"),
        ([(8, 1), (2, 1), (4, 1)], "2, 4 and 8 processes on 1 file"),
        ([(2, 1), (3, 1), (4, 1), (2, 1)], "2 to 4 processes on 1 file"),
        ([(1, 20), (2, 20), (1, 1), (2, 1)], "1 and 2 processes on 1 and 20 files"),
        ([(1, 1), (8, 20)], "1 process on 1 file and 8 processes on 20 files"),
    ],
)
def test_places_are_told_briefly(cases: list[tuple[int, int]], text: str) -> None:
    assert wording.places(Case(concurrency=count, buckets=files) for count, files in cases) == text


def test_a_long_list_is_cut_and_says_so() -> None:
    assert wording.listing(list("abcdefgh")) == "a, b, c, d, e, f, g and h"
    assert wording.listing([str(number) for number in range(20)]) == "0, 1, 2, 3, 4, 5, 6 and 13 more"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (4120, "4.1 kB"),
        (85_000_000, "85 MB"),
        (1_012_000_000, "1.0 GB"),
        (2**64, "18,400,000 TB"),
    ],
)
def test_sizes_are_written_in_the_unit_that_people_would_use(count: int, text: str) -> None:
    assert wording.size(count) == text


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ([500], "4 processes on 1 file at 500/s"),
        ([1000, 500], "4 processes on 1 file at 500/s and 1,000/s"),
        ([None], "4 processes on 1 file"),
        ([None, 500], "4 processes on 1 file and 4 processes on 1 file at 500/s"),
    ],
)
def test_places_say_the_rates_of_open_loops(rates: list[int | None], said: str) -> None:
    cases = [Case(concurrency=4, arrivals=None if rate is None else Arrivals(rate)) for rate in rates]
    assert wording.places(cases) == said
    assert wording.place(cases[0]).startswith("4 processes on 1 file")
