"""How evenly a lock goes round among those who wait as `Waiting` and `Turns` say, on a clock of ours."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from threading import Semaphore, Thread
from typing import Any

import pytest

from sqlstress.statistics.series import jain
from sqlstress.targets.sqlite.busy import Turns, Waiting
from tests.rows import thorough

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
