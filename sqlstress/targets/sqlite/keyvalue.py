"""A worker's view of SQLite files: one connection to each bucket, statements prepared by the driver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.targets.keyvalue import Operation
from sqlstress.targets.sqlite.connecting import connect, waiting_of, waits_outside
from sqlstress.targets.sqlite.drivers import Connection, codes, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.partition import file_names

if TYPE_CHECKING:
    from sqlstress.report.case import Case

GET = "SELECT value FROM kv WHERE key = ?"
PAIR = "SELECT key, value FROM kv WHERE key IN (?, ?)"
PUT = "REPLACE INTO kv (key, value) VALUES (?, ?)"
COUNT = "SELECT n FROM counter WHERE id = ?"
SET_COUNT = "UPDATE counter SET n = ? WHERE id = ?"


class SqliteStore:
    """Opens every bucket of a case; `worker` only seeds the jitter of its waits.

    Raises EnvironmentFailure, with SQLite's code, when one can't be opened.
    """

    def __init__(self, case: Case, folder: Path, worker: int) -> None:
        self._case = case
        self._driver = load_driver(case.driver)
        self._waiting = waiting_of(case, worker)
        self._connections: list[Connection] = []
        self.gets: list[Operation] = []
        self.pairs: list[Operation] = []
        self.puts: list[Operation] = []
        self.batches: list[Operation] = []
        self.updates: list[Operation] = []
        for name in file_names(case.buckets):
            self._open(folder / name)

    def _open(self, path: Path) -> None:
        connection = connect(self._case, path, self._waiting)
        self._connections.append(connection)
        simple = self._retried if waits_outside(self._case) else _as_it_is
        self.gets.append(simple(connection, connection.scalar(GET)))
        self.pairs.append(simple(connection, lambda keys: connection.rows(PAIR, keys)))
        self.puts.append(simple(connection, connection.writer(PUT)))
        begin = f"BEGIN {self._case.spec.begin}"
        self.batches.append(self._retried(connection, _batch(connection, begin)))
        self.updates.append(self._retried(connection, _update(connection, begin)))

    def _retried(self, connection: Connection, operation: Operation) -> Operation:
        return self._waiting.retried(operation, self._driver.result_code, connection.rollback)

    def was_busy(self, error: Exception) -> bool:
        code = self._driver.result_code(error)
        self._waiting.count(code)
        return codes.is_busy(code)

    def busy_counts(self) -> tuple[int, int]:
        return self._waiting.busy, self._waiting.busy_snapshot

    def effective(self) -> dict[str, str]:
        answers = [pragmas.read_back(connection, self._case.settings) for connection in self._connections]
        return {name: " / ".join(dict.fromkeys(answer[name] for answer in answers)) for name in answers[0]}

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def _as_it_is(_connection: Connection, operation: Operation) -> Operation:
    return operation


def _batch(connection: Connection, begin: str) -> Operation:
    start, end = connection.writer(begin), connection.writer("COMMIT")

    def replace_all(rows: list[tuple[object, object]]) -> None:
        start(())
        connection.run_many(PUT, rows)
        end(())

    return replace_all


def _update(connection: Connection, begin: str) -> Operation:
    start, end = connection.writer(begin), connection.writer("COMMIT")
    read, write = connection.scalar(COUNT), connection.writer(SET_COUNT)

    def increment(counter: tuple[int]) -> None:
        start(())
        write((read(counter) + 1, *counter))
        end(())

    return increment
