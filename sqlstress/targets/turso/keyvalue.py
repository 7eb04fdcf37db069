"""A worker's view of Turso's files: one connection to each, statements as an application gives them.

Its binding prepares a statement anew for each call, and keeps it until its rows have been fetched: all of
them are, so that it ends with the call. No other process is in a file, so there is nobody to wait for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sqlstress.targets.sqlite.connections import COUNT, GET, PAIR, PUT, SET_COUNT
from sqlstress.targets.turso.connections import TursoConnection, opened
from sqlstress.targets.turso.settings import apply, read_back

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlstress.targets.turso.place import TursoPlace
    from sqlstress.targets.views import Operation


class TursoStore:
    """Opens every bucket of a place. Raises EnvironmentFailure."""

    def __init__(self, place: TursoPlace, begin: str) -> None:
        """`begin` is how transactions of several statements begin."""
        self._begin = f"BEGIN {begin}"
        self._connections: list[TursoConnection] = []
        self.gets: list[Operation] = []
        self.pairs: list[Operation] = []
        self.puts: list[Operation] = []
        self.batches: list[Operation] = []
        self.updates: list[Operation] = []
        try:
            for path in place.paths:
                self._connections.append(opened(path))
                apply(self._connections[-1], place.case.settings)
                self._prepare(self._connections[-1])
        except BaseException:
            self.close()
            raise

    def _prepare(self, connection: TursoConnection) -> None:
        begin = self._begin
        self.gets.append(_get(connection))
        self.pairs.append(_pair(connection))
        self.puts.append(partial(connection.cursor().execute, PUT))
        self.batches.append(_whole(connection, begin, connection.cursor().executemany, PUT))
        self.updates.append(_whole(connection, begin, _update(connection)))

    def was_busy(self, error: Exception) -> bool:
        return False

    def busy_counts(self) -> tuple[int, int]:
        return 0, 0

    def effective(self) -> dict[str, str]:
        answers = [read_back(connection) for connection in self._connections]
        return {name: " / ".join(dict.fromkeys(answer[name] for answer in answers)) for name in answers[0]}

    def close(self) -> None:
        """Close every connection, and let go of all that would keep its file open."""
        for operations in (self.gets, self.pairs, self.puts, self.batches, self.updates):
            operations.clear()
        while self._connections:
            self._connections.pop().close()


def _get(connection: TursoConnection) -> Operation:
    execute = connection.cursor().execute

    def get(params: tuple[Any]) -> Any:
        found = execute(GET, params).fetchall()
        return found[0][0] if found else None

    return get


def _pair(connection: TursoConnection) -> Operation:
    execute = connection.cursor().execute
    return lambda keys: execute(PAIR, keys).fetchall()


def _whole(connection: TursoConnection, begin: str, work: Callable[..., object], *first: str) -> Operation:
    """Return an operation that does its work in one transaction, or not at all."""
    execute = connection.cursor().execute

    def transaction(given: Any) -> None:
        execute(begin)
        try:
            work(*first, given)
            execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise

    return transaction


def _update(connection: TursoConnection) -> Operation:
    execute = connection.cursor().execute

    def increment(counter: tuple[int]) -> None:
        n = execute(COUNT, counter).fetchall()[0][0]
        execute(SET_COUNT, (n + 1, *counter))

    return increment
