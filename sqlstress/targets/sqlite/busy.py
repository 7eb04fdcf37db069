"""How an operation waits for a lock where waits are to be fair, and how often one had to.

SQLite's own busy handler sleeps up to 100 ms, while the process that has just committed takes the
lock again at once: the total looks fine and one process has it all. Short constant waits are fair
and collapse with many workers, because every poll costs the processor and the lock's own queue
something. So the mean wait here grows with the number of workers: all waiters together poll at a
constant rate, whatever their number. One that has just lost the lock waits longest, and polls the
more often the longer it has waited: the lock goes round nearly in turn, with fewer polls than it
takes when every waiter is as likely to get it as any other.

A waiter can only get the lock while it is free, and between two commits of one process that is too short
to be met. So who has written for as long as a turn pauses, once, for as long as it takes until somebody
polls. Whether anybody waits it can't know: so each pause after which the lock is had at once makes the
next turn twice as long, until the lock is refused again.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlstress.targets.sqlite.drivers.codes import BUSY_SNAPSHOT, is_busy

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.views import Operation


ROUND_S = 56e-3
"""So long one turn of each worker takes together, as far as the next two allow."""
LONGEST_TURN_S = 7e-3
"""With few workers it is no longer. Shorter ones cost more: at each turn's end the lock is idle for a
while, and whoever takes it has a cold cache."""
SHORTEST_TURN_S = 4e-3
"""With many workers a turn is no shorter."""
SHARE_OF_TURN = 0.1
"""Mean wait of the second attempt, in turns of all workers; later ones are shorter."""
FIRST = 2.0
"""The first wait, as a multiple of that."""
PATIENCE = 8
"""After so many attempts a waiter would poll without a pause, were it not for LEAST_S."""
LEAST_S = 60e-6
"""The mean waits shrink no further than to so much for each worker."""
SHORTEST_S = 50e-6
"""No sleep is asked for below the resolution of the systems' timers."""
PAUSE_S = 500e-6
"""Of those who have waited longest, one polls in this time."""


def turn_s(workers: int) -> float:
    """Return how long one of so many workers writes to a file before it lets the others."""
    return min(LONGEST_TURN_S, max(SHORTEST_TURN_S, ROUND_S / workers))


class Waiting:
    """The waits of one worker: its policy's numbers, and the counts of what it met."""

    def __init__(
        self,
        workers: int,
        timeout_s: float,
        seed: str,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.busy = 0
        self.busy_snapshot = 0
        self.turn_s = turn_s(workers)
        """So long the worker writes to a file before it pauses."""
        self.mean_s = SHARE_OF_TURN * self.turn_s * workers
        self.least_s = LEAST_S * workers
        self._timeout_s = timeout_s
        self._random = random.Random(seed).random
        self._sleep = sleep
        self._clock = clock
        self._begun = 0.0
        self.woke_s = -math.inf
        """When the last wait between two attempts was over."""

    def interval(self, attempt: int) -> float:
        """Return the seconds to sleep before the next attempt; the first attempt is number 0."""
        jitter = 0.5 + self._random()
        patience = 1.0 - attempt / PATIENCE if attempt else FIRST
        return max(SHORTEST_S, max(self.least_s, self.mean_s * patience) * jitter)

    def again(self, attempt: int, begun: float) -> bool:
        """Sleep and return True, or return False when the operation has waited out its time-out."""
        if self._clock() - begun >= self._timeout_s:
            return False
        self._sleep(self.interval(attempt))
        self.woke_s = self._clock()
        return True

    def busy_handler(self, attempt: int) -> bool:
        """SQLite's busy handler: called with the number of times it was called for this lock before."""
        if attempt == 0:
            self._begun = self._clock()
        if not self.again(attempt, self._begun):
            return False  # SQLite answers BUSY, and that answer is counted where it arrives
        self.busy += 1
        return True

    def count(self, code: int | None) -> None:
        if code == BUSY_SNAPSHOT:
            self.busy_snapshot += 1
        elif is_busy(code):
            self.busy += 1

    def retried(
        self,
        call: Callable[[Any], Any],
        result_code: Callable[[BaseException], int | None],
        recover: Callable[[], None],
    ) -> Callable[[Any], Any]:
        """Wrap an operation so that it is begun again, as a whole, while SQLite answers BUSY.

        `recover` ends whatever transaction a failed attempt has left open.
        """

        def attempt_until_done(params: Any) -> Any:
            begun, attempt = self._clock(), 0
            while True:
                try:
                    return call(params)
                except Exception as error:
                    code = result_code(error)
                    recover()
                    if not is_busy(code) or not self.again(attempt, begun):
                        raise
                    self.count(code)
                    attempt += 1

        return attempt_until_done


class Turns:
    """One worker's rows of writes to one file, each of which ends before others have waited for long."""

    def __init__(
        self,
        waiting: Waiting,
        paused: Callable[[float, float], None],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`paused` is told from when until when nothing was tried."""
        self._waiting, self._paused = waiting, paused
        self._sleep, self._clock = sleep, clock
        self._begun = self._wrote = -math.inf
        self._length_s = waiting.turn_s

    def kept(self, write: Operation) -> Operation:
        """Wrap a write so that it waits for its turn first."""

        def write_in_turn(params: Any) -> Any:
            begun = self._await()
            result = write(params)
            self._wrote = self._clock()
            if self._waiting.woke_s > begun:
                self._begun, self._length_s = self._waiting.woke_s, self._waiting.turn_s
            return result

        return write_in_turn

    def _await(self) -> float:
        """Pause if the turn is over; return when the write begins."""
        now = self._clock()
        if now - self._wrote >= PAUSE_S:
            self._begun = now
        if now - self._begun < self._length_s:
            return now
        self._sleep(PAUSE_S)
        woke = self._clock()
        self._paused(now, woke)
        self._begun, self._length_s = woke, 2 * self._length_s
        return woke


def waiting_of(case: Case, worker: int) -> Waiting:
    """Return the waits of one worker; its number seeds their jitter."""
    return Waiting(case.concurrency, case.settings.busy_timeout_ms / 1000, f"{case.seed}:waiting:{worker}")
