"""A worker's connections; how its operations wait for a lock, and how often they had to.

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
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.sqlite.drivers import Connection, explain, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.drivers.codes import BUSY_SNAPSHOT, is_busy

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.targets.keyvalue import Operation
    from sqlstress.targets.sqlite.where.watch import Watch

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


def waiting_of(case: Case, worker: int) -> Waiting:
    """Return the waits of one worker; its number seeds their jitter."""
    return Waiting(case.concurrency, case.settings.busy_timeout_ms / 1000, f"{case.seed}:waiting:{worker}")


def connect(case: Case, path: Path, waiting: Waiting) -> Connection:
    """Open a file with the case's settings. Raises EnvironmentFailure, with SQLite's code."""
    settings, driver = case.settings, load_driver(case.driver)
    try:
        connection = driver.connect(
            path, settings.busy_timeout_ms, waiting if settings.busy == "fair" else None
        )
        # Whoever opens a WAL that nobody holds sets it up, and the others wait for it.
        apply = waiting.retried(
            lambda _: pragmas.apply(connection, settings), driver.result_code, connection.rollback
        )
        try:
            apply(None)
        except BaseException:
            connection.close()
            raise
    except Exception as error:
        raise EnvironmentFailure(f"cannot open {path.name}: {explain(case.driver, error)}") from error
    return connection


class Client:
    """One worker's connections to the files of a place, opened when they are asked for."""

    def __init__(self, case: Case, paths: Sequence[Path], worker: int, watch: Watch | None = None) -> None:
        """`worker` only seeds the jitter of its waits; `watch` is told of operations that are given up."""
        self.case, self.worker, self._paths, self._watch = case, worker, paths, watch
        self._driver = load_driver(case.driver)
        self._waiting = waiting_of(case, worker)
        self._connections: list[Connection] = []

    def connect(self, bucket: int) -> Connection:
        """Open a bucket's file with the case's settings. Raises EnvironmentFailure, with SQLite's code."""
        connection = connect(self.case, self._paths[bucket], self._waiting)
        self._connections.append(connection)
        return connection

    def connect_all(self) -> list[Connection]:
        """Open every bucket's file."""
        return [self.connect(bucket) for bucket in range(len(self._paths))]

    @property
    def waits_outside(self) -> bool:
        """Whether a busy handler of ours is wanted and can't run inside SQLite: operations are retried."""
        return self.case.settings.busy == "fair" and not self._driver.HANDLES_BUSY

    def retried(self, call: Operation, recover: Callable[[], None]) -> Operation:
        """Wrap an operation as `Waiting.retried` does."""
        return self._waiting.retried(call, self._driver.result_code, recover)

    def result_code(self, error: BaseException) -> int | None:
        """Return SQLite's code of an exception; None if it isn't SQLite's."""
        return self._driver.result_code(error)

    def was_busy(self, error: BaseException) -> bool:
        """Return whether an operation was given up because a lock stayed taken, and count it if so."""
        code = self.result_code(error)
        self._waiting.count(code)
        if self._watch and is_busy(code):
            self._watch.gave_up()
        return is_busy(code)

    def busy_counts(self) -> tuple[int, int]:
        """Return how many BUSY and BUSY_SNAPSHOT answers were met."""
        return self._waiting.busy, self._waiting.busy_snapshot

    def effective(self) -> dict[str, str]:
        """Return the settings as SQLite answers them; where files differ, all answers."""
        answers = [pragmas.read_back(connection, self.case.settings) for connection in self._connections]
        return {name: " / ".join(dict.fromkeys(answer[name] for answer in answers)) for name in answers[0]}

    def close(self) -> None:
        """Close every connection; a transaction that is open is undone."""
        for connection in self._connections:
            connection.close()
