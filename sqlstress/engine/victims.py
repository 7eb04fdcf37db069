"""Writers that are killed at a moment of our choosing: what the parent does to them, and what it sees."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from multiprocessing.process import BaseProcess

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.ordered import Ledger, shared_words
from sqlstress.engine.pool import TICK_S, Ended, Pool
from sqlstress.errors import EnvironmentFailure
from sqlstress.report.case import Case
from sqlstress.system.child import Pipe
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import SPAWNING, Starter, wait_some
from sqlstress.targets.place import Place

LOOK_S = 0.001
END_S = 30.0


class Victims(Pool):
    """The writers of one round, who have the numbers from 1 on."""

    def __init__(self, case: Case, place: Place, before: int, starter: Starter = SPAWNING) -> None:
        """`before` is the number of writers that the database has had."""
        words = shared_words(case.concurrency)
        super().__init__(case, place, before, (words,), starter=starter)
        self.before = before
        self.ledgers = {number: Ledger(words, number) for number in range(1, case.concurrency + 1)}
        self.alive = set(self.ledgers)

    def begin(self) -> None:
        """Let everybody open the files and write."""
        now = time.perf_counter_ns()
        self.go(Window(now, now, FOREVER_NS))

    def acknowledged(self) -> int:
        """Return how many transactions the living were told are done."""
        return sum(self.ledgers[number].acknowledged() for number in self.alive)

    def await_more(self, than: int, timeout_s: float, pulse: Pulse) -> bool:
        """Wait until the living have been told of more transactions; return whether they were."""
        return self._until(lambda: self.acknowledged() > than, timeout_s, LOOK_S, pulse)

    def let_write(self, seconds: float, pulse: Pulse) -> None:
        """Wait; less when a writer ends by itself."""
        self._until(lambda: False, seconds, min(seconds, TICK_S), pulse)

    def _until(self, condition: Callable[[], bool], timeout_s: float, look_s: float, pulse: Pulse) -> bool:
        end = time.monotonic() + timeout_s
        while not condition():
            left = end - time.monotonic()
            if left <= 0 or wait_some(self._living_pipes(), min(left, look_s)):
                return condition()
            pulse()
        return True

    def kill(self, numbers: Collection[int]) -> None:
        """Kill writers, one right after the other, and wait until they are gone."""
        struck = [self._processes[number - 1] for number in numbers]
        for process in struck:
            process.kill()
        self.alive.difference_update(numbers)
        for process in struck:
            _await_end(process)

    def fallen(self) -> Ended | None:
        """Return a writer who has ended by itself; None when there is none."""
        told = map(self._receive, wait_some(self._living_pipes(), 0.0))
        return next((message for message in told if isinstance(message, Ended)), None)

    def _living_pipes(self) -> list[Pipe]:
        return [pipe for pipe, number in self._pipes.items() if number in self.alive]


def _await_end(process: BaseProcess) -> None:
    process.join(END_S)
    if process.exitcode is None:
        raise EnvironmentFailure(
            f"process {process.pid} was killed and has not ended. Is its disk answering?"
        )
