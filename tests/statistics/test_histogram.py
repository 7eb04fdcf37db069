"""The log-linear histogram."""

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.histogram import Recorder, bin_floor, bin_of, is_bin, merge, percentile
from tests.strategies import histograms, latencies_ns

ROUNDING = 2**-24
"""A float32 holds a whole number to within this share of it."""


def recorded(values: list[int]) -> dict[int, int]:
    recorder = Recorder()
    recorder.record(values)
    return recorder.buckets()


@given(latencies_ns)
def test_latency_lies_in_its_bin_of_at_most_a_128th_width(ns: int) -> None:
    floor, ceiling = (bin_floor(bin_of(ns) + step) for step in (0, 1))
    assert floor * (1 - ROUNDING) <= ns < ceiling
    assert 0 < ceiling - floor <= floor / 128


@given(latencies_ns, latencies_ns)
def test_bin_index_never_falls_with_growing_latency(first: int, second: int) -> None:
    low, high = sorted((first, second))
    assert bin_of(low) <= bin_of(high)


@given(latencies_ns.map(bin_of))
def test_bin_begins_at_the_floor_of_its_index(index: int) -> None:
    assert bin_floor(index) < bin_floor(index + 1)
    assert bin_of(math.ceil(bin_floor(index) * 2**40)) == index + 40 * 128


def test_zero_has_its_own_lowest_bin() -> None:
    assert bin_of(0) == 0 < bin_of(1)
    assert recorded([0, 0, 1]) == {bin_of(0): 2, bin_of(1): 1}


@pytest.mark.parametrize(
    ("index", "possible"),
    [(-1, False), (0, True), (1, True), (0x7F7E, True), (0x7F7F, False), (0x7F80, False)],
)
def test_bin_begins_at_zero_or_above_and_ends_at_a_finite_number(index: int, possible: bool) -> None:
    assert is_bin(index) is possible


@given(st.lists(latencies_ns, max_size=50))
def test_every_latency_recorded_is_counted_once(values: list[int]) -> None:
    assert recorded(values) == Counter(map(bin_of, values))


@given(st.lists(st.lists(latencies_ns, max_size=20), max_size=5))
def test_merging_histograms_is_recording_everything_in_one(parts: list[list[int]]) -> None:
    assert merge(map(recorded, parts)) == recorded([ns for part in parts for ns in part])


@given(st.lists(histograms, max_size=4))
def test_merging_adds_counts_in_any_order_and_changes_none_of_its_parts(parts: list[dict[int, int]]) -> None:
    before = [dict(part) for part in parts]
    assert merge(parts) == merge(reversed(parts))
    assert sum(merge(parts).values()) == sum(sum(part.values()) for part in parts)
    assert parts == before


@given(
    st.lists(latencies_ns, min_size=1, max_size=200),
    st.sampled_from(["0", "0.5", "0.9", "0.99", "0.999", "1"]),
)
def test_percentile_lies_in_the_bin_of_the_nearest_rank(values: list[int], share: str) -> None:
    rank = max(1, math.ceil(Fraction(share) * len(values)))
    exact = sorted(values)[rank - 1]
    index = bin_of(exact)
    estimate = percentile(recorded(values), float(share))
    assert estimate is not None
    assert bin_floor(index) < estimate < bin_floor(index + 1)
    assert abs(estimate - exact) <= exact * 0.016


def test_no_operations_have_no_percentile() -> None:
    assert percentile({}, 0.5) is None


def test_memory_is_bounded_for_any_number_of_latencies() -> None:
    recorder = Recorder()
    most = 0
    for batch in range(400):
        recorder.record(range(batch * 1_000_000, batch * 1_000_000 + 1_000))
        most = max(most, len(recorder._exact) + len(recorder._folded))
    assert most < 30_000
    assert sum(recorder.buckets().values()) == 400_000


def test_bins_may_be_read_again_while_recording_goes_on() -> None:
    recorder = Recorder()
    recorder.record([5])
    first = recorder.buckets()
    recorder.record([5])
    assert (first, recorder.buckets()) == ({bin_of(5): 1}, {bin_of(5): 2})


@given(st.lists(st.lists(latencies_ns, max_size=5), max_size=5))
def test_largest_latency_is_kept_exactly_whenever_bins_are_read(batches: list[list[int]]) -> None:
    recorder = Recorder()
    for batch in batches:
        recorder.record(batch)
        recorder.buckets()
    assert recorder.largest() == max((ns for batch in batches for ns in batch), default=0)
