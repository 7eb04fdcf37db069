"""Numbers and places in sentences, and the rate by which runs are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis import wording
from sqlstress.analysis.group import rate_of
from sqlstress.experiment import rate_units_of
from sqlstress.experiments.classics import STATEMENTS
from sqlstress.experiments.classics.spec import Cycling, Method, Picks
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Arrivals, Case
from sqlstress.statistics import units
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_MS
from tests.analysis.hand_made import group, run, trial


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (units.rounded, 12_345.6, "12,300"),
        (units.rounded, 987.4, "987"),
        (units.rounded, 9.876, "9.88"),
        (units.rounded, 0.01234, "0.0123"),
        (units.rounded, 0, "0"),
        (units.rounded, 1e300, "1.00e+300"),
        (units.rounded, float("nan"), "?"),
        (units.rounded, 10**400, "?"),
        (wording.percent, 0.05, "5%"),
        (wording.percent, 0.0095, "0.95%"),
        (wording.percent, 0.234, "23%"),
        (wording.percent, 0.0999, "10%"),
        (wording.percent, 0.0, "0%"),
        (wording.duration, 2_232_000_000, "2.2 s"),
        (wording.duration, 145_000_000, "145 ms"),
        (wording.duration, 1_234, "1.2 µs"),
        (wording.duration, 912, "912 ns"),
        (wording.size, 999, "999 bytes"),
        (wording.size, 4120, "4.1 kB"),
        (wording.size, 1_012_000_000, "1.0 GB"),
        (wording.size, 2**64, "18,400,000 TB"),
    ],
)
def test_numbers_are_rounded_for_readers(write: Callable[[float], str], value: float, text: str) -> None:
    assert write(value) == text


@given(st.floats() | st.integers())
def test_every_number_has_a_short_text(value: float) -> None:
    for write in (units.rounded, wording.percent, wording.times, wording.duration):
        assert 0 < len(write(value)) < 25


def at(processes: int, files: int, rate: int | None = None) -> Case:
    return Case(concurrency=processes, buckets=files, arrivals=None if rate is None else Arrivals(rate))


@pytest.mark.parametrize(
    ("cases", "text"),
    [
        ([at(1, 1)], "1 process on 1 bucket"),
        ([at(8, 1), at(2, 1), at(4, 1)], "2, 4 and 8 processes on 1 bucket"),
        ([at(2, 1), at(3, 1), at(4, 1), at(2, 1)], "2 to 4 processes on 1 bucket"),
        ([at(1, 20), at(2, 20), at(1, 1), at(2, 1)], "1 and 2 processes on 1 and 20 buckets"),
        ([at(1, 1), at(8, 20)], "1 process on 1 bucket and 8 processes on 20 buckets"),
        ([at(4, 1, 1000), at(4, 1, 500)], "4 processes on 1 bucket at 500/s and 1,000/s"),
        ([at(4, 1), at(4, 1, 500)], "4 processes on 1 bucket and 4 processes on 1 bucket at 500/s"),
    ],
)
def test_places_have_short_labels(cases: list[Case], text: str) -> None:
    assert wording.places(cases) == text


def test_long_list_is_cut_with_a_note() -> None:
    assert wording.listing(list("abcdefgh")) == "a, b, c, d, e, f, g and h"
    assert wording.listing([str(number) for number in range(20)]) == "0, 1, 2, 3, 4, 5, 6 and 13 more"


METHOD = Case(workload="methods", spec=Method("insert", "BLK", True, 10, 1.0))
CYCLES = Case(workload="cycles", spec=Cycling())
STEPS = (Series(STATEMENTS, "ns", (2 * NS_PER_MS,) * 100, worker=1),)
WRONG = Verdict((Check("last write", "failed", 1, 1),))


@pytest.mark.parametrize(
    ("case", "unit"),
    [
        (Case(), "transactions"),
        (Case(workload="classic"), "pairs"),
        (METHOD, "rows"),
        (Case(workload="keys", spec=Picks("no-key", "ulid")), "rows"),
        (CYCLES, "cycles"),
    ],
)
def test_every_experiment_counts_something(case: Case, unit: str) -> None:
    assert rate_units_of(case) == unit


@pytest.mark.parametrize(
    ("case_run", "rate"),
    [
        (run(1, 1, trial(100), trial(300), trial(200)), 200),
        (run(1, 1, trial(100, rows_per_s=1000.0), case=METHOD), 1000),
        # The rate of cycles is by the time of their statements.
        (run(1, 1, trial(1, series=STEPS, seconds=9.0), case=CYCLES), pytest.approx(500)),
        (Run(Case()), None),
        (run(1, 1, trial(5, error="worker 1 died")), None),
        (run(1, 1, trial(0, rows_per_s=0.0, outcome="timeout"), case=METHOD), None),
        (run(1, 1, replace(trial(5), verdict=WRONG)), None),
    ],
)
def test_unfinished_or_wrong_run_has_no_rate(case_run: Run, rate: float | None) -> None:
    assert rate_of(case_run) == rate


def test_consecutive_numbers_are_written_as_a_range() -> None:
    counts = {(1, 3, 4, 5): "1 and 3 to 5", (1, 2, 3, 8): "1 to 3 and 8", (1, 2, 4): "1, 2 and 4"}
    for numbers, written in counts.items():
        cases = [Case(concurrency=number) for number in numbers]
        assert wording.process_counts(cases) == f"{written} processes"
        assert wording.places(cases) == f"{written} processes on 1 bucket"


def test_layout_shared_by_all_cases_is_left_out() -> None:
    single_bucket, many_buckets = run(1, 2), run(20, 2)
    assert group(single_bucket).short_places([single_bucket.case]) == "2 processes"
    assert group(single_bucket, many_buckets).short_places([many_buckets.case]) == "2 processes on 20 buckets"
