"""A worker's connections to the files of a place, with the settings of its case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.sqlite.drivers import Connection, explain, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.drivers.codes import is_busy
from sqlstress.targets.sqlite.waiting import Turns, Waiting, waiting_of

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.targets.keyvalue import Operation
    from sqlstress.targets.sqlite.where.watch import Watch


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
        self.waiting = waiting_of(case, worker)
        self._connections: list[Connection] = []

    def connect(self, bucket: int) -> Connection:
        """Open a bucket's file with the case's settings. Raises EnvironmentFailure, with SQLite's code."""
        connection = connect(self.case, self._paths[bucket], self.waiting)
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
        return self.waiting.retried(call, self._driver.result_code, recover)

    def turns(self) -> Callable[[Operation], Operation]:
        """Return what lets the writes to one file wait for their turn, where waits are to be fair."""
        if self.case.settings.busy != "fair":
            return lambda write: write
        return Turns(self.waiting, self._watch.paused if self._watch else _nobody_asks).kept

    def result_code(self, error: BaseException) -> int | None:
        """Return SQLite's code of an exception; None if it isn't SQLite's."""
        return self._driver.result_code(error)

    def was_busy(self, error: BaseException) -> bool:
        """Return whether an operation was given up because a lock stayed taken, and count it if so."""
        code = self.result_code(error)
        self.waiting.count(code)
        if self._watch and is_busy(code):
            self._watch.gave_up()
        return is_busy(code)

    def busy_counts(self) -> tuple[int, int]:
        """Return how many BUSY and BUSY_SNAPSHOT answers were met."""
        return self.waiting.busy, self.waiting.busy_snapshot

    def effective(self) -> dict[str, str]:
        """Return the settings as SQLite answers them; where files differ, all answers."""
        answers = [pragmas.read_back(connection, self.case.settings) for connection in self._connections]
        return {name: " / ".join(dict.fromkeys(answer[name] for answer in answers)) for name in answers[0]}

    def close(self) -> None:
        """Close every connection; a transaction that is open is undone."""
        for connection in self._connections:
            connection.close()


def _nobody_asks(_begin_s: float, _end_s: float) -> None:
    """Hear of a pause."""
