"""A worker's half of SQL of the user's: one connection, and its statements, prepared.

What a query returns is received as text, and made values of only where somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from sqlstress.options.sql_text import POSTGRES
from sqlstress.targets.postgres.client import Client
from sqlstress.targets.postgres.errors import UNDEFINED_PARAMETER, UNTYPED, ServerError

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.views import Operation


# How a statement with :name has its values given to a server: as parameters, never pasted.


def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with $1, $2, ... for its variables, and their names.

    Each place has a number of its own: the server may infer another type for each.
    """
    parts: list[str] = []
    names: list[str] = []
    for token in POSTGRES.tokens(sql):
        if token.kind == "parameter" and token.text[0] == ":":
            names.append(token.text[1:])
            parts.append(f"${len(names)}")
        else:
            parts.append(token.text)
    return "".join(parts), tuple(names)


def written(value: Any) -> bytes | None:
    """Return a value as the server reads it, whatever type it has there; None for NULL."""
    if value is None:
        return None
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return value if isinstance(value, bytes) else str(value).encode()


INT8, TEXT, BOOL, NUMERIC = 20, 25, 16, 1700
_INTEGERS, _FLOATS = frozenset({INT8, 21, 23, 26}), frozenset({700, 701})
"""Numbers of types: int8, int2, int4, oid; float4, float8. Source: PostgreSQL's catalog pg_type."""


class PostgresScripts:
    """Runs statements in a schema. Raises EnvironmentFailure, with the server's words."""

    waits_outside = False

    def __init__(self, case: Case, schema: str) -> None:
        self._case, self._schema = case, schema
        self._client: Client | None = None

    def connect(self, bucket: int) -> PostgresSession:
        self._client = Client(self._case, self._schema)
        return PostgresSession(self._client)

    def retried(self, call: Operation, recover: Callable[[], None]) -> Operation:
        """Return the operation: the server itself waits for its locks."""
        return call

    def was_busy(self, error: Exception) -> bool:
        return self._client is not None and self._client.was_busy(error)

    def busy_counts(self) -> tuple[int, int]:
        return (self._client.busy, self._client.busy_snapshot) if self._client else (0, 0)

    def effective(self) -> dict[str, str]:
        return self._client.effective() if self._client else {}

    def close(self) -> None:
        if self._client:
            self._client.close()


class PostgresSession:
    """One connection in true autocommit."""

    def __init__(self, client: Client) -> None:
        self._client, self._numbers = client, count(1)
        self.rollback, self.in_transaction = client.recover, client.in_transaction

    def runs(self, sql: str) -> Callable[[Mapping[str, Any]], Any]:
        return Statement(self._client, self._numbers, sql).run

    def reads(self, sql: str) -> Callable[[Mapping[str, Any]], Any]:
        return self.runs(sql)

    def names(self, sql: str) -> Callable[[Mapping[str, Any]], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        run = self.runs(sql)

        def read(values: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
            result = run(values)
            columns = range(result.nfields)
            names = [result.fname(column).decode() for column in columns]
            types = [result.ftype(column) for column in columns]
            rows = [
                [_read(result.get_value(row, column), types[column]) for column in columns]
                for row in range(result.ntuples)
            ]
            return names, rows

        return read


class Statement:
    """A statement: prepared once, or once for each kind of values where the SQL leaves their types open.

    The server infers a type from where a parameter stands, which is what makes a number a text in a column
    of texts. Where nothing says it (:a - :b), or it would take numbers for texts (:a > :b), a value has the
    type that it would have if it were written there.
    """

    def __init__(self, client: Client, numbers: Iterator[int], sql: str) -> None:
        self._client, self._numbers = client, numbers
        self._text, self._names = numbered(sql)
        self._open: frozenset[int] = frozenset()
        """The places of the parameters whose types are those of their values."""
        self._prepared: dict[tuple[int, ...], Callable[[Sequence[bytes | None]], Any]] = {}
        places = range(len(self._names))
        try:
            inferred = self._prepare(())
        except ServerError as error:
            # Any other error may be over when it runs: an earlier statement may make what this one uses.
            self._open = frozenset(places if error.sqlstate in UNTYPED else ())
            return
        texts = frozenset(place for place in places if inferred[place] == TEXT)
        if texts and self._takes(tuple(INT8 if place in texts else 0 for place in places)):
            self._open = texts

    def run(self, values: Mapping[str, Any]) -> Any:
        """Run it with named values, and return the result."""
        given = [_value(values, name) for name in self._names]
        types = self._types(given) if self._open else ()
        if types not in self._prepared:
            self._prepare(types)
        return self._prepared[types]([*map(written, given)])

    def _types(self, given: Sequence[Any]) -> tuple[int, ...]:
        return tuple(_type(value) if place in self._open else 0 for place, value in enumerate(given))

    def _prepare(self, types: tuple[int, ...]) -> Sequence[int]:
        name = f"s{next(self._numbers)}".encode()
        inferred = self._client.prepare(name, self._text, types)
        self._prepared[types] = self._client.named(name)
        return inferred

    def _takes(self, types: tuple[int, ...]) -> bool:
        try:
            self._prepare(types)
        except ServerError:
            return False
        return True


def _type(value: Any) -> int:
    """Return the type that a value would have if it were written there; 0: that depends."""
    if isinstance(value, bool):
        return BOOL
    return INT8 if isinstance(value, int) else NUMERIC if isinstance(value, float) else 0


def _value(values: Mapping[str, Any], name: str) -> Any:
    try:
        return values[name]
    except KeyError:
        raise ServerError(UNDEFINED_PARAMETER, f"the variable :{name} has no value") from None


def _read(data: bytes | None, kind: int) -> Any:
    """Return a value of a result; one of another type as its text."""
    if data is None:
        return None
    if kind in _INTEGERS:
        return int(data)
    if kind in _FLOATS:
        return float(data)
    return data == b"t" if kind == BOOL else data.decode()
