"""Waits of a worker before it retries what SQLite refused, and the count of BUSY answers."""

from statistics import fmean
from typing import Any

import pytest

from sqlstress.sqlite_codes import BUSY, BUSY_SNAPSHOT, CORRUPT, IOERR, PROTOCOL
from sqlstress.targets.sqlite.busy import FIRST_FACTOR, MAX_ATTEMPTS, SHORTEST_S, BusyRetries
from tests.targets.drivers.conftest import FakeTime

MANY = 512
"""A number of workers at which every wait is longer than SHORTEST_S."""
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
    """Fails with each of these codes in turn, then succeeds; records its calls."""

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


def retried(waiting: BusyRetries, statement: Statement) -> Any:
    return waiting.retried(statement.run, code_of, statement.recover)


def intervals(workers: int, attempt: int = 0, seed: str = "", count: int = 400) -> list[float]:
    waiting = FakeTime().waiting(workers, seed=seed)
    return [waiting.interval(attempt) for _ in range(count)]


def test_wait_grows_linearly_with_the_number_of_workers() -> None:
    assert intervals(2 * MANY) == pytest.approx([2 * wait for wait in intervals(MANY)])


def test_mean_wait_is_bounded_per_worker() -> None:
    means = [FakeTime().waiting(workers).mean_s for workers in (1, 8, 10, 14, MANY)]
    assert means == pytest.approx([0.7e-3, 5.6e-3, 5.6e-3, 5.6e-3, MANY * 0.4e-3])


def test_waits_get_shorter_after_the_first() -> None:
    mean = FakeTime().waiting(MANY).mean_s
    means = [fmean(intervals(MANY, attempt)) for attempt in (0, 1, 4, LONG_WAITED)]
    assert means[:2] == pytest.approx([FIRST_FACTOR * mean, mean * (1 - 1 / MAX_ATTEMPTS)], rel=0.05)
    assert means == sorted(means, reverse=True)
    assert means[-1] < 0.5 * means[0]


def test_jitter_stays_within_half_of_the_mean_and_differs_by_worker() -> None:
    mean = FIRST_FACTOR * FakeTime().waiting(MANY).mean_s
    waits = intervals(MANY)
    assert 0.5 * mean <= min(waits) < 0.55 * mean
    assert 1.45 * mean < max(waits) <= 1.5 * mean
    assert intervals(MANY, seed="1:waiting:1") != intervals(MANY, seed="1:waiting:2")
    assert intervals(MANY, seed="1:waiting:1") == intervals(MANY, seed="1:waiting:1")


def test_waits_stop_shrinking_and_are_never_below_the_shortest() -> None:
    assert intervals(MANY, LONG_WAITED) == intervals(MANY, LONG_WAITED + 1)
    assert min(intervals(MANY, LONG_WAITED)) > SHORTEST_S
    assert min(*intervals(1, 0), *intervals(1, 1)) >= SHORTEST_S
    assert min(intervals(1, LONG_WAITED)) == SHORTEST_S


@pytest.mark.parametrize(("waited_s", "goes_on"), [(0.999, True), (1.0, False), (1.001, False)])
def test_again_sleeps_the_interval_until_the_time_out(waited_s: float, goes_on: bool) -> None:
    time = FakeTime()
    waiting = time.waiting(MANY, timeout_s=1.0)
    time.now = 100.0 + waited_s
    assert waiting.sleep_before_retry(3, begun=100.0) is goes_on
    assert time.slept == ([FakeTime().waiting(MANY).interval(3)] if goes_on else [])


@pytest.mark.parametrize(
    ("codes", "counts"),
    [
        ((), (0, 0)),
        ((BUSY, BUSY), (2, 0)),
        ((BUSY_RECOVERY, BUSY_RECOVERY), (2, 0)),
        ((BUSY, BUSY_SNAPSHOT, BUSY_SNAPSHOT, BUSY_SNAPSHOT), (1, 3)),
    ],
)
def test_busy_operation_is_recovered_counted_and_retried(
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


def test_busy_operation_times_out_from_its_own_begin() -> None:
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
def test_errors_other_than_busy_are_never_retried(code: int | None) -> None:
    time, statement = FakeTime(), Statement(code)
    waiting = time.waiting()
    with pytest.raises(Refused):
        retried(waiting, statement)(())
    assert statement.calls == ["run", "recover"]
    assert (time.slept, waiting.busy, waiting.busy_snapshot) == ([], 0, 0)
