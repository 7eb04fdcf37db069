"""How long a worker waits for a lock, when it gives up, and what it never tries again."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

from sqlstress.targets.sqlite.busy import FIRST, PATIENCE, SHORTEST_S, Waiting, turn_s
from sqlstress.targets.sqlite.drivers.codes import BUSY, BUSY_SNAPSHOT
from tests.targets.drivers.fake_time import FakeTime

MANY = 512
"""So many workers that no wait is as short as SHORTEST_S."""
LONG_WAITED = 10_000
PROTOCOL, IOERR, CORRUPT, BUSY_RECOVERY = 15, 10, 11, 261


class Refused(Exception):
    """An answer of SQLite that was an error."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def code_of(error: BaseException) -> int | None:
    return error.code if isinstance(error, Refused) else None


class Statement:
    """Refuses with each of these codes in turn, then works; keeps the book of what was called."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)
        self.calls: list[str] = []

    def run(self, params: Any) -> str:
        self.calls.append("run")
        if self._codes:
            raise Refused(self._codes.pop(0))
        return f"done with {params}"

    def recover(self) -> None:
        self.calls.append("recover")


def intervals(workers: int, attempt: int = 0, seed: str = "", count: int = 400) -> list[float]:
    waiting = FakeTime().waiting(workers, seed=seed)
    return [waiting.interval(attempt) for _ in range(count)]


def test_the_wait_grows_linearly_with_the_number_of_workers() -> None:
    twice = [2 * wait for wait in intervals(MANY)]
    assert intervals(2 * MANY) == pytest.approx(twice)


def test_a_turn_is_the_shorter_the_more_workers_there_are_between_two_bounds() -> None:
    turns = [turn_s(workers) for workers in (1, 8, 10, 14, MANY)]
    assert turns == pytest.approx([7e-3, 7e-3, 5.6e-3, 4e-3, 4e-3])


@pytest.mark.parametrize("workers", [MANY, 2 * MANY])
def test_the_first_wait_is_the_longest(workers: int) -> None:
    mean = FakeTime().waiting(workers).mean_s
    second = mean * (1 - 1 / PATIENCE)
    assert fmean(intervals(workers)) == pytest.approx(FIRST * mean, rel=0.05)
    assert fmean(intervals(workers, attempt=1)) == pytest.approx(second, rel=0.05)


def test_jitter_keeps_a_wait_within_half_of_its_mean() -> None:
    mean = FIRST * FakeTime().waiting(MANY).mean_s
    waits = intervals(MANY)
    assert 0.5 * mean <= min(waits) < 0.55 * mean
    assert 1.45 * mean < max(waits) <= 1.5 * mean


def test_two_workers_do_not_wait_in_step() -> None:
    assert intervals(MANY, seed="1:waiting:1") != intervals(MANY, seed="1:waiting:2")
    assert intervals(MANY, seed="1:waiting:1") == intervals(MANY, seed="1:waiting:1")


def test_who_has_waited_long_waits_shorter() -> None:
    means = [fmean(intervals(MANY, attempt)) for attempt in (0, 1, 4, LONG_WAITED)]
    assert means == sorted(means, reverse=True)
    assert means[-1] < 0.5 * means[0]


def test_patience_has_an_end_above_nothing() -> None:
    assert intervals(MANY, LONG_WAITED) == intervals(MANY, LONG_WAITED + 1)
    assert min(intervals(MANY, LONG_WAITED)) > SHORTEST_S


@pytest.mark.parametrize("attempt", [0, 1, LONG_WAITED])
def test_no_wait_is_shorter_than_the_shortest(attempt: int) -> None:
    assert min(intervals(1, attempt)) >= SHORTEST_S
    assert min(intervals(1, LONG_WAITED)) == SHORTEST_S


def test_again_sleeps_the_interval() -> None:
    time = FakeTime()
    assert time.waiting(MANY).again(3, begun=0.0)
    assert time.slept == [time.waiting(MANY).interval(3)]


@pytest.mark.parametrize(("waited_s", "goes_on"), [(0.999, True), (1.0, False), (1.001, False)])
def test_again_gives_up_at_the_time_out(waited_s: float, goes_on: bool) -> None:
    time = FakeTime()
    waiting = time.waiting(timeout_s=1.0)
    time.now = 100.0 + waited_s
    assert waiting.again(0, begun=100.0) is goes_on
    assert bool(time.slept) is goes_on


def test_the_busy_handler_measures_each_lock_from_its_first_call() -> None:
    time = FakeTime()
    waiting = time.waiting(timeout_s=1.0)
    assert waiting.busy_handler(0)
    time.now = 50.0
    assert not waiting.busy_handler(1)
    assert waiting.busy_handler(0)
    assert waiting.busy == 2, "the one that gave up is counted where its answer arrives"


def test_what_works_at_once_is_neither_waited_for_nor_recovered() -> None:
    time, statement = FakeTime(), Statement()
    waiting = time.waiting()
    assert retried(waiting, statement)(7) == "done with 7"
    assert statement.calls == ["run"]
    assert (time.slept, waiting.busy, waiting.busy_snapshot) == ([], 0, 0)


def retried(waiting: Waiting, statement: Statement) -> Any:
    return waiting.retried(statement.run, code_of, statement.recover)


@pytest.mark.parametrize(
    ("code", "counts"),
    [(BUSY, (2, 0)), (BUSY_RECOVERY, (2, 0)), (BUSY_SNAPSHOT, (0, 2))],
)
def test_a_busy_operation_is_recovered_and_begun_again(code: int, counts: tuple[int, int]) -> None:
    time, statement = FakeTime(), Statement(code, code)
    waiting = time.waiting(MANY)
    assert retried(waiting, statement)(7) == "done with 7"
    assert statement.calls == ["run", "recover", "run", "recover", "run"]
    assert (waiting.busy, waiting.busy_snapshot) == counts
    same = FakeTime().waiting(MANY)
    assert time.slept == [same.interval(0), same.interval(1)]


def test_busy_and_busy_snapshot_are_counted_apart() -> None:
    waiting = FakeTime().waiting()
    retried(waiting, Statement(BUSY, BUSY_SNAPSHOT, BUSY_SNAPSHOT, BUSY_SNAPSHOT))(())
    assert (waiting.busy, waiting.busy_snapshot) == (1, 3)
    waiting.count(None)
    waiting.count(PROTOCOL)
    assert (waiting.busy, waiting.busy_snapshot) == (1, 3)


def test_a_busy_operation_is_given_up_at_the_time_out() -> None:
    time, statement = FakeTime(), Statement(*[BUSY] * 100_000)
    with pytest.raises(Refused):
        retried(time.waiting(timeout_s=0.25), statement)(())
    assert 0.25 <= time.now < 0.26
    assert statement.calls[-2:] == ["run", "recover"]


def test_the_time_out_counts_from_each_operations_own_begin() -> None:
    time = FakeTime()
    statement = Statement(BUSY)
    operation = retried(time.waiting(timeout_s=1.0), statement)
    time.now = 500.0
    assert operation(1) == "done with 1"


@pytest.mark.parametrize("code", [PROTOCOL, IOERR, CORRUPT])
def test_what_a_lock_does_not_explain_is_never_tried_again(code: int) -> None:
    time, statement = FakeTime(), Statement(code)
    waiting = time.waiting()
    with pytest.raises(Refused):
        retried(waiting, statement)(())
    assert statement.calls == ["run", "recover"]
    assert (time.slept, waiting.busy, waiting.busy_snapshot) == ([], 0, 0)


def test_an_error_that_is_not_sqlites_is_never_tried_again() -> None:
    calls = []

    def broken(_params: object) -> None:
        calls.append("run")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        FakeTime().waiting().retried(broken, code_of, lambda: calls.append("recover"))(())
    assert calls == ["run", "recover"]
