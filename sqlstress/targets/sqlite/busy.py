"""Retries of transactions that SQLite refuses with BUSY, and counts of BUSY errors.
A worker is a process of the tester. A transaction that has read and then writes may get BUSY or BUSY_SNAPSHOT
at once, without a wait in SQLite's busy handler, and must be retried from its start.

Before each retry a worker sleeps for a random time. The mean time grows with the number of workers, so that
the rate of all retries together changes little. Each failed attempt of a transaction reduces the mean time.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sqlstress.sqlite_codes import BUSY_SNAPSHOT, is_busy

if TYPE_CHECKING:
    from sqlstress.report.case import Case


MEAN_S = 5.6e-3
"""Mean sleep before a retry, in seconds, with 8 to 14 workers (for other numbers see the next constants)."""
LARGEST_MEAN_S = 0.7e-3
"""Mean sleep per worker, in seconds, with fewer than 8 workers. With 4 workers the mean is 4 * 0.7 ms."""
SMALLEST_MEAN_S = 0.4e-3
"""Mean sleep per worker, in seconds, with more than 14 workers. With 20 the mean is 20 * 0.4 ms."""
FIRST_FACTOR = 2.0
"""Factor by which the mean sleep is multiplied after a transaction's first failed attempt.

With 8 to 14 workers the mean sleep is then 2 * 5.6 ms. After later attempts the factor is below 1 (see
MAX_ATTEMPTS).
"""
MAX_ATTEMPTS = 8
"""Number of failed retries of a transaction after which the mean sleep has its minimum.

After the failed retry number n, the mean sleep is multiplied by 1 - n / 8, such as by 6/8 after 2 retries.
"""
MIN_MEAN_S = 60e-6
"""Minimum of the mean sleep per worker, in seconds. With 20 workers the mean is never below 20 * 60 µs."""
SHORTEST_S = 50e-6
"""Minimum of each random sleep, in seconds. Timers of operating systems cannot measure shorter sleeps."""
MAX_WAITS = 100
"""Number of latest failures of each kind whose times are kept, for the median in the report.

A kind is a statement with a result code, such as COMMIT with BUSY.
"""


class Refusals:
    """Counter of one worker's failed statements, for the report (see `views.Refusal`)."""

    def __init__(self) -> None:
        # (statement, whether in a transaction, result code): ([count, longest wait in s], latest waits)
        self.kinds: dict[tuple[str, bool, int], tuple[list[float], deque[float]]] = {}

    def add(self, sql: str, in_transaction: bool, code: int, waited_s: float) -> None:
        """Count a failure of `sql` with the result `code`, `waited_s` seconds after the transaction began."""
        kind = sql, in_transaction, code
        totals, waits = self.kinds.setdefault(kind, ([0, 0.0], deque(maxlen=MAX_WAITS)))
        totals[:] = totals[0] + 1, max(totals[1], waited_s)
        waits.append(waited_s)

    def __iter__(self) -> Iterator[tuple[tuple[str, bool], tuple[int, int, list[float], float]]]:
        """Yield ((statement, is in transaction), (result code, count, latest waits in s, longest in s))."""
        for (sql, in_transaction, code), ((count, longest_s), waits) in self.kinds.items():
            yield (sql, in_transaction), (code, int(count), list(waits), longest_s)


class BusyRetries:
    """Rules for one worker's retries of transactions, and counts of its BUSY and BUSY_SNAPSHOT errors."""

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
        self.refusals = Refusals()
        self.refused: tuple[str, bool] | None = None
        """Last failure, such as ("COMMIT", True): the statement, and whether a transaction was open.

        An operation sets this attribute before the transaction is rolled back. None means unknown.
        """
        self.mean_s = min(LARGEST_MEAN_S * workers, max(SMALLEST_MEAN_S * workers, MEAN_S))
        self.least_s = MIN_MEAN_S * workers
        self._timeout_s = timeout_s
        self._random = random.Random(seed).random
        self._sleep = sleep
        self._clock = clock

    def interval(self, attempt: int) -> float:
        """Return a random time to sleep after the failed attempt number `attempt` (from 0), in seconds."""
        jitter = 0.5 + self._random()
        patience = 1.0 - attempt / MAX_ATTEMPTS if attempt else FIRST_FACTOR
        return max(SHORTEST_S, max(self.least_s, self.mean_s * patience) * jitter)

    def sleep_before_retry(self, attempt: int, begun: float) -> bool:
        """Sleep and return True; return False at once if the busy timeout has passed since `begun`.

        `attempt` is the number of the failed attempt, from 0. `begun` is the time when the first
        attempt began.
        """
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
        """Return a function that repeats `call` while SQLite returns BUSY, until the busy timeout.

        `result_code` returns SQLite's code of an exception. `recover` rolls back a failed attempt.
        """

        def attempt_until_done(params: Any) -> Any:
            begun, attempt = self._clock(), 0
            attempt_begun = begun
            while True:
                try:
                    return call(params)
                except Exception as error:
                    code = result_code(error)
                    self._count_refused(code, attempt_begun)
                    recover()
                    if not is_busy(code) or not self.sleep_before_retry(attempt, begun):
                        raise
                    self.count(code)
                    attempt += 1
                    attempt_begun = self._clock()

        return attempt_until_done

    def _count_refused(self, code: int | None, begun: float) -> None:
        if self.refused and code is not None:
            self.refusals.add(*self.refused, code, self._clock() - begun)
        self.refused = None


def worker_waiting(case: Case, worker: int) -> BusyRetries:
    """Return the retry rules for the worker number `worker`. The number seeds the random sleeps."""
    return BusyRetries(
        case.concurrency, case.settings.busy_timeout_ms / 1000, f"{case.seed}:waiting:{worker}"
    )
