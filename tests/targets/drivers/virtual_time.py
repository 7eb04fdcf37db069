"""Time that several tasks share, and that passes only while all of them sleep: the same way each time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from threading import Semaphore, Thread


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
