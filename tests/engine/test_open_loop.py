"""The open loop, with a fake source and a fake clock: begins of operations, and counts."""

from collections.abc import Iterator, Sequence
from itertools import chain, count, islice, pairwise, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.loop import Totals, Window, closed_loop, timed_loop
from sqlstress.engine.open_loop import IDLE_NS, MOST_NS, DueSleeper, OpenLoop, due_times
from sqlstress.experiments.kv.worker import GET, REPLACE
from sqlstress.report.case import Arrivals, Case
from sqlstress.statistics.histogram import percentile
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S
from tests.engine.fakes import Busy, FakeClock, FakeSource, gets, raising

MS = NS_PER_MS
WINDOW = Window(0, 100 * MS, 1100 * MS)


class Machine:
    """A fake clock for pauses and polls, and a fake source on it."""

    def __init__(self, operations: Any, late_ns: int = 0, **times: int) -> None:
        self.clock, self.late_ns = FakeClock(), late_ns
        self.source = FakeSource(self.clock, operations, **times)

    def pause(self, seconds: float) -> None:
        self.clock.now += round(seconds * NS_PER_S) + self.late_ns

    def tick(self) -> int:
        self.clock.now += 100  # or polling would have no end
        return int(self.clock.now)

    def run(self, dues: Iterator[int], limit_ns: int | None = None, window: Window = WINDOW) -> Totals:
        loop = OpenLoop(dues, limit_ns, window, self.pause)
        totals = timed_loop(self.source, window, None, [0], [0], loop, self.tick)
        loop.finish(totals, self.clock.now)
        return totals


def due_every(gap_ns: int) -> Iterator[int]:
    return count(0, gap_ns)


def latency_counts(totals: Totals) -> dict[str, int]:
    return {kind: sum(buckets.values()) for kind, buckets in totals.arrived.buckets.items()}


def from_due(totals: Totals, share: float) -> float:
    """Return a percentile of the latencies of all operations from their due times, in ms."""
    whole: dict[int, int] = {}
    for buckets in totals.arrived.buckets.values():
        for index, number in buckets.items():
            whole[index] = whole.get(index, 0) + number
    return (percentile(whole, share) or 0.0) / MS


def test_operation_begins_when_due_and_idle_time_is_no_harness_cost() -> None:
    machine = Machine(gets(1000, MS))
    totals = machine.run(due_every(10 * MS))
    begins = list(chain.from_iterable(stamps.begins for _, _, stamps in machine.source.settled))
    assert len(begins) == 110
    assert all(0 <= begin - 10 * MS * number < 1000 for number, begin in enumerate(begins))
    assert totals.operations == {"get": 100}
    assert latency_counts(totals) == {"get": 100}
    totals = Machine(gets(1000, MS)).run(due_every(100 * MS))
    assert totals.harness_ns < 10 * MS


def test_overdue_operation_begins_at_once_and_its_latency_has_the_wait() -> None:
    machine = Machine([(REPLACE, 35 * MS), *gets(1000, MS)])
    totals = machine.run(due_every(10 * MS), window=Window(0, 0, 100 * MS))
    (_, _, stamps), *_ = machine.source.settled
    assert [begin // MS for begin in stamps.begins[:6]] == [0, 35, 36, 37, 40, 50]
    # The second was due at 10 and ended at 36.
    assert totals.arrived.largest_ns["get"] // MS == 26
    assert totals.largest_ns["get"] // MS == 1  # its service time
    assert totals.longest_wait_ns // MS == 35


def test_stall_delays_all_due_operations_but_only_one_of_a_closed_loop() -> None:
    def operations() -> Iterator[tuple[int, int]]:
        return chain(gets(40, MS), [(REPLACE, 500 * MS)], repeat((GET, MS)))

    open_machine, closed_machine = Machine(operations()), Machine(operations())
    totals = open_machine.run(due_every(10 * MS))
    closed_totals = timed_loop(
        closed_machine.source, WINDOW, None, [0], [0], closed_loop(closed_machine.source), closed_machine.tick
    )
    # Of 100 due operations, 50 came during the stall, and some more during the catching up.
    assert 200 < from_due(totals, 0.75) < 500
    assert (percentile(closed_totals.buckets["get"], 0.99) or 0) / MS < 1.1


@given(
    st.lists(st.tuples(st.integers(0, 3 * MS), st.booleans()), min_size=1, max_size=30),
    st.integers(MS // 2, 5 * MS),
    st.none() | st.integers(0, 20 * MS),
)
def test_due_operations_are_done_abandoned_skipped_or_queued(
    lengths: list[tuple[int, bool]], gap_ns: int, limit_ns: int | None
) -> None:
    window = Window(0, 10 * MS, 60 * MS)
    operations = [(GET, ns, *([raising(Busy())] if busy else [])) for ns, busy in lengths]
    totals = Machine(operations * 200).run(due_every(gap_ns), limit_ns, window)
    due = len(
        [
            time_ns
            for time_ns in islice(due_every(gap_ns), 300)
            if window.opens_ns <= time_ns < window.closes_ns
        ]
    )
    arrived = totals.arrived
    given_up = due - arrived.skipped - sum(latency_counts(totals).values())
    assert arrived.due == due
    assert latency_counts(totals).get("queued", 0) == arrived.queued
    assert given_up == 0 or any(busy for _, busy in lengths)
    assert given_up >= 0
    if limit_ns is None:
        assert arrived.skipped == 0


def test_late_operations_are_queued_or_skipped_and_counted() -> None:
    totals = Machine([*gets(1, MS), (GET, 10_000 * MS)]).run(
        due_every(10 * MS), window=Window(0, 0, 100 * MS)
    )
    assert totals.arrived.queued == 9
    assert totals.arrived.largest_ns["queued"] == 90 * MS
    assert latency_counts(totals) == {"get": 1, "queued": 9}
    machine = Machine([(GET, 100 * MS), *gets(1000, MS)])
    totals = machine.run(due_every(10 * MS), limit_ns=21 * MS, window=Window(0, 0, 200 * MS))
    # At 100 ms, operations due at 10 to 70 ms are more than 21 ms late; that of 80 is just in time.
    assert totals.arrived.skipped == 7
    assert totals.arrived.due == 20
    assert machine.source.begun == 13


def test_lateness_of_the_harness_is_separate_from_the_queue() -> None:
    operations = [(GET, 35 * MS), *gets(1000, MS)]
    busy_machine = Machine(operations).run(due_every(10 * MS), window=Window(0, 0, 1000 * MS))
    assert busy_machine.arrived.latest_ns < MS / 10
    slow_harness = Machine(gets(1000, MS), prepare_ns=15 * MS).run(due_every(10 * MS))
    assert 4 * MS < slow_harness.arrived.latest_ns < 16 * MS


def test_abandoned_operations_have_no_latency_and_stamps_keep_both_times() -> None:
    operations = [(GET, MS, raising(Busy())), (GET, MS)] * 500
    totals = Machine(operations).run(due_every(10 * MS))
    assert totals.failed == 50
    assert latency_counts(totals) == {"get": 50}
    assert totals.arrived.due == 100
    machine = Machine(gets(3, MS))
    machine.run(due_every(10 * MS), window=Window(0, 0, 25 * MS))
    begins, ends = (list(row[:3]) for row in machine.source.stamps)
    assert [begin // MS for begin in begins] == [0, 10, 20]
    assert [end - begin for begin, end in zip(begins, ends, strict=True)] == [MS + 100] * 3


def test_idle_worker_checks_the_stop_flag() -> None:
    machine = Machine(gets(1000, MS))
    stop = [0]
    loop = OpenLoop(iter([10 * NS_PER_S, 1 << 62]), None, Window(0, 0, 20 * NS_PER_S), machine.pause)

    def clock() -> int:
        stop[0] = machine.clock.now >= NS_PER_S
        return machine.tick()

    timed_loop(machine.source, Window(0, 0, 20 * NS_PER_S), None, [0], stop, loop, clock)
    assert NS_PER_S <= machine.clock.now < NS_PER_S + 2 * IDLE_NS


@pytest.mark.parametrize("late_ns", [0, 80_000, 700_000, 50 * MS])
def test_waiting_learns_the_wake_up_delay_and_polls_briefly(late_ns: int) -> None:
    machine = Machine([], late_ns)
    waiting = DueSleeper(Window(0, 0, 1 << 62), machine.pause)
    for number in range(1, 101):
        waiting.until(number * 100 * MS, machine.tick)
    assert waiting.margin_ns <= MOST_NS
    before = waiting.polled_ns
    assert waiting.until(20_000 * MS, machine.tick) >= 20_000 * MS
    assert waiting.polled_ns - before <= max(50_000, late_ns) + 1000
    if 50_000 < late_ns < MS:
        assert machine.clock.now < 20_000 * MS + 1000


def arrivals(rate: int, spacing: str, processes: int) -> Case:
    return Case(concurrency=processes, arrivals=Arrivals(rate, spacing), seed=7)


def within(case: Case, worker: int, seconds: int) -> Sequence[int]:
    dues: list[int] = []
    for due in due_times(case, worker, 1, 1000):
        if due >= 1000 + seconds * NS_PER_S:
            return dues
        dues.append(due)
    raise AssertionError("they have no end")


@given(st.integers(1, 100_000), st.integers(1, 64))
def test_even_arrivals_of_all_workers_are_equally_spaced(rate: int, processes: int) -> None:
    case = arrivals(rate, "even", processes)
    dues = [islice(due_times(case, worker, 1, 1000), 3) for worker in range(1, processes + 1)]
    together = sorted(chain.from_iterable(dues))
    assert together[0] == 1000
    gaps = [after - before for before, after in pairwise(together)]
    assert all(abs(gap - NS_PER_S / rate) <= 2 for gap in gaps)


@pytest.mark.parametrize("spacing", ["poisson", "even"])
@pytest.mark.parametrize("processes", [1, 3])
def test_workers_together_have_the_requested_rate(spacing: str, processes: int) -> None:
    case = arrivals(3000, spacing, processes)
    number = sum(len(within(case, worker, 3)) for worker in range(1, processes + 1))
    # Four standard deviations of a Poisson process; the seed is fixed, so it holds always or never.
    assert abs(number - 9000) < (4 * 9000**0.5 if spacing == "poisson" else 4)


def test_poisson_arrivals_depend_on_seed_and_worker() -> None:
    case = arrivals(1000, "poisson", 2)
    assert within(case, 1, 1) == within(case, 1, 1)
    assert set(within(case, 1, 1)) != set(within(case, 2, 1))
    gaps = sorted(b - a for a, b in pairwise(within(case, 1, 1)))
    # About a tenth of exponential gaps is shorter than a tenth of the mean; no even gap is.
    assert gaps[len(gaps) // 10] < 0.2 * 2 * MS
