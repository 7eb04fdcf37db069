"""The counts of a worker."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.loop import BIN_NS, FOREVER_NS, MAX_BINS, LoopTally, Totals, Window
from sqlstress.engine.protocols import FAILED, Stamps
from sqlstress.experiments.kv.worker import GET, KINDS, PAIR, REPLACE, UPDATE
from sqlstress.statistics.histogram import Recorder, bin_of, merge
from sqlstress.statistics.units import NS_PER_S

WEIGHTS = (1, 10, 1, 2)
WIDE = Window(0, 0, FOREVER_NS)

operations = st.lists(st.tuples(st.sampled_from((0, 1, 2, 3, FAILED)), st.integers(1, 10**9)), max_size=60)
"""(kind, nanoseconds) of consecutive operations."""


def tally_of(window: Window, *chunks: list[tuple[int, int]], begin: int = 1, gap: int = 0) -> Totals:
    """Count chunks of operations, each operation `gap` ns after the previous end."""
    tally = LoopTally(window, KINDS, WEIGHTS)
    now = begin - gap
    for chunk in chunks:
        begins, ends = [], []
        for _, ns in chunk:
            begins.append(now + gap)
            ends.append(now := now + gap + ns)
        tally.add(bytearray(kind for kind, _ in chunk), Stamps(begins, ends))
    return tally.finish()


def test_failed_operations_have_a_histogram_of_their_own() -> None:
    totals = tally_of(Window(0, 100, 10_000), [(FAILED, 50), (FAILED, 700), (GET, 9), (FAILED, 300)])
    assert totals.failed == 2
    assert totals.failed_buckets == {bin_of(700): 1, bin_of(300): 1}
    assert totals.largest_failed_ns == totals.longest_wait_ns == 700


def test_kinds_are_counted_separately_with_rows_and_latencies() -> None:
    totals = tally_of(WIDE, [(GET, 5), (REPLACE, 700), (GET, 9), (UPDATE, 80), (PAIR, 60), (REPLACE, 300)])
    assert totals.operations == {"get": 2, "replace": 2, "update": 1, "pair": 1}
    assert totals.rows == 2 * 1 + 2 * 10 + 1 + 2
    assert totals.largest_ns == {"get": 9, "replace": 700, "update": 80, "pair": 60}
    assert {kind: sum(buckets.values()) for kind, buckets in totals.buckets.items()} == totals.operations
    totals = tally_of(WIDE, [(GET, 5)])
    assert (totals.operations, list(totals.buckets), list(totals.largest_ns)) == (
        {"get": 1},
        ["get"],
        ["get"],
    )
    totals = tally_of(Window(0, 100, 110), [(GET, 10)], [(GET, 200)], begin=7)
    assert (totals.first_ns, totals.last_ns) == (7, 217)


def test_abandoned_operations_are_counted_separately_and_in_no_bin() -> None:
    totals = tally_of(WIDE, [(GET, 5), (FAILED, 900), (FAILED, 20), (GET, 7)])
    assert (totals.operations, totals.failed, totals.longest_wait_ns) == ({"get": 2}, 2, 900)
    assert totals.rows == 2
    totals = tally_of(WIDE, [(FAILED, 900), (GET, 5)], [(FAILED, 20), (FAILED, 30)])
    assert (totals.failed, totals.longest_wait_ns) == (3, 900)
    window = Window(0, 1000, 1000 + 4 * BIN_NS)
    given_up = [(FAILED, 1000), (GET, 10), (FAILED, BIN_NS), (FAILED, 10), (GET, 10), (FAILED, BIN_NS)]
    assert tally_of(window, given_up, [(FAILED, 10)], begin=0).bins == [1, 1]


def test_longest_wait_is_of_the_slowest_operation_in_the_window() -> None:
    assert tally_of(WIDE, [(GET, 5), (REPLACE, 900)], [(GET, 30)]).longest_wait_ns == 900
    totals = tally_of(Window(0, 1000, 2000), [(GET, 900)], [(GET, 200)])
    assert (totals.operations, totals.longest_wait_ns) == ({"get": 1}, 200)
    totals = tally_of(Window(0, 0, 100), [(GET, 60), (GET, 70)], [(GET, 5000)])
    assert (totals.operations, totals.longest_wait_ns) == ({"get": 1}, 70)
    totals = tally_of(Window(0, 0, 100), [(GET, 20), (GET, 200)], begin=0, gap=70)
    assert (totals.operations, totals.longest_wait_ns) == ({"get": 1}, 200)


@pytest.mark.parametrize("gap", [80, 81, 5000])
def test_operation_begun_after_the_window_is_not_its_longest_wait(gap: int) -> None:
    totals = tally_of(Window(0, 0, 100), [(GET, 20), (GET, 300)], begin=0, gap=gap)
    assert (totals.operations, totals.longest_wait_ns) == ({"get": 1}, 20)


@given(operations, st.integers(0, 10**10))
def test_idle_time_between_operations_is_in_no_latency(done: list[tuple[int, int]], gap: int) -> None:
    if not done:
        return
    at_once, idle = tally_of(WIDE, done), tally_of(WIDE, done, gap=gap)
    for name in ("first_ns", "operations", "rows", "buckets", "largest_ns", "longest_wait_ns", "failed"):
        assert getattr(idle, name) == getattr(at_once, name)
    assert idle.last_ns == at_once.last_ns + gap * (len(done) - 1)


@pytest.mark.parametrize(
    ("seconds", "bin_ns"),
    [(0.05, BIN_NS), (2, BIN_NS), (60, BIN_NS), (60.1, 100_166_667), (3600, 6 * NS_PER_S)],
)
def test_bin_is_a_tenth_of_a_second_unless_the_window_is_long(seconds: float, bin_ns: int) -> None:
    window = Window(0, 500, 500 + round(seconds * NS_PER_S))
    assert window.bin_ns == bin_ns
    assert -(-(window.closes_ns - window.opens_ns) // window.bin_ns) <= MAX_BINS


def test_bins_count_completed_operations_and_are_limited() -> None:
    window = Window(0, 1000, 1000 + 4 * BIN_NS)
    totals = tally_of(window, [(GET, 1000), (GET, BIN_NS - 1001), (GET, 1001)], [(GET, 2 * BIN_NS)], begin=0)
    # The ends, after the opening: 0, one short of a bin, a whole bin, three bins.
    assert totals.bins == [2, 1, 0, 1]
    totals = tally_of(WIDE, [(GET, BIN_NS)] * 3, [(GET, MAX_BINS * BIN_NS)], [(GET, 1)], begin=0)
    assert len(totals.bins) <= MAX_BINS
    assert sum(totals.bins) == 3
    assert totals.operations == {"get": 5}
    assert WIDE.bin_ns == BIN_NS


@given(operations, st.integers(0, 10**10), st.integers(0, 10**10))
def test_bins_add_up_to_completed_operations(done: list[tuple[int, int]], opens: int, length: int) -> None:
    totals = tally_of(Window(0, opens, opens + length), done)
    assert sum(totals.bins) == sum(totals.operations.values())


@given(operations, st.lists(st.integers(0, 60), max_size=4), st.integers(0, 10**10), st.integers(0, 10**10))
def test_counts_do_not_depend_on_chunk_sizes(
    done: list[tuple[int, int]], cuts: list[int], opens: int, length: int
) -> None:
    window = Window(0, opens, opens + length)
    places = [0, *sorted(min(cut, len(done)) for cut in cuts), len(done)]
    chunks = [done[start:end] for start, end in pairwise(places) if start < end]
    whole, parts = tally_of(window, *([done] if done else [])), tally_of(window, *chunks)
    assert parts == whole


@given(operations, operations)
def test_histograms_of_two_workers_add_up_to_the_histogram_of_all(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    parts = [tally_of(WIDE, first), tally_of(WIDE, second)]
    for kind, name in enumerate(KINDS):
        everything = Recorder()
        everything.record(ns for recorded_kind, ns in [*first, *second] if recorded_kind == kind)
        assert merge(part.buckets.get(name, {}) for part in parts) == everything.buckets()
