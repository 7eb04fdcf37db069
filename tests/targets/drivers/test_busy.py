"""How a worker waits for a lock, how long it writes in a row, and how evenly the lock goes round."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from statistics import fmean
from threading import Semaphore, Thread
from typing import Any

import pytest

from sqlstress.statistics.series import jain
from sqlstress.targets.sqlite.busy import FIRST, PATIENCE, PAUSE_S, SHORTEST_S, Turns, Waiting, turn_s
from sqlstress.targets.sqlite.drivers.codes import BUSY, BUSY_SNAPSHOT, CORRUPT, IOERR, PROTOCOL
from tests.rows import thorough
from tests.targets.drivers.conftest import FakeTime

MANY = 512
"""So many workers that no wait is as short as SHORTEST_S."""
LONG_WAITED = 10_000
BUSY_RECOVERY = 261


class Refused(Exception):
    """An answer of SQLite that was an error."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


def code_of(error: BaseException) -> int | None:
    return error.code if isinstance(error, Refused) else None


class Statement:
    """Refuses with each of these codes in turn, then works; keeps the book of what was called."""

    def __init__(self, *codes: int | None) -> None:
        self._codes = list(codes)
        self.calls: list[str] = []

    def run(self, params: Any) -> str:
        self.calls.append("run")
        if self._codes:
            raise Refused(self._codes.pop(0))
        return f"done with {params}"

    def recover(self) -> None:
        self.calls.append("recover")


def retried(waiting: Waiting, statement: Statement) -> Any:
    return waiting.retried(statement.run, code_of, statement.recover)


def intervals(workers: int, attempt: int = 0, seed: str = "", count: int = 400) -> list[float]:
    waiting = FakeTime().waiting(workers, seed=seed)
    return [waiting.interval(attempt) for _ in range(count)]


def test_the_wait_grows_linearly_with_the_number_of_workers() -> None:
    assert intervals(2 * MANY) == pytest.approx([2 * wait for wait in intervals(MANY)])


def test_a_turn_is_the_shorter_the_more_workers_there_are_between_two_bounds() -> None:
    turns = [turn_s(workers) for workers in (1, 8, 10, 14, MANY)]
    assert turns == pytest.approx([7e-3, 7e-3, 5.6e-3, 4e-3, 4e-3])


def test_the_first_wait_is_the_longest_and_who_has_waited_long_waits_shorter() -> None:
    mean = FakeTime().waiting(MANY).mean_s
    means = [fmean(intervals(MANY, attempt)) for attempt in (0, 1, 4, LONG_WAITED)]
    assert means[:2] == pytest.approx([FIRST * mean, mean * (1 - 1 / PATIENCE)], rel=0.05)
    assert means == sorted(means, reverse=True)
    assert means[-1] < 0.5 * means[0]


def test_jitter_keeps_a_wait_within_half_of_its_mean_and_two_workers_out_of_step() -> None:
    mean = FIRST * FakeTime().waiting(MANY).mean_s
    waits = intervals(MANY)
    assert 0.5 * mean <= min(waits) < 0.55 * mean
    assert 1.45 * mean < max(waits) <= 1.5 * mean
    assert intervals(MANY, seed="1:waiting:1") != intervals(MANY, seed="1:waiting:2")
    assert intervals(MANY, seed="1:waiting:1") == intervals(MANY, seed="1:waiting:1")


def test_patience_has_an_end_above_nothing_and_no_wait_is_shorter_than_the_shortest() -> None:
    assert intervals(MANY, LONG_WAITED) == intervals(MANY, LONG_WAITED + 1)
    assert min(intervals(MANY, LONG_WAITED)) > SHORTEST_S
    assert min(*intervals(1, 0), *intervals(1, 1)) >= SHORTEST_S
    assert min(intervals(1, LONG_WAITED)) == SHORTEST_S


@pytest.mark.parametrize(("waited_s", "goes_on"), [(0.999, True), (1.0, False), (1.001, False)])
def test_again_sleeps_the_interval_and_gives_up_at_the_time_out(waited_s: float, goes_on: bool) -> None:
    time = FakeTime()
    waiting = time.waiting(MANY, timeout_s=1.0)
    time.now = 100.0 + waited_s
    assert waiting.again(3, begun=100.0) is goes_on
    assert time.slept == ([FakeTime().waiting(MANY).interval(3)] if goes_on else [])


def test_the_busy_handler_measures_each_lock_from_its_first_call() -> None:
    time = FakeTime()
    waiting = time.waiting(timeout_s=1.0)
    assert waiting.busy_handler(0)
    time.now = 50.0
    assert not waiting.busy_handler(1)
    assert waiting.busy_handler(0)
    assert waiting.busy == 2, "the one that gave up is counted where its answer arrives"


@pytest.mark.parametrize(
    ("codes", "counts"),
    [
        ((), (0, 0)),
        ((BUSY, BUSY), (2, 0)),
        ((BUSY_RECOVERY, BUSY_RECOVERY), (2, 0)),
        ((BUSY, BUSY_SNAPSHOT, BUSY_SNAPSHOT, BUSY_SNAPSHOT), (1, 3)),
    ],
)
def test_a_busy_operation_is_recovered_counted_and_begun_again(
    codes: tuple[int, ...], counts: tuple[int, int]
) -> None:
    time, statement = FakeTime(), Statement(*codes)
    waiting = time.waiting(MANY)
    assert retried(waiting, statement)(7) == "done with 7"
    assert statement.calls == [*["run", "recover"] * len(codes), "run"]
    waiting.count(None)
    waiting.count(PROTOCOL)
    assert (waiting.busy, waiting.busy_snapshot) == counts
    same = FakeTime().waiting(MANY)
    assert time.slept == [same.interval(attempt) for attempt in range(len(codes))]


def test_a_busy_operation_is_given_up_at_the_time_out_from_its_own_begin() -> None:
    time, statement = FakeTime(), Statement(BUSY)
    operation = retried(time.waiting(timeout_s=0.25), statement)
    time.now = 500.0
    assert operation(1) == "done with 1"
    time, statement = FakeTime(), Statement(*[BUSY] * 100_000)
    with pytest.raises(Refused):
        retried(time.waiting(timeout_s=0.25), statement)(())
    assert 0.25 <= time.now < 0.26
    assert statement.calls[-2:] == ["run", "recover"]


@pytest.mark.parametrize("code", [PROTOCOL, IOERR, CORRUPT, None])
def test_what_a_lock_does_not_explain_is_never_tried_again(code: int | None) -> None:
    time, statement = FakeTime(), Statement(code)
    waiting = time.waiting()
    with pytest.raises(Refused):
        retried(waiting, statement)(())
    assert statement.calls == ["run", "recover"]
    assert (time.slept, waiting.busy, waiting.busy_snapshot) == ([], 0, 0)


# Rows of writes: how long one worker writes before it lets others, and when it does not.


WRITE_S = 1e-4
ROW = round(FakeTime().waiting().turn_s / WRITE_S)
"""Writes of a turn."""


class Writer:
    """Writes one thing after the other, each in WRITE_S, or longer where it is refused the lock."""

    def __init__(self) -> None:
        self.time = FakeTime()
        self.waiting: Waiting = self.time.waiting()
        self.told: list[tuple[float, float]] = []
        turns = Turns(self.waiting, lambda *times: self.told.append(times), self.time.sleep, self.time.clock)
        self.refused = False
        self._write: Callable[[Any], Any] = turns.kept(self._written)

    def _written(self, params: Any) -> Any:
        if self.refused:
            assert self.waiting.busy_handler(0)
        self.time.now += WRITE_S
        return params

    def write(self, times: int = 1) -> None:
        for number in range(times):
            assert self._write(number) == number

    def writes_until_it_pauses(self) -> int:
        pauses, count = len(self.told), 0
        while len(self.told) == pauses:
            self.write()
            count += 1
            assert count < 100 * ROW
        return count - 1  # the last one came after the pause


@pytest.fixture
def writer() -> Writer:
    return Writer()


def test_who_has_written_for_a_turn_pauses_once(writer: Writer) -> None:
    assert writer.writes_until_it_pauses() == pytest.approx(ROW, abs=1)
    assert writer.time.slept == [PAUSE_S]
    writer.write(ROW // 2)
    assert writer.time.slept == [PAUSE_S]


def test_a_pause_is_told_from_its_begin_to_its_end(writer: Writer) -> None:
    writer.writes_until_it_pauses()
    ((begin, end),) = writer.told
    assert end - begin == pytest.approx(PAUSE_S)
    assert end == pytest.approx(writer.time.now - WRITE_S)


def test_each_pause_in_which_nobody_came_makes_the_next_turn_twice_as_long(writer: Writer) -> None:
    rows = [writer.writes_until_it_pauses() for _ in range(4)]
    assert rows == pytest.approx([ROW, 2 * ROW, 4 * ROW, 8 * ROW], abs=2)


def test_who_was_refused_the_lock_has_a_turn_of_the_first_length_from_then_on(writer: Writer) -> None:
    for _ in range(3):
        writer.writes_until_it_pauses()
    writer.refused = True
    writer.write()
    writer.refused = False
    assert writer.writes_until_it_pauses() == pytest.approx(ROW, abs=1)


@pytest.mark.parametrize(("gap_s", "pauses"), [(PAUSE_S * 0.9, True), (PAUSE_S * 1.1, False)])
def test_who_leaves_the_lock_alone_for_as_long_as_a_pause_needs_none(
    writer: Writer, gap_s: float, pauses: bool
) -> None:
    for _ in range(2 * ROW):
        writer.write()
        writer.time.now += gap_s
    assert bool(writer.told) is pauses


def test_what_a_write_raises_is_raised(writer: Writer) -> None:
    turns = Turns(writer.waiting, lambda *_: None, writer.time.sleep, writer.time.clock)
    with pytest.raises(ZeroDivisionError):
        turns.kept(lambda params: 1 / params)(0)


# How evenly the lock goes round, on a clock of ours.


GAP_S = 3e-6
"""Between two writes of the loop in C."""


class VirtualTime:
    """Runs tasks in a thread each, one at a time: who has slept out first."""

    def __init__(self) -> None:
        self.now = 0.0
        self._asleep: list[tuple[float, int, Semaphore]] = []
        self._order = count()
        self._all_ended = Semaphore(0)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        woken = self._woken_at(self.now + seconds)
        self._wake_next()
        woken.acquire()

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run tasks until all of them have ended."""
        threads = [Thread(target=self._run, args=(task, self._woken_at(0.0))) for task in tasks]
        for thread in threads:
            thread.start()
        self._wake_next()
        self._all_ended.acquire()
        for thread in threads:
            thread.join()

    def _run(self, task: Callable[[], None], begun: Semaphore) -> None:
        begun.acquire()
        try:
            task()
        finally:
            self._wake_next()

    def _woken_at(self, then: float) -> Semaphore:
        woken = Semaphore(0)
        heapq.heappush(self._asleep, (then, next(self._order), woken))
        return woken

    def _wake_next(self) -> None:
        if not self._asleep:
            self._all_ended.release()
            return
        self.now, _, woken = heapq.heappop(self._asleep)
        woken.release()


class Writers:
    """Workers that write all the time, each write as long as a commit takes, and hold the lock meanwhile."""

    def __init__(self, workers: int, commit_s: float, run_s: float) -> None:
        self.time = VirtualTime()
        self.commit_s, self.run_s = commit_s, run_s
        self.done = [0] * workers
        self.held = False

    def shares(self, takes_turns: bool) -> list[int]:
        """Return how often each of them wrote."""
        self.time.run([lambda one=one: self._work(one, takes_turns) for one in range(len(self.done))])  # type: ignore[misc]
        return self.done

    def _work(self, one: int, takes_turns: bool) -> None:
        sleep, clock = self.time.sleep, self.time.clock
        waiting = Waiting(len(self.done), 60.0, f"1:waiting:{one}", sleep, clock)

        def write(_params: Any) -> None:
            attempt = 0
            while self.held:
                assert waiting.busy_handler(attempt)
                attempt += 1
            self.held = True
            sleep(self.commit_s)
            self.held = False
            self.done[one] += 1

        put = Turns(waiting, lambda *_: None, sleep, clock).kept(write) if takes_turns else write
        while clock() < self.run_s:
            put(None)
            sleep(GAP_S)


@pytest.mark.parametrize(
    ("workers", "commit_s"), [(8, 4e-3), thorough(2, 4e-3), thorough(8, 2.5e-4), thorough(2, 2.5e-4)]
)
def test_all_get_the_same_however_short_the_lock_is_free(workers: int, commit_s: float) -> None:
    fair = Writers(workers, commit_s, run_s=2.0).shares(takes_turns=True)
    assert (jain(fair) or 0) > 0.98


def test_by_waiting_alone_they_do_not_where_commits_are_slow_and_turns_cost_less_than_a_twentieth() -> None:
    alone, turns = (Writers(8, 4e-3, 1.2).shares(takes_turns) for takes_turns in (False, True))
    assert (jain(alone) or 1) < 0.9 < (jain(turns) or 0)
    assert sum(turns) > 0.95 * sum(alone)
