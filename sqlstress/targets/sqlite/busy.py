"""Retries of operations that SQLite refuses, and the count of its BUSY answers.

SQLite's busy handler waits for locks. It does not wait where waiting cannot help: a transaction that has read
and then wants to write gets BUSY or BUSY_SNAPSHOT at once, and has to be retried from its start.

The mean wait before a retry grows with the number of workers, so that together they retry at about the
same rate, whatever their number. A worker that has just been refused waits longest, and retries more often
the longer it has waited.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlstress.sqlite_codes import BUSY_SNAPSHOT, is_busy

if TYPE_CHECKING:
    from sqlstress.report.case import Case


MEAN_S = 5.6e-3
"""Mean wait, from which the waits of all attempts follow, within the next two bounds."""
LARGEST_MEAN_S = 0.7e-3
"""Largest mean wait per worker."""
SMALLEST_MEAN_S = 0.4e-3
"""Smallest mean wait per worker."""
FIRST_FACTOR = 2.0
"""Mean of the first wait, in mean waits."""
MAX_ATTEMPTS = 8
"""Number of attempts over which the mean wait would shrink to 0, if MIN_MEAN_S did not limit it."""
MIN_MEAN_S = 60e-6
"""Smallest mean of the last waits, per worker."""
SHORTEST_S = 50e-6
"""Shortest sleep: the resolution of the systems' timers."""


class BusyRetries:
    """The waits of one worker, and the number of BUSY answers that it got."""

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
        self.mean_s = min(LARGEST_MEAN_S * workers, max(SMALLEST_MEAN_S * workers, MEAN_S))
        self.least_s = MIN_MEAN_S * workers
        self._timeout_s = timeout_s
        self._random = random.Random(seed).random
        self._sleep = sleep
        self._clock = clock

    def interval(self, attempt: int) -> float:
        """Return the seconds to sleep before the next attempt; the first attempt is number 0."""
        jitter = 0.5 + self._random()
        patience = 1.0 - attempt / MAX_ATTEMPTS if attempt else FIRST_FACTOR
        return max(SHORTEST_S, max(self.least_s, self.mean_s * patience) * jitter)

    def again(self, attempt: int, begun: float) -> bool:
        """Sleep and return True, or return False if the timeout has passed since `begun`."""
        if self._clock() - begun >= self._timeout_s:
            return False
        self._sleep(self.interval(attempt))
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
        """Wrap an operation so that it is retried as a whole while SQLite answers BUSY.

        `recover` ends the transaction that a failed attempt has left open.
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


def worker_waiting(case: Case, worker: int) -> BusyRetries:
    """Return the waits of one worker; its number seeds their jitter."""
    return BusyRetries(
        case.concurrency, case.settings.busy_timeout_ms / 1000, f"{case.seed}:waiting:{worker}"
    )
