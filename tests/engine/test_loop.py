"""The timed loop, with a fake source and a fake clock."""

import time
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.loop import (
    FIRST_CHUNK,
    FOREVER_NS,
    LONG_NS,
    SHORT_NS,
    Totals,
    Window,
    closed_loop,
    next_chunk_size,
    timed_loop,
)
from sqlstress.engine.protocols import Stamps
from sqlstress.experiments.kv.worker import GET, KINDS, REPLACE
from tests.engine.fakes import LARGEST, Busy, FakeClock, FakeSource, gets, idling, raising

WINDOW = Window(0, 100, 200)
NO_END = Window(0, 0, FOREVER_NS)


@pytest.fixture(
    scope="module", params=[True, False], ids=["acknowledging", "not-acknowledging"], autouse=True
)
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run each test also without acknowledgements: that loop is cheaper and must count the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeSource, "acknowledges", request.param)
        yield


def run(
    source: FakeSource, window: Window = WINDOW, limit: int | None = None, stop: list[int] | None = None
) -> Totals:
    return timed_loop(source, window, limit, [0], stop or [0], closed_loop(source), source.clock)


def source_of(operations: Any, **times: int) -> FakeSource:
    return FakeSource(FakeClock(), operations, **times)


def test_no_operation_begins_after_the_window_closes() -> None:
    source = source_of([(GET, 190), (GET, 20), (GET, 20), (GET, 20)])
    totals = run(source)
    assert source.begun == 2
    assert source.settled == [(2, ["result 1", "result 2"], Stamps([0, 190], [190, 210]))]
    assert totals.operations == {"get": 1}
    source = FakeSource(FakeClock(200), repeat((GET, 1)))
    assert run(source) == Totals()
    assert source.begun == 0


def test_loop_ends_at_its_limit_or_with_an_empty_source() -> None:
    source = FakeSource(FakeClock(5), repeat((REPLACE, 1)))
    totals = run(source, NO_END, limit=101)
    assert (source.begun, totals.operations, totals.rows) == (101, {"replace": 101}, 1010)
    assert (totals.first_ns, totals.last_ns) == (5, 106)
    source = source_of(repeat((GET, 1)))
    run(source, NO_END, limit=12)
    assert source.sizes == [8, 4]
    assert run(source_of(gets(21, 3)), NO_END).operations == {"get": 21}


def test_stop_flag_ends_the_loop_after_the_current_chunk() -> None:
    stop = [0]
    operations = [*gets(2, 1), (GET, 1, lambda: stop.__setitem__(0, 1)), *gets(1000, 1)]
    source = source_of(operations)
    totals = run(source, NO_END, stop=stop)
    assert totals.operations == {"get": FIRST_CHUNK}
    source = source_of(gets(3, 1))
    assert run(source, NO_END, stop=[1]).operations == {}
    assert source.begun == 0


def test_progress_counts_completed_operations_after_each_chunk() -> None:
    progress = [0]
    progress_seen: list[int] = []
    source = source_of(repeat((GET, 1, lambda: progress_seen.append(progress[0]))))
    timed_loop(source, NO_END, 24, progress, [0], closed_loop(source), source.clock)
    assert progress_seen == [0] * 8 + [8] * 16
    assert progress == [24]
    progress = [0]
    source = source_of([*gets(2, 1), *[(REPLACE, 1, raising(Busy()))] * 5, *gets(3, 1)])
    timed_loop(source, NO_END, None, progress, [0], closed_loop(source), source.clock)
    assert progress == [5]


def test_chunks_grow_with_short_operations_and_shrink_with_long_ones() -> None:
    source = source_of(gets(8 + 16 + 32 + 64 + 64, 1))
    run(source, NO_END)
    assert source.sizes == [8, 16, 32, 64, LARGEST]
    slow = LONG_NS // 16
    source = source_of([*gets(8 + 16 + 32, 1), *gets(64 + 32 + 16 + 8, slow)])
    run(source, NO_END)
    assert source.sizes == [8, 16, 32, 64, 32, 16, 16]


@pytest.mark.parametrize(
    ("size", "done", "took_ns", "expected"),
    [
        (8, 8, SHORT_NS - 1, 16),
        (8, 8, LONG_NS, 8),
        (64, 64, LONG_NS + 1, 32),
        (8, 8, LONG_NS + 1, FIRST_CHUNK),
        (48, 48, 0, 64),
        (16, 3, LONG_NS + 1, 16),
    ],
)
def test_next_chunk_size_depends_on_the_time_of_the_last_chunk(
    size: int, done: int, took_ns: int, expected: int
) -> None:
    assert next_chunk_size(size, done, took_ns, LARGEST) == expected


def test_abandoned_operation_counts_as_failed_and_has_no_result() -> None:
    source = source_of([*gets(12, 10), (REPLACE, 15, raising(Busy())), *gets(3, 10)])
    totals = run(source)
    assert totals.failed == 1
    assert totals.operations == {"get": 6}  # the ends at 100, 110, 120, 145, 155, 165
    assert totals.longest_wait_ns == 15
    assert [results[-1] for _, results, _ in source.settled][-1] == "result 16"
    source = source_of([(GET, 1), (GET, 1, raising(Busy())), (GET, 1)])
    run(source, NO_END)
    assert source.settled[0][1] == ["result 1", None, "result 3"]
    assert run(source_of([(GET, 5, raising(Busy())), (GET, 200)])).failed == 0


def test_any_other_error_ends_the_loop() -> None:
    with pytest.raises(OSError, match="disk I/O"):
        run(source_of([*gets(2, 1), (GET, 1, raising(OSError("disk I/O"))), (GET, 1)]))


def test_busy_answers_are_counted_inside_the_window_only() -> None:
    source = source_of([])

    def answer(busy: int, snapshot: int) -> Any:
        return lambda: setattr(source, "busy", (source.busy[0] + busy, source.busy[1] + snapshot))

    before = [(GET, 10, answer(5, 7)), *gets(7, 1)]  # one chunk that ends at 17
    inside = [(GET, 100, answer(2, 1)), *gets(15, 1)]  # ends at 132
    after = [(GET, 300, answer(9, 9))]
    source.operations = iter([*before, *inside, *after])
    totals = run(source)
    assert (totals.busy, totals.busy_snapshot) == (2, 1)


def test_time_between_chunks_is_counted_as_harness_and_proof() -> None:
    source = source_of(gets(8 + 16 + 32, 10), prepare_ns=3, settle_ns=7)
    totals = run(source, Window(0, 0, 10_000))
    assert totals.largest_ns == {"get": 10}
    assert totals.proof_ns == 3 * 7
    assert totals.harness_ns == 3 * (3 + 7)
    source = source_of([*gets(8, 1), (GET, 1_000)], prepare_ns=3, settle_ns=7)
    totals = run(source)
    assert (totals.harness_ns, totals.proof_ns) == (0, 0)


def test_closed_loop_begins_each_operation_at_the_previous_end() -> None:
    source = source_of([*gets(2, 5), (GET, 7), *gets(6, 1)], prepare_ns=3, settle_ns=2)
    run(source, NO_END)
    (*_, first), (*_, second) = source.settled
    assert first == Stamps([3, 8, 13, 20, 21, 22, 23, 24], [8, 13, 20, 21, 22, 23, 24, 25])
    assert second == Stamps([25 + 2 + 3], [31])


def idle(source: FakeSource, gap_ns: int, window: Window = NO_END) -> Totals:
    return timed_loop(source, window, None, [0], [0], idling(source.clock, gap_ns), source.clock)


def test_idle_time_is_in_no_latency_and_no_time_of_the_harness() -> None:
    operations = [*gets(12, 10), (REPLACE, 15, raising(Busy())), *gets(3, 30), (REPLACE, 20)]
    closed, gaps = run(source_of(operations), NO_END), idle(source_of(operations), 1_000)
    for totals in (closed, gaps):
        assert totals.largest_ns == {"get": 30, "replace": 20}
        assert totals.longest_wait_ns == 30
    assert gaps.buckets == closed.buckets
    assert (gaps.first_ns, gaps.last_ns) == (1_000, 17 * 1_000 + closed.last_ns)
    source = source_of(gets(8 + 16, 10), prepare_ns=3, settle_ns=7)
    totals = idle(source, 100, Window(0, 0, 10_000))
    assert totals.operations == {"get": 24}
    assert (totals.harness_ns, totals.proof_ns) == (2 * (3 + 7), 2 * 7)


def test_operation_pending_at_the_end_waited_since_its_own_begin() -> None:
    totals = idle(source_of([*gets(3, 10), (GET, 300)]), 40)
    assert totals.longest_wait_ns == 300
    totals = idle(source_of([*gets(3, 10), (GET, 300)]), 40, WINDOW)  # the last begins at 190
    assert (totals.operations, totals.longest_wait_ns) == ({"get": 2}, 300)


def test_idle_time_keeps_chunks_small_and_the_window_end_stops_the_loop() -> None:
    source = source_of(gets(8 + 16 + 16, 1))
    idle(source, SHORT_NS // 9)
    assert source.sizes == [8, 16, 16]
    source = source_of(gets(5 * 8, 1))
    idle(source, LONG_NS // 16)
    assert source.sizes == [8] * 5
    source = source_of(gets(100, 1), settle_ns=5)
    totals = idle(source, 1_000, WINDOW)
    assert (totals, source.begun) == (Totals(), 0)
    assert source.settled == [(0, [], Stamps([], []))]


def test_clock_defaults_to_perf_counter_ns() -> None:
    source = source_of(gets(5, 0))
    totals = timed_loop(source, NO_END, None, [0], [0], closed_loop(source))
    assert totals.last_ns > 0
    assert timed_loop.__defaults__ == (time.perf_counter_ns,)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), max_size=200),
    st.integers(0, 1000),
    st.integers(0, 1000),
)
def test_counts_equal_a_plain_evaluation_of_the_times(
    operations: list[tuple[int, int]], opens: int, length: int
) -> None:
    totals = run(source_of(operations), Window(0, opens, opens + length))
    expected = dict.fromkeys(KINDS, 0)
    now = 0
    for kind, ns in operations:
        now += ns
        expected[KINDS[kind]] += opens <= now < opens + length
    assert totals.operations == {name: count for name, count in expected.items() if count}
    assert totals.rows == sum(
        count * weight for count, weight in zip(expected.values(), FakeSource.row_weights, strict=True)
    )
