"""A figure over time, in a bounded number of values."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.kv.companions import MOST, largest, summed

WIDTH = 1000
samples = st.lists(
    st.tuples(st.integers(0, 50 * MOST * WIDTH), st.integers(0, 10**12)), min_size=1, max_size=300
)


@given(samples)
def test_a_sum_and_a_maximum_stay_exact_however_long_it_goes_on(samples: list[tuple[int, int]]) -> None:
    total, most = summed("a", "frames", WIDTH), largest("b", "bytes", WIDTH)
    for at_ns, value in samples:
        total.add(at_ns, value)
        most.add(at_ns, value)
    values = [value for _, value in samples]
    assert sum(total.series().values) == sum(values)
    assert max(most.series().values) == max(values)


@given(samples)
def test_there_are_never_too_many_values_and_each_says_when_its_stretch_began(
    samples: list[tuple[int, int]],
) -> None:
    figure = largest("b", "bytes", WIDTH)
    for at_ns, value in samples:
        figure.add(at_ns, value)
    series = figure.series()
    assert len(series.values) == len(series.times_ns) <= MOST
    gaps = {later - earlier for earlier, later in pairwise(series.times_ns)}
    assert all(gap > 0 for gap in gaps)
    # Half as many stretches would have been too few.
    last = max(at_ns for at_ns, _ in samples)
    width = WIDTH
    while last // width >= MOST:
        width *= 2
    found: dict[int, int] = {}
    for at_ns, value in samples:
        found[at_ns // width * width] = max(value, found.get(at_ns // width * width, 0))
    assert dict(zip(series.times_ns, series.values, strict=True)) == found


def test_one_stretch_too_many_makes_half_as_many() -> None:
    figure = summed("a", "frames", WIDTH)
    for place in range(MOST):
        figure.add(place * WIDTH, 1)
    assert figure.series().values == (1,) * MOST
    figure.add(MOST * WIDTH, 1)
    assert figure.series().values == (*[2] * (MOST // 2), 1)


def test_a_stretch_in_which_nothing_was_seen_has_no_value() -> None:
    figure = summed("a", "frames", WIDTH)
    for at_ns in (10, 20, 5 * WIDTH):
        figure.add(at_ns, 1)
    assert (figure.series().values, figure.series().times_ns) == ((2, 1), (0, 5 * WIDTH))
