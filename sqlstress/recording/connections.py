"""Queries on a connection of the user's code, of Python's sqlite3 or of apsw.

The queries use the library's own cursor class, not a cursor class of the user's code. So they return plain
rows, and are not recorded.
"""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from sqlstress.recording.failures import TimedStep, statement_kind, words_of, written_name

_PROBE = "sqlstress_probe"
"""Name of a collation, which SQLite cannot replace while the connection has an open statement.

Also the name of a savepoint, which SQLite cannot begin while a write is open.
"""
_WRITING = 2
"""Result of apsw's `txn_state`: state of a connection that holds the write lock."""


def is_open(connection: Any) -> bool:
    try:
        return connection is not None and connection.in_transaction is not None
    except Exception:  # The connection was closed.
        return False


def is_in_transaction(connection: Any) -> bool:
    try:
        return bool(connection.in_transaction)
    except Exception:  # The connection was closed, or no longer exists.
        return False


def on_apsw_connection(hook: Callable[[Any], None]) -> bool:
    """Call `hook` for each connection that apsw opens from now on. Return whether apsw is installed."""
    if find_spec("apsw"):
        with suppress(ImportError):
            import_module("apsw").connection_hooks.append(hook)
            return True
    return False


def rows(
    connection: Any, sql: str, parameters: Sequence[str] = (), most: int = 1000
) -> list[tuple[Any, ...]]:
    """Return the first `most` rows of a statement, as tuples. Raises the library's exceptions."""
    if isinstance(connection, sqlite3.Connection):
        cursor: Any = sqlite3.Cursor(connection)
        cursor.row_factory = None
    else:
        cursor = import_module("apsw").Cursor(connection)
        cursor.row_trace = None
    try:
        return list(islice(cursor.execute(sql, parameters), most))
    finally:
        cursor.close()


def pragma(connection: Any, name: str) -> str:
    """Return the value of a PRAGMA as text; empty if it is unknown."""
    with suppress(Exception):  # An error of sqlite3 or apsw.
        return str(rows(connection, f"PRAGMA {name}")[0][0])
    return ""


def attached_files(connection: Any) -> dict[str, str]:
    """Return the file name of each database of a connection, by schema, such as "main", which comes first."""
    with suppress(Exception):  # An error of sqlite3 or apsw.
        databases = rows(connection, "PRAGMA database_list")
        return {schema: Path(file).name for _, schema, file in databases if file}
    return {}


def written_schema(connection: Any, sql: str, schemas: Sequence[str]) -> str:
    """Return the schema, such as "main", of the table that a statement writes; empty if unknown."""
    names = written_name(sql)
    if len(names) == 2:
        return names[0] if names[0] in schemas else ""
    for schema in schemas if names else ():
        found = f'SELECT 1 FROM "{schema}".sqlite_master WHERE lower(name) = lower(?)'
        with suppress(Exception):  # An error of sqlite3 or apsw.
            if rows(connection, found, names[:1]):
                return schema
    return ""


def writes_temporary(connection: Any, sql: str) -> bool:
    """Return whether a statement writes a temporary table, and so takes no lock on the database file."""
    word, second = words_of(sql)
    if word == "CREATE" and second in ("TEMP", "TEMPORARY"):
        return True
    *schemas, table = written_name(sql) or ("",)
    if not table or schemas:
        return [schema.lower() for schema in schemas] == ["temp"]
    with suppress(Exception):  # An error of sqlite3 or apsw.
        found = "SELECT 1 FROM temp.sqlite_master WHERE type = 'table' AND lower(name) = lower(?)"
        return bool(rows(connection, found, (table,)))
    return False


def has_open_statement(connection: Any, is_shared: bool) -> str:
    """Return whether a connection has a statement with unfetched rows: "yes", "no", or "" if unknown.

    If several threads use the connection (`is_shared`), the result is "", because the test could deadlock.
    Python's sqlite3 waits for the connection's mutex while it holds the GIL, and the thread with the mutex
    may need the GIL to call a trace or function.
    """
    if is_shared:
        return ""
    try:
        for _ in range(2):  # The first call may create the collation. Only the second surely replaces it.
            connection.create_collation(_PROBE, _compare)
    except Exception as error:
        return "yes" if "active statements" in str(error) else ""
    return "no"


def has_open_write(connection: Any) -> bool:
    """Return whether a write with RETURNING, run outside of a transaction, still has unfetched rows."""
    if not isinstance(connection, sqlite3.Connection):
        with suppress(Exception):  # The connection was closed, or this apsw is too old.
            return bool(connection.txn_state() == _WRITING)
        return False
    if has_open_statement(connection, is_shared=False) != "yes":
        return False
    try:
        rows(connection, f"SAVEPOINT {_PROBE}")  # SQLite refuses it only if a write is open.
    except sqlite3.Error as error:
        return "statements in progress" in str(error)
    rows(connection, f"RELEASE {_PROBE}")
    return False


def cursor_steps(connection: Any) -> Iterator[TimedStep]:
    """Yield, for each cursor of a connection, its last statement that ran outside of a transaction."""
    is_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()  # get_objects() hides frozen objects, which are those from before the measurement.
    cursors = [value for value in gc.get_objects() if hasattr(type(value), "_sqlstress_step")]
    if is_frozen:
        gc.freeze()
    for cursor in cursors:
        step = getattr(cursor, "_sqlstress_step", None)
        if step and getattr(cursor, "connection", None) is connection:
            yield step


def reading_steps(connection: Any) -> Iterator[TimedStep]:
    """Yield queries that may have unfetched rows: each cursor's last, if run outside of a transaction."""
    return (step for step in cursor_steps(connection) if statement_kind(step[0]) == "read")


def _compare(left: str, right: str) -> int:
    return (left > right) - (left < right)
