"""A worker's view of a schema: one connection, and a table for each bucket."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.postgres.client import Client
from sqlstress.targets.postgres.errors import ServerError, explained

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlstress.report.case import Case
    from sqlstress.targets.keyvalue import Operation

GET = "SELECT value FROM {kv} WHERE key = $1"
PAIR = "SELECT key, value FROM {kv} WHERE key IN ($1, $2)"
PUT = "INSERT INTO {kv} (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
COUNT = "SELECT n FROM {counter} WHERE id = $1"
SET_COUNT = "UPDATE {counter} SET n = $1 WHERE id = $2"

INT8, TEXT, BYTEA = 20, 25, 17
"""Numbers of types. Source: PostgreSQL's catalog pg_type."""
_INT = Struct("!q")


class Coder(NamedTuple):
    """How a type is written, in binary, and read."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


def _read_int(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _as_it_is(data: bytes) -> bytes:
    return data


CODERS = {
    INT8: Coder(_INT.pack, _read_int),
    TEXT: Coder(str.encode, bytes.decode),
    BYTEA: Coder(bytes, bytes),
}


class PostgresStore:
    """Opens the tables of a schema. Raises EnvironmentFailure, with the server's words."""

    def __init__(self, case: Case, schema: str, begin: str) -> None:
        """`begin` is how transactions of several statements begin: "immediate" takes their locks first."""
        self._client, self._locks = Client(case, schema), begin == "immediate"
        self.gets: list[Operation] = []
        self.pairs: list[Operation] = []
        self.puts: list[Operation] = []
        self.batches: list[Operation] = []
        self.updates: list[Operation] = []
        self._begin, self._commit = self._client.simple(b"BEGIN"), self._client.simple(b"COMMIT")
        try:
            for bucket in range(case.buckets):
                self._prepare(bucket)
        except ServerError as error:
            self.close()
            raise EnvironmentFailure(f"cannot open {schema}: {explained(error)}") from error

    def _prepare(self, bucket: int) -> None:
        retried, kv, counter = self._client.retried, table_name(bucket), counter_name(bucket)
        put, types = self._statement("put", bucket, PUT.format(kv=kv))
        key, value = (CODERS[each] for each in types)
        get, _ = self._statement("get", bucket, GET.format(kv=kv))
        pair, _ = self._statement("pair", bucket, PAIR.format(kv=kv))
        self.gets.append(retried(_get(get, key, value)))
        self.pairs.append(retried(_pair(pair, key, value)))
        replace = _replace(put, key, value)
        self.puts.append(retried(replace))
        self.batches.append(retried(self._batch(replace)))
        count = COUNT.format(counter=counter) + " FOR UPDATE" * self._locks
        read, _ = self._statement("count", bucket, count)
        write, _ = self._statement("set", bucket, SET_COUNT.format(counter=counter))
        self.updates.append(retried(self._update(read, write)))

    def _statement(self, kind: str, bucket: int, sql: str) -> tuple[Callable[..., Any], list[int]]:
        name = f"{kind}_{bucket}".encode()
        types = list(self._client.prepare(name, sql))
        return self._client.prepared(name, len(types)), types

    def _batch(self, replace: Operation) -> Operation:
        begin, commit, in_order = self._begin, self._commit, self._locks

        def replace_all(rows: Iterable[tuple[Any, Any]]) -> None:
            begin()
            # In an order that all have in common, nobody waits for one who waits for him.
            for row in sorted(rows) if in_order else rows:
                replace(row)
            commit()

        return replace_all

    def _update(self, read: Callable[..., Any], write: Callable[..., Any]) -> Operation:
        begin, commit, pack = self._begin, self._commit, _INT.pack

        def increment(counter: tuple[int]) -> None:
            begin()
            number = pack(*counter)
            (before,) = _INT.unpack(read((number,)).get_value(0, 0))
            write((pack(before + 1), number))
            commit()

        return increment

    @property
    def address(self) -> int:
        """Where libpq's own connection lies, on which all this is prepared."""
        return self._client.address

    def was_busy(self, error: Exception) -> bool:
        return self._client.was_busy(error)

    def busy_counts(self) -> tuple[int, int]:
        return self._client.busy, self._client.busy_snapshot

    def effective(self) -> dict[str, str]:
        return self._client.effective()

    def close(self) -> None:
        self._client.close()


def table_name(bucket: int) -> str:
    """Return what the table of a bucket is called."""
    return f"kv_{bucket}"


def counter_name(bucket: int) -> str:
    """Return what the table of a bucket's counters is called."""
    return f"counter_{bucket}"


def _get(run: Callable[..., Any], key: Coder, value: Coder) -> Operation:
    write, read = key.write, value.read

    def get(params: tuple[Any]) -> Any:
        result = run((write(params[0]),))
        return read(result.get_value(0, 0)) if result.ntuples else None

    return get


def _pair(run: Callable[..., Any], key: Coder, value: Coder) -> Operation:
    def both(params: tuple[Any, Any]) -> list[tuple[Any, Any]]:
        result = run([*map(key.write, params)])
        rows = range(result.ntuples)
        return [(key.read(result.get_value(row, 0)), value.read(result.get_value(row, 1))) for row in rows]

    return both


def _replace(run: Callable[..., Any], key: Coder, value: Coder) -> Operation:
    write_key, write_value = key.write, value.write

    def put(params: tuple[Any, Any]) -> None:
        run((write_key(params[0]), write_value(params[1])))

    return put
