"""Subclasses of sqlite3's and apsw's connections and cursors, which record statements in a `History`.

The methods of these subclasses run for each statement, so they only read the clock and add the statement to
the history of its connection. All other facts are read after a failure. The caller, which is the position in
Python code that calls the library, is only looked up outside of a transaction. The opening of a blob handle
is recorded like a statement, as a text that begins with the method's name.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from functools import cache
from threading import get_ident
from time import perf_counter
from typing import Any

from sqlstress.recording import SCRIPT
from sqlstress.recording.backups import BackupSteps
from sqlstress.recording.failures import READ_ONLY
from sqlstress.recording.history import FactCollector, History
from sqlstress.recording.subclasses import STATEMENTS, named_like


@cache
def sqlite3_connection(base: Any, recorder: FactCollector) -> Any:
    """Return a subclass of a sqlite3 connection's class that records statements and failures.

    Methods such as `execute` that `base` overrides are kept, and record nothing.
    """
    plain, plain_cursor = sqlite3.Connection, _sqlite3_cursor(sqlite3.Cursor)

    class Recorded(base):  # type: ignore[misc]
        # Without __slots__, Python would create a dictionary for each connection, which is slower.
        __slots__ = ("_sqlstress",) if base.__weakrefoffset__ else ("_sqlstress", "__weakref__")

        def __init__(self, *args: Any, **options: Any) -> None:
            # The history is set first, because __init__ of `base` may run statements.
            self._sqlstress = recorder.watch(self)
            super().__init__(*args, **options)

        def __enter__(self) -> Any:
            self._sqlstress.blocks.append(self.in_transaction)
            return base.__enter__(self)

        commit = _recorded_end("COMMIT", base.commit)
        rollback = _recorded_end("ROLLBACK", base.rollback)
        __exit__ = _recorded_end("", base.__exit__)
        blobopen = _recorded_blob(base.blobopen)
        backup = _recorded_backup(base.backup)

        def close(self) -> None:
            self._sqlstress.note_close(self)
            base.close(self)

    def cursor(connection: Any, factory: Any = sqlite3.Cursor) -> Any:
        is_class = isinstance(factory, type) and issubclass(factory, sqlite3.Cursor)
        return plain.cursor(connection, _sqlite3_cursor(factory) if is_class else factory)

    if base.cursor is plain.cursor:
        Recorded.cursor = cursor
    for name in STATEMENTS:
        if getattr(base, name) is getattr(plain, name):
            setattr(Recorded, name, _recorded(getattr(sqlite3.Cursor, name), cursor_class=plain_cursor))
    return named_like(Recorded, base)


@cache
def _sqlite3_cursor(base: Any) -> Any:
    return _recorded_cursor(base, STATEMENTS)


def apsw_cursor(base: Any, history: History) -> Any:
    """Return a subclass of an apsw cursor's class that records statements and failures in `history`."""
    return _recorded_cursor(base, ("execute", "executemany"), history)


def apsw_connection(base: Any) -> Any:
    """Return a subclass of an apsw connection's class that records blob handles, checkpoints and WAL hooks.

    Its instances have the attribute `_sqlstress`, which must be set to their history.
    """

    class Recorded(base):  # type: ignore[misc]
        __slots__ = ("_sqlstress",)

    for name in ("blob_open", "blobopen"):  # Each version of apsw has one of these names, or both.
        if hasattr(base, name):
            setattr(Recorded, name, _recorded_blob(getattr(base, name), names_database=True))
    Recorded.wal_checkpoint = _recorded_checkpoint(base.wal_checkpoint)
    for names, recorded in (
        (("set_wal_hook", "setwalhook"), _recorded_wal_hook),
        (("set_busy_handler", "setbusyhandler"), _recorded_busy_handler),
    ):
        for name in names:
            if hasattr(base, name):
                setattr(Recorded, name, recorded(getattr(base, name)))
    return named_like(Recorded, base)


def _recorded_blob(call: Callable[..., Any], *, names_database: bool = False) -> Callable[..., Any]:
    """Return a method that opens a blob handle by `call`, and records the handle or the failure.

    `names_database` is whether the method has the parameters of apsw: first the database's name, last
    whether the handle is writable.
    """

    def blob_open(connection: Any, *args: Any, **options: Any) -> Any:
        history, begun, caller = getattr(connection, "_sqlstress", None), perf_counter(), None
        if history is None:  # The user's code has removed apsw's hooks.
            return call(connection, *args, **options)
        place = [*args, *options.values()][names_database:][:2]
        writable = (
            options.get("writeable", args[-1] if args else True)
            if names_database
            else not options.get("readonly", False)
        )
        statement = f"{call.__name__} {'.'.join(map(str, place))}{'' if writable else READ_ONLY}"
        if not connection.in_transaction or get_ident() != history.thread or history.is_shared:
            caller = history.begin(connection, begun)
        try:
            blob = call(connection, *args, **options)
        except Exception as error:
            history.fail(error, statement, caller, begun)
            raise
        step = (statement, caller is None, caller, begun, perf_counter())
        history.add(step)
        history.note_blob(blob, step, sys._getframe(1))
        return blob

    return blob_open


def _recorded_checkpoint(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return apsw's method `wal_checkpoint`, which records the checkpoint like a PRAGMA."""

    def wal_checkpoint(connection: Any, dbname: str | None = None, mode: int = 0) -> Any:
        history, begun = getattr(connection, "_sqlstress", None), perf_counter()
        if history is None:  # The user's code has removed apsw's hooks.
            return call(connection, dbname, mode)
        statement = f"PRAGMA wal_checkpoint({('PASSIVE', 'FULL', 'RESTART', 'TRUNCATE')[mode]})"
        caller = history.begin(connection, begun)
        try:
            return call(connection, dbname, mode)
        except Exception as error:
            history.fail(error, statement, caller, begun)
            raise
        finally:
            history.recorder.add_checkpoint((statement, caller is None, caller, begun, perf_counter()))

    return wal_checkpoint


def _recorded_wal_hook(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method `set_wal_hook`. Its hooks record the size of the WAL, and call the user's hook."""

    def set_wal_hook(connection: Any, callable: Callable[..., int] | None) -> None:
        history = getattr(connection, "_sqlstress", None)
        if history is None or callable is None:
            call(connection, callable)
            return
        recorder, hook = history.recorder, callable
        at = recorder.line_text(recorder.user_line(sys._getframe(1)))

        def noting_hook(connection: Any, schema: str, frames: int) -> int:
            recorder.note_hook(at, frames)
            return hook(connection, schema, frames)

        call(connection, noting_hook)

    return set_wal_hook


def _recorded_busy_handler(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return apsw's method `set_busy_handler`, which records the line of its caller."""

    def set_busy_handler(connection: Any, callable: Callable[..., bool] | None) -> None:
        if history := getattr(connection, "_sqlstress", None):
            at = history.recorder.line_text(history.recorder.user_line(sys._getframe(1)))
            history.busy_handler = (at or "an unknown line") if callable else ""
        call(connection, callable)

    return set_busy_handler


def _recorded_backup(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that copies a database by `call`, and records how often a copy in steps began again."""

    def backup(connection: Any, target: Any, **options: Any) -> None:
        if options.get("pages", -1) < 1:
            call(connection, target, **options)
            return
        history, begun, steps = connection._sqlstress, perf_counter(), BackupSteps(options.get("progress"))
        try:
            call(connection, target, **{**options, "progress": steps.note})
        finally:
            if steps.restarts:
                at = history.recorder.user_line(sys._getframe(1))
                history.recorder.add_backup(at, steps.restarts, perf_counter() - begun)

    return backup


def _recorded_cursor(base: Any, names: tuple[str, ...], history: History | None = None) -> Any:
    """Return a subclass of a cursor's class whose methods `names` record statements and failures.

    The methods record in `history`; None means the history of the cursor's connection.
    """

    class Recorded(base):  # type: ignore[misc]
        # Without __slots__, Python would create a dictionary for each cursor, which is slower. The module
        # `checkpoint_answers` sets and uses the rows.
        __slots__ = ("_sqlstress_rows", "_sqlstress_step")

    for name in names:
        setattr(Recorded, name, _recorded(getattr(base, name), history))
    return named_like(Recorded, base)


def _recorded(
    call: Callable[..., Any], fixed_history: History | None = None, cursor_class: Any = None
) -> Callable[..., Any]:
    """Return a method that runs a statement by `call`, and records the statement or its failure.

    With `cursor_class`, the method is for sqlite3's connections, and creates a cursor of this class.
    Otherwise the method is for cursors. The method records in `fixed_history`; None means the history of the
    connection.
    """
    if call is sqlite3.Cursor.execute:
        return _recorded_execute(cursor_class)
    new_cursor = sqlite3.Connection.cursor
    each_row, is_script = call.__name__ == "executemany", call.__name__ == "executescript"

    def method(owner: Any, *args: Any, **options: Any) -> Any:
        cursor, connection = (
            (new_cursor(owner, cursor_class), owner) if cursor_class else (owner, owner.connection)
        )
        history, statement = fixed_history or connection._sqlstress, args[0] if args else ""
        split = history.transaction() if is_script and _commits_first(connection) else None
        begun, caller = perf_counter(), None
        if not connection.in_transaction or get_ident() != history.thread or history.is_shared:
            caller = history.begin(connection, begun)
        try:
            result = call(cursor, *args, **options)
        except Exception as error:
            history.fail(error, statement, caller, begun)
            raise
        step = (statement, caller is None, caller, begun, perf_counter())
        history.add(step)
        if caller is not None:
            cursor._sqlstress_step = step
        if statement not in history.ordinary:
            history.end(step, cursor, args[1] if len(args) > 1 and not each_row else ())
        if split:
            history.recorder.add_split(split, SCRIPT, history.recorder.user_line(sys._getframe(1)))
        if each_row and caller is not None and not connection.in_transaction:
            history.count_row_commits()
        return result

    return method


def _recorded_execute(cursor_class: Any) -> Callable[..., Any]:
    """Return a method that runs `sqlite3.Cursor.execute`, 0.2 µs faster per statement than `_recorded`."""
    new_cursor, call = sqlite3.Connection.cursor, sqlite3.Cursor.execute

    def execute(owner: Any, statement: str, parameters: Any = (), /) -> Any:
        cursor, connection, caller = owner, owner, None
        if cursor_class:
            cursor = new_cursor(owner, cursor_class)
        else:
            connection = owner.connection
        history, begun = connection._sqlstress, perf_counter()
        if not connection.in_transaction or get_ident() != history.thread or history.is_shared:
            caller = history.begin(connection, begun)
        try:
            call(cursor, statement, parameters)
        except Exception as error:
            history.fail(error, statement, caller, begun)
            raise
        step = (statement, caller is None, caller, begun, perf_counter())
        history.add(step)
        if caller is not None:
            cursor._sqlstress_step = step
        if statement not in history.ordinary:
            history.end(step, cursor, parameters)
        return cursor

    return execute


def _recorded_end(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that ends a transaction by `call`, and records this as the statement `name`.

    `name` is "" for `__exit__`, which commits if the block has raised no error, and otherwise rolls back.
    """

    def end(connection: Any, *error: Any) -> Any:
        statement = name or ("ROLLBACK" if error[0] else "COMMIT")
        history, begun, caller = connection._sqlstress, perf_counter(), None
        if not connection.in_transaction or get_ident() != history.thread or history.is_shared:
            caller = history.begin(connection, begun)
            if caller is not None:
                history.note_idle_end(statement, sys._getframe(1))
        if name == "ROLLBACK":
            if connection.in_transaction and sys.exc_info()[1]:
                history.note_released_savepoint(sys._getframe(1))
            history.note_rollback(connection)
        elif not name:
            history.end_block(connection, sys._getframe(1), is_error=bool(error[0]))
        try:
            result = call(connection, *error)
        except sqlite3.Error as failure:
            history.fail(failure, statement, caller, begun)
            raise
        history.add((statement, caller is None, caller, begun, perf_counter()))
        return result

    return end


def _commits_first(connection: Any) -> bool:
    # The attribute, new in Python 3.12, is -1 unless the user's code sets `autocommit`.
    return connection.in_transaction and getattr(connection, "autocommit", -1) == -1


def runs_statement(history: History) -> bool:
    """Return whether another thread is running a statement of the connection with this history."""
    frame = None if history.thread == get_ident() else sys._current_frames().get(history.thread)
    # Such a thread is in a method of this module, whose variable `history` shows the connection.
    return (
        frame is not None
        and frame.f_code.co_filename == __file__
        and frame.f_locals.get("history") is history
    )
