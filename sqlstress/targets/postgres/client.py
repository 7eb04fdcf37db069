"""A worker's connection, by libpq's own functions: a prepared statement is one call, and one answer.

A serialization failure is what BUSY_SNAPSHOT is to SQLite, and a deadlock or a lock that stayed taken what
BUSY is: the transaction is begun again, until its time-out has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from psycopg.pq import ConnStatus, ExecStatus, PGconn, TransactionStatus

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.postgres import settings
from sqlstress.targets.postgres.address import PATIENCE_S, dsn_of
from sqlstress.targets.postgres.errors import (
    BUSY,
    SERIALIZATION_FAILURE,
    ServerError,
    explained,
    of_result,
    one_line,
)

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.keyvalue import Operation

ROWS, DONE = int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK)
BINARY = 1
_FINE = (ROWS, DONE)


class Client:
    """One worker's connection to a schema. Raises EnvironmentFailure, with the server's words."""

    def __init__(self, case: Case, schema: str, clock: Callable[[], float] = time.perf_counter) -> None:
        self.case, self.schema = case, schema
        self.busy = self.busy_snapshot = 0
        self._clock, self._timeout_s = clock, case.settings.busy_timeout_ms / 1000
        self._connection: Any = connected(with_defaults(dsn_of(case)), f"cannot open {schema}")
        try:
            self.run(settings.statements(case, schema))
        except ServerError as error:
            self.close()
            raise EnvironmentFailure(f"cannot open {schema}: {explained(error)}") from error

    @property
    def address(self) -> int:
        """Where libpq's own connection lies."""
        return int(self._connection.pgconn_ptr)

    def run(self, sql: str) -> Any:
        """Run SQL without parameters; return its last result. Raises ServerError."""
        return fine(self._connection.exec_(sql.encode()))

    def prepare(self, name: bytes, sql: str, types: Sequence[int] = ()) -> Sequence[int]:
        """Prepare a statement, and return the types of its parameters; the server infers those that are 0."""
        fine(self._connection.prepare(name, sql.encode(), types))
        described = fine(self._connection.describe_prepared(name))
        return [described.param_type(number) for number in range(described.nparams)]

    def prepared(self, name: bytes, parameters: int) -> Callable[[Sequence[bytes]], Any]:
        """Return a function of parameters, in binary, that runs a prepared statement; so is its result."""
        run, formats = self._connection.exec_prepared, (BINARY,) * parameters

        def answer(params: Sequence[bytes]) -> Any:
            result = run(name, params, formats, BINARY)
            return result if result.status in _FINE else fine(result)

        return answer

    def named(self, name: bytes) -> Callable[[Sequence[bytes | None]], Any]:
        """Return a function of parameters, as text, that runs a prepared statement; so is its result."""
        run = self._connection.exec_prepared

        def answer(params: Sequence[bytes | None]) -> Any:
            result = run(name, params)
            return result if result.status in _FINE else fine(result)

        return answer

    def simple(self, sql: bytes) -> Callable[[], Any]:
        """Return a function that runs a statement without parameters."""
        run = self._connection.exec_
        return lambda: fine(run(sql))

    def retried(self, call: Operation) -> Operation:
        """Wrap an operation so that it is begun again, as a whole, until it is done or its time is over."""
        clock = self._clock

        def attempt_until_done(params: Any) -> Any:
            begun = clock()
            while True:
                try:
                    return call(params)
                except Exception as error:
                    self.recover()
                    if not _is_busy(error) or clock() - begun >= self._timeout_s:
                        raise
                    self._count(error)

        return attempt_until_done

    def was_busy(self, error: BaseException) -> bool:
        """Return whether an operation was given up because it could not be served in time; count it if so."""
        self._count(error)
        return _is_busy(error)

    def effective(self) -> dict[str, str]:
        """Return the settings as the server answers them, in this session."""
        names = ", ".join(f"current_setting('{name}')" for name in settings.REPORTED)
        result = self.run(f"SELECT {names}")
        return {name: result.get_value(0, place).decode() for place, name in enumerate(settings.REPORTED)}

    def close(self) -> None:
        """Close the connection; a transaction that is open is undone."""
        self._connection.finish()

    def recover(self) -> None:
        """End what a failed attempt has left open."""
        if self._connection.status == ConnStatus.OK and self.in_transaction():
            self._connection.exec_(b"ROLLBACK")

    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""
        return bool(self._connection.transaction_status != TransactionStatus.IDLE)

    def _count(self, error: BaseException) -> None:
        code = getattr(error, "sqlstate", "")
        self.busy += code in BUSY
        self.busy_snapshot += code == SERIALIZATION_FAILURE


def connected(dsn: str, what: str) -> Any:
    """Connect by libpq alone; `what` is what for. Raises EnvironmentFailure, with the server's words."""
    connection = PGconn.connect(dsn.encode())
    if connection.status != ConnStatus.OK:
        said = one_line(connection.error_message.decode(errors="replace"))
        connection.finish()
        raise EnvironmentFailure(f"{what}: {said}")
    connection.notice_handler = None
    return connection


def with_defaults(dsn: str) -> str:
    """Return a connection string that says how long to wait for an answer, and in which characters."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    own: dict[str, Any] = {"connect_timeout": PATIENCE_S, "client_encoding": "UTF8"}
    return make_conninfo("", **{**own, **conninfo_to_dict(dsn)})


def fine(result: Any) -> Any:
    """Return a result. Raises ServerError for one that is an error."""
    if result.status not in _FINE:
        raise of_result(result)
    return result


def _is_busy(error: BaseException) -> bool:
    code = getattr(error, "sqlstate", "")
    return code in BUSY or code == SERIALIZATION_FAILURE
