"""A worker's view of SQLite files: one connection to each bucket, statements prepared by the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlstress.targets.keyvalue import Operation
    from sqlstress.targets.sqlite.client import Client
    from sqlstress.targets.sqlite.drivers import Connection

GET = "SELECT value FROM kv WHERE key = ?"
PAIR = "SELECT key, value FROM kv WHERE key IN (?, ?)"
PUT = "REPLACE INTO kv (key, value) VALUES (?, ?)"
COUNT = "SELECT n FROM counter WHERE id = ?"
SET_COUNT = "UPDATE counter SET n = ? WHERE id = ?"


class SqliteStore:
    """Opens every bucket of a client's place. Raises EnvironmentFailure, with SQLite's code."""

    def __init__(self, client: Client, begin: str) -> None:
        """`begin` is how transactions of several statements begin."""
        self._client, self._begin = client, f"BEGIN {begin}"
        self.gets: list[Operation] = []
        self.pairs: list[Operation] = []
        self.puts: list[Operation] = []
        self.batches: list[Operation] = []
        self.updates: list[Operation] = []
        for connection in client.connect_all():
            self._prepare(connection)

    def _prepare(self, connection: Connection) -> None:
        simple = self._retried if self._client.waits_outside else _as_it_is
        in_turn = self._client.turns()
        self.gets.append(simple(connection, connection.scalar(GET)))
        self.pairs.append(simple(connection, lambda keys: connection.rows(PAIR, keys)))
        self.puts.append(in_turn(simple(connection, connection.writer(PUT))))
        self.batches.append(in_turn(self._retried(connection, _batch(connection, self._begin))))
        self.updates.append(in_turn(self._retried(connection, _update(connection, self._begin))))

    def _retried(self, connection: Connection, operation: Operation) -> Operation:
        return self._client.retried(operation, connection.rollback)

    def was_busy(self, error: Exception) -> bool:
        return self._client.was_busy(error)

    def busy_counts(self) -> tuple[int, int]:
        return self._client.busy_counts()

    def effective(self) -> dict[str, str]:
        return self._client.effective()

    def close(self) -> None:
        self._client.close()


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
