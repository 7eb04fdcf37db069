"""How an operation waits for a lock, and how often it had to.

SQLite's own busy handler sleeps up to 100 ms, while the process that has just committed takes the
lock again at once: the total looks fine and one process has it all. Short constant waits are fair
and collapse with many workers, because every poll costs the processor and the lock's own queue
something. So the mean wait here grows with the number of workers: all waiters together poll at a
constant rate, whatever their number. One that has just lost the lock waits longest, and polls the
more often the longer it has waited: the lock goes round nearly in turn, with fewer polls than it
takes when every waiter is as likely to get it as any other.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from sqlstress.targets.sqlite.drivers.codes import BUSY_SNAPSHOT, is_busy

POLL_INTERVAL_S = 400e-6
"""Mean wait of the second attempt for each worker there is; later ones are shorter."""
FIRST = 3.0
"""The first wait, as a multiple of that."""
PATIENCE = 8
"""After so many attempts a waiter would poll without a pause, were it not for SHARE_LEFT."""
SHARE_LEFT = 0.15
"""The waits shrink no further than to this share."""
SHORTEST_S = 50e-6
"""No sleep is asked for below the resolution of the systems' timers."""


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
        self._mean_s = POLL_INTERVAL_S * workers
        self._timeout_s = timeout_s
        self._random = random.Random(seed).random
        self._sleep = sleep
        self._clock = clock
        self._begun = 0.0

    def interval(self, attempt: int) -> float:
        """Return the seconds to sleep before the next attempt; the first attempt is number 0."""
        jitter = 0.5 + self._random()
        patience = max(SHARE_LEFT, 1.0 - attempt / PATIENCE) if attempt else FIRST
        return max(SHORTEST_S, self._mean_s * jitter * patience)

    def again(self, attempt: int, begun: float) -> bool:
        """Sleep and return True, or return False when the operation has waited out its time-out."""
        if self._clock() - begun >= self._timeout_s:
            return False
        self._sleep(self.interval(attempt))
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
        """Count an answer of SQLite that was an error."""
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
