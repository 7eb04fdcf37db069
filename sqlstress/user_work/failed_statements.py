"""Facts of each statement of the user's code that SQLite refused, also if the code caught the exception.

The connections and cursors that the user's code gets are instances of our subclasses. Their methods measure
the time of each call and catch its exception. All other facts are read only after a failure.

Python's sqlite3 and apsw are covered, also if another library calls them. Not covered are connections that
existed before `install`, connections from a factory that is not a class, and methods that a class of the
user's code overrides.
"""

from __future__ import annotations

import gc
import sqlite3
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import get_ident
from time import perf_counter
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol, cast
from weakref import ref

from sqlstress.sqlite_codes import BUSY, CONSTRAINT
from sqlstress.target import OTHER_SQLITE
from sqlstress.user_work import IN_MEMORY, LEFT_OPEN, NOT_COMMITTED, OPEN_STATEMENT, SPLIT
from sqlstress.user_work.call_costs import LONG_HOLD_S, CallCosts, Hold, LongHolds, Span, hold_of
from sqlstress.user_work.failures import (
    IMPLICIT_BEGIN,
    MAX_HISTORY,
    MAX_KINDS,
    FailureCounter,
    FailureFacts,
    Instruction,
    Kind,
    Line,
    Step,
    is_busy,
    is_checkpoint,
    is_in_memory,
    is_within,
    is_write,
    short_sql,
    statement_kind,
    transaction_of,
    transaction_steps,
    words_of,
    written_name,
)
from sqlstress.user_work.source import PlainObservation

LOOK_S = 0.05
"""Minimum seconds between two searches for statements that stay open: their rows are not all fetched."""
LONG_OPEN_S = 0.2
"""Minimum time, in seconds, that a statement is open before it is recorded."""

_STATEMENTS = ("execute", "executemany", "executescript")
_PROBE = "sqlstress_probe"
"""Name of a collation, which shows whether a statement of the connection is open.

If so, SQLite refuses to replace the collation.
"""


class Transaction(NamedTuple):
    """State of an open transaction."""

    state: str
    """"none", "read" or "written"; empty if unknown."""
    began: str
    """Statement that began it, such as "BEGIN IMMEDIATE"; empty if unknown."""
    at: str
    """Line of the user's code that began it; empty if unknown."""

    @property
    def wrote(self) -> bool:
        return self.state == "written"

    @property
    def is_explicit(self) -> bool:
        """Whether the user's code began the transaction by a statement, such as BEGIN."""
        return self.began not in ("", IMPLICIT_BEGIN)


class History:
    """Last statements of a connection, and the state of its transaction."""

    def __init__(self, recorder: FailedStatements, connection: Any) -> None:
        self.recorder = recorder
        self.connection = ref(connection)
        self.name = ""
        """Name under which the database was opened."""
        self.steps: deque[Step] = deque(maxlen=MAX_HISTORY)
        self.spans: deque[Span] = deque(maxlen=MAX_HISTORY)
        """Begin and end of the statements in `steps`."""
        self.began_s = 0.0
        """Time of `perf_counter` when the last statement outside of a transaction began, in seconds."""
        self.thread = 0
        """Thread that ran the last statement; 0 if there is none."""
        self.is_shared = False
        """Whether several threads have used the connection."""
        self.opened_by = ""
        """Name of the user's function that left the transaction open first; empty if none is open."""
        self.left_open = Transaction("", "", "")
        """That transaction, as it was when this function returned."""
        self.open_calls = 0
        """Number of calls that have returned while this transaction was open."""
        self.statement_open_s: float | None = None
        """Time of `perf_counter` when an open statement was first seen, in seconds; None if none is open."""
        self.open_queries: tuple[Step, ...] = ()
        """Queries that may be the open statement; empty until they are looked up."""
        self.is_new = True
        """Whether only PRAGMAs have run: the next statement parses the schema."""
        self._is_sqlite3 = isinstance(connection, sqlite3.Connection)
        self._changed_rows = 0
        self._failed: deque[tuple[int, Step]] = deque(maxlen=MAX_HISTORY)
        """Last statements that failed, with their result codes."""

    def use(self, sql: Any, connection: Any) -> Step | None:
        """Add a statement that is about to run, with its caller if no transaction is open.

        Return the added step; None if a transaction is open.
        """
        thread = get_ident()
        if thread != self.thread:
            self.is_shared = self.is_shared or self.thread != 0
            self.thread = thread
        if connection.in_transaction:
            self.steps.append((sql, True, None))
            return None
        self.end_transaction()
        self.began_s = perf_counter()
        changed_rows = connection.total_changes if self._is_sqlite3 else connection.total_changes()
        if changed_rows != self._changed_rows:  # since the last transaction began
            self.recorder.costs.commits += 1
            self._changed_rows = changed_rows
        step = (sql, False, self.recorder.caller(sys._getframe(2)))
        self.steps.append(step)
        return step

    def end_transaction(self) -> None:
        """Record the last transaction, which has ended, if it held the write lock for long."""
        spans, steps = self.spans, self.steps
        if not spans or not steps[-1][1] or spans[-1][1] - self.began_s < LONG_HOLD_S or self.is_shared:
            return
        first = len(steps) - len(transaction_steps(steps))
        hold = hold_of([*steps][first:], [*spans][first:], self.refused())
        if hold and hold.seconds >= LONG_HOLD_S and len(steps) == len(spans):
            self.recorder.add_hold(hold, steps[first])
        self.began_s = spans[-1][1]

    def count_row_commits(self) -> None:
        """Count a commit for each row that the last statement has changed."""
        connection: Any = self.connection()
        changed_rows = connection.total_changes if self._is_sqlite3 else connection.total_changes()
        self.recorder.costs.commits += changed_rows - self._changed_rows
        self._changed_rows = changed_rows

    def end_first(self, sql: Any, begun: float) -> None:
        """Add the time of a new connection's statement to the time that opening took."""
        self.recorder.costs.opening_s += perf_counter() - begun
        self.is_new = isinstance(sql, str) and words_of(sql)[0] == "PRAGMA"
        if not self.is_new:
            self.recorder.used_files.add(self.name)

    def fail(self, error: Exception, begun: float) -> None:
        """Record the failure of the last statement, which began at `begun`, a time of `perf_counter`."""
        self.spans.append((begun, perf_counter()))
        waited_s = self.spans[-1][1] - begun
        code = getattr(error, "sqlite_errorcode", getattr(error, "extendedresult", None))
        if isinstance(code, int):
            self._failed.append((code, self.steps[-1]))
            self.recorder.add(self, code, str(error), waited_s)
        elif not isinstance(self.steps[-1][0], str):
            self.steps.pop()  # No library runs such a statement.
            self.spans.pop()

    def note_checkpoint(self, cursor: Any, begun: float) -> None:
        """Record the last statement, a checkpoint, as failed if its result says that it was busy.

        The checkpoint began at `begun`, a time of `perf_counter`.
        """
        from sqlstress.user_work.checkpoint_answers import rows_ahead

        waited_s = perf_counter() - begun
        if is_busy(rows := rows_ahead(cursor)):
            self.recorder.add(self, BUSY, f"its answer was {rows[0]}", waited_s)

    def transaction(self) -> Transaction:
        """Return the state of the transaction that the last statement belongs to."""
        state, began, line = transaction_of(self.steps, self.refused())
        return Transaction(state, began, self.recorder.line_text(line))

    def last_end(self) -> str:
        """Return the kind of the end of the last transaction: "commit" or "rollback"; empty if unknown."""
        released = False
        for sql, _, _ in reversed(self.steps):
            word, second = words_of(sql)
            if statement_kind(sql) == "commit":
                return "commit"
            if word == "ROLLBACK" and (released or second != "TO"):
                return "rollback"
            if released:
                return "commit"
            released = word == "RELEASE"  # It commits if SAVEPOINT began the transaction.
        return "commit" if released else ""

    def refused(self) -> set[int]:
        """Return the ids of the statements that failed and got no lock.

        A statement that broke a constraint has the lock.
        """
        return {id(step) for code, step in self._failed if code & 0xFF != CONSTRAINT}

    def failed_commit(self) -> int:
        """Return the result code of a COMMIT that failed in the open transaction; 0 if there is none."""
        codes = {id(step): code for code, step in self._failed if statement_kind(step[0]) == "commit"}
        steps = transaction_steps(self.steps)
        return next((codes[id(step)] for step in reversed(steps) if id(step) in codes), 0)

    def is_repeated(self) -> bool:
        """Return whether a lock has refused the last statement before in its transaction."""
        *earlier, (sql, _, _) = transaction_steps(self.steps)
        failed = {id(step) for code, step in self._failed if code & 0xFF == BUSY}
        return any(step[0] == sql and id(step) in failed for step in earlier)


class UserLines(Protocol):
    """Finder of lines of the user's code; `callers.UserFrames` is one."""

    def line(self, frame: FrameType | None) -> Line | None:
        """Return the innermost line of the user's code that led to a frame; None if there is none."""

    def text(self, line: Line) -> str:
        """Return a line as text, such as "bank.py:27"; empty if it is not in the user's code."""


class FailedStatements:
    """Records the failed statements of all connections that this process opens after `install`."""

    def __init__(self, lines: UserLines, costs: CallCosts) -> None:
        self.lines = lines
        self.costs = costs
        self.on_open: Callable[[], None] = lambda: None
        """Called when a connection has been opened."""
        self._looks_up = False
        """Whether to look up the user's line for each statement that begins a transaction.

        The search is slow, so it starts only after a call has left a transaction open. Before that, the line
        is known only if the user's code calls the SQLite library directly.
        """
        self.used_files = set[str]()
        """Names of the databases on which statements other than PRAGMA have run."""
        self._libraries = set[str]()
        """Libraries that have opened a connection: "sqlite3", "apsw" or both."""
        self.failures = FailureCounter()
        self.holds = LongHolds()
        self._left_open: dict[tuple[str, Transaction, int], int] = {}
        self._not_committed: dict[str, int] = {}
        self._splits: dict[tuple[str, Transaction], int] = {}
        """Number of transactions that executescript has committed, by its line and by the transaction."""
        self._open_statements: dict[tuple[str, str], float] = {}
        """Longest time that a statement was open, in seconds, by statement and line."""
        self._in_memory: dict[tuple[str, str], int] = {}
        """Number of connections to databases in memory, by name and line."""
        self._next_look_s = 0.0
        self._histories: list[History] = []
        self._examines = False
        """Whether the statement that runs now is sqlstress's: it reads facts, and is not recorded."""

    def install(self) -> None:
        """Watch all connections that are opened from now on. This cannot be undone."""
        connect = sqlite3.connect

        def watched_connect(*args: Any, **options: Any) -> Any:
            begun = perf_counter()
            connection: Any = connect(*self._with_factory(args, options), **options)
            self.costs.add_connection(perf_counter() - begun)
            self._libraries.add("sqlite3")
            if history := getattr(connection, "_sqlstress", None):
                history.name = str(args[0] if args else options.get("database", ""))
                self._note_memory(history.name)
                self.on_open()
            return connection

        sqlite3.connect = sqlite3.dbapi2.connect = watched_connect
        if find_spec("apsw"):
            with suppress(ImportError):
                import_module("apsw").connection_hooks.append(self._watch_apsw)

    def _note_memory(self, name: str) -> None:
        """Count a connection of the user's code if its database is in memory."""
        if not is_in_memory(name):
            return
        line = self.lines.line(sys._getframe(2))
        kind = name, self.line_text(line)
        if kind in self._in_memory or len(self._in_memory) < MAX_KINDS:
            self._in_memory[kind] = self._in_memory.get(kind, 0) + 1

    def _with_factory(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        """Replace the factory among the arguments of `connect` by our subclass of it.

        Return the positional arguments; `options`, the keyword arguments, are changed in place.
        """
        place = 5
        factory = args[place] if len(args) > place else options.get("factory", sqlite3.Connection)
        if not (isinstance(factory, type) and issubclass(factory, sqlite3.Connection)):
            return args
        subclass = _sqlite3_connection(cast(Any, factory), self)
        if len(args) > place:
            return (*args[:place], subclass, *args[place + 1 :])
        options["factory"] = subclass
        return args

    def _watch_apsw(self, connection: Any) -> None:
        history = self.watch(connection)
        self._libraries.add("apsw")
        history.name = connection.filename
        self.costs.add_connection(0.0)  # The time is unknown: the connection is already open.
        self.on_open()
        connection.cursor_factory = _apsw_cursor(connection.cursor_factory, history)
        connection_class = type(connection)

        def note_block(source: Any, sql: str, _: Any) -> bool:
            # `with connection` begins and ends its transaction without a cursor.
            if isinstance(source, connection_class):
                history.use(sql, source)
                history.spans.append((now := perf_counter(), now))
            return True

        connection.exec_trace = note_block

    def watch(self, connection: Any) -> History:
        """Return a new history for a connection that was just made."""
        history = History(self, connection)
        for known in self._histories:
            if not known.connection():
                known.end_transaction()
        self._histories = [known for known in self._histories if known.connection()] + [history]
        return history

    def open_libraries(self, file: str) -> set[str]:
        """Return the libraries with an open connection to a file of this name: "sqlite3", "apsw" or both."""
        return {
            "sqlite3" if isinstance(connection, sqlite3.Connection) else "apsw"
            for history in self._histories
            if file in history.name and _is_open(connection := history.connection())
        }

    def caller(self, frame: FrameType) -> Line | Instruction | None:
        """Return the instruction in `frame` that calls the library, or the user's line if it is needed.

        The line of an instruction is only looked up when it is reported, because the search takes as long as
        a short statement. The user's line is None if there is none.
        """
        return self.lines.line(frame) if self._looks_up else (frame.f_code, frame.f_lasti)

    def line_text(self, at: Line | Instruction | None) -> str:
        """Return a line as text, such as "bank.py:27"; empty if unknown, or not in the user's code."""
        if at is None:
            return ""
        place, number = at
        if isinstance(place, CodeType):
            spans = place.co_lines()
            at = (
                place.co_filename,
                next((line or 0 for start, end, line in spans if start <= number < end), 0),
            )
            return self.lines.text(at)
        return self.lines.text((place, number))

    def add(self, history: History, code: int, message: str, waited_s: float) -> None:
        """Record the failure of the last statement of a connection, with its SQLite result code.

        `waited_s` is the duration of the failed call, in seconds.
        """
        if self._examines:
            return
        *earlier, (sql, was_open, _) = history.steps
        line = self.lines.line(sys._getframe(3))
        kind = Kind(code, short_sql(sql), self.line_text(line))

        def examine() -> FailureFacts:
            refused, is_repeated = history.refused(), history.is_repeated()  # before apsw adds our PRAGMAs
            state, began, _ = transaction_of(earlier, refused) if was_open else ("none", "", None)
            facts = self._examine(history, sql, state, began)
            steps = transaction_steps(earlier) if was_open else []
            writes = [step[0] for step in steps if id(step) not in refused]
            return facts._replace(
                repeated="yes" if is_repeated else "",
                lock_order=self._lock_order(history, [*writes, sql]),
            )

        self.failures.add(kind, message, waited_s, examine)

    def _examine(self, history: History, sql: str, state: str, began: str) -> FailureFacts:
        """Return the facts of a failed statement: from its text, and read from its connection."""
        self._examines, connection = True, history.connection()
        try:
            holder = self._holder(connection, history.name)
            return FailureFacts(
                _pragma(connection, "busy_timeout"),
                _pragma(connection, "journal_mode"),
                statement_kind(sql),
                state,
                began,
                _has_open_statement(history),
                "yes" if "cache=shared" in history.name else "no",
                "this process" if holder else "",
                _beginning(holder),
                _pragma(connection, "locking_mode"),
            )
        finally:
            self._examines = False

    def _lock_order(self, history: History, statements: Sequence[str]) -> str:
        """Return the attached files in the order in which a transaction locks them; empty for one file.

        `statements` are those of the transaction. The last one has failed.
        """
        connection = history.connection()
        files = _attached_files(connection)
        if len(files) < 2:
            return ""
        self._examines = True
        try:
            if statement_kind(statements[-1]) == "begin":
                return ", ".join(files.values())
            schemas = [_written_schema(connection, sql, [*files]) for sql in statements if is_write(sql)]
        finally:
            self._examines = False
        order = [files[schema] for schema in dict.fromkeys(schemas) if schema]
        return ", ".join(order) if len(order) > 1 and schemas[-1] not in schemas[:-1] else ""

    def _holder(self, failed: Any, name: str) -> Transaction | None:
        """Return the transaction of another connection of this process that holds the write lock, or None.

        That connection has written in a transaction that is still open, and runs no statement now.
        """
        for history in self._histories:
            connection = history.connection()
            if connection is failed or history.name != name or not _is_in_transaction(connection):
                continue
            transaction = history.transaction()
            if transaction.wrote and not _runs(history):
                return transaction
        return None

    def add_hold(self, hold: Hold, first: Step) -> None:
        """Record a long hold of the write lock. `first` is the first statement of its transaction."""
        at = self.line_text(first[2])
        self.holds.add(hold, *((at, "") if first[0] == hold.sql else ("", at)))
        self._looks_up = True

    def add_split(self, transaction: Transaction) -> None:
        """Record that executescript has committed this open transaction: Python does so first.

        Only under load: a script that runs while the program starts often sets up the tables.
        """
        window = self.failures.window
        if window is None or not is_within(window) or not (transaction.is_explicit or transaction.wrote):
            return
        line = self.lines.line(sys._getframe(2))
        kind = self.line_text(line), transaction
        if kind in self._splits or len(self._splits) < MAX_KINDS:
            self._splits[kind] = self._splits.get(kind, 0) + 1
        self._looks_up = True

    def check_left_open(self, call: str) -> None:
        """Record the transactions that this thread has open after a call of the user's function.

        `call` is the name of the function. A transaction that was already open before the call is attributed
        to the function that left it open first. At most every LOOK_S, also search for open statements.
        """
        if perf_counter() >= self._next_look_s:
            self._next_look_s = perf_counter() + LOOK_S
            self._look_for_open_statements(perf_counter())
        for history in self._histories:
            if _is_in_transaction(history.connection()):
                if history.thread == get_ident():
                    self._leave_open(history, call)
            elif history.opened_by:
                self._end(history, was_committed=history.last_end() == "commit")

    def _leave_open(self, history: History, call: str) -> None:
        """Count a call that returned while a transaction of the connection was open."""
        if not history.opened_by:
            history.opened_by, history.open_calls = call, 0
            history.left_open = history.transaction()
        history.open_calls += 1
        kind = (history.opened_by, history.left_open, history.failed_commit())
        if kind in self._left_open or len(self._left_open) < MAX_KINDS:
            self._left_open[kind] = self._left_open.get(kind, 0) + 1
        self._looks_up = True

    def _look_for_open_statements(self, now_s: float) -> None:
        """Record the statements that stay open outside of a transaction, and so keep an old snapshot.

        `now_s` is a time of `perf_counter`, in seconds.
        """
        for history in self._histories:
            connection = history.connection()
            is_idle = _is_open(connection) and not _is_in_transaction(connection)
            is_ours = history.thread == get_ident()
            if not (is_idle and is_ours) or _has_open_statement(history) != "yes":
                history.statement_open_s, history.open_queries = None, ()
                continue
            if history.statement_open_s is None:
                history.statement_open_s = now_s
            open_s = now_s - history.statement_open_s
            if open_s >= LONG_OPEN_S:
                if not history.open_queries:  # The search takes milliseconds, so it runs once per statement.
                    history.open_queries = tuple(_reading_steps(connection))
                for sql, _, line in history.open_queries:
                    kind = short_sql(sql), self.line_text(line)
                    self._open_statements[kind] = max(open_s, self._open_statements.get(kind, 0.0))

    def _end(self, history: History, *, was_committed: bool) -> None:
        """Handle the end of a transaction that was left open: count its calls unless it was committed."""
        if not was_committed:
            count = self._not_committed.get(history.opened_by, 0)
            self._not_committed[history.opened_by] = count + history.open_calls
        history.opened_by = ""

    def records(self) -> list[PlainObservation]:
        """Return the failed statements, open transactions and open statements, each kind with its count.

        Call it when the work is done. A transaction that is still open counts as not committed only if its
        COMMIT has failed: otherwise a later call might have committed it.
        """
        for history in self._histories:
            if history.opened_by:
                self._end(history, was_committed=not history.failed_commit())
            if not _is_in_transaction(history.connection()):
                history.end_transaction()
        lost: Iterator[PlainObservation] = (
            (NOT_COMMITTED, call, count, "", {}) for call, count in self._not_committed.items()
        )
        statements: Iterator[PlainObservation] = (
            (OPEN_STATEMENT, sql, 1, "", {"at": at, "seconds": f"{seconds:.3g}"})
            for (sql, at), seconds in self._open_statements.items()
        )
        memory: Iterator[PlainObservation] = (
            (IN_MEMORY, name, count, "", {"at": at}) for (name, at), count in self._in_memory.items()
        )
        return [
            *self.costs.records(),
            *self.failures.records(),
            *self._open_records(),
            *self._split_records(),
            *self.holds.records(),
            *self._other_sqlite(),
            *statements,
            *lost,
            *memory,
        ]

    def _other_sqlite(self) -> Iterator[PlainObservation]:
        """Yield the version of SQLite that ran, if only apsw was used, which has its own SQLite."""
        if self._libraries == {"apsw"}:
            yield OTHER_SQLITE, "apsw", 1, import_module("apsw").sqlite_lib_version(), {}

    def _open_records(self) -> Iterator[PlainObservation]:
        for (call, transaction, code), count in self._left_open.items():
            traits = {**transaction._asdict(), "failed_commit": str(code or "")}
            yield LEFT_OPEN, call, count, "", traits

    def _split_records(self) -> Iterator[PlainObservation]:
        for (at, transaction), count in self._splits.items():
            yield SPLIT, at, count, "", transaction._asdict()


# Facts of connections.


def _is_open(connection: Any) -> bool:
    try:
        return connection is not None and connection.in_transaction is not None
    except Exception:  # The connection was closed.
        return False


def _is_in_transaction(connection: Any) -> bool:
    try:
        return bool(connection.in_transaction)
    except Exception:  # The connection was closed, or no longer exists.
        return False


def _beginning(transaction: Transaction | None) -> str:
    """Return the statement that began a transaction, with its line if known; empty without a transaction."""
    if transaction is None:
        return ""
    return f"{transaction.began} ({transaction.at})" if transaction.at else transaction.began


def _runs(history: History) -> bool:
    """Return whether another thread runs a statement of the connection now."""
    frame = None if history.thread == get_ident() else sys._current_frames().get(history.thread)
    # The thread may have moved on to another connection.
    return (
        frame is not None
        and frame.f_code.co_filename == __file__
        and frame.f_locals.get("history") is history
    )


def _pragma(connection: Any, name: str) -> str:
    with suppress(Exception):
        if isinstance(connection, sqlite3.Connection):
            cursor = sqlite3.Cursor(connection)
            cursor.row_factory = None
            return str(cursor.execute(f"PRAGMA {name}").fetchone()[0])
        return str(connection.pragma(name))
    return ""


def _rows(connection: Any, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query, without the row factory of the user's code; empty if it fails."""
    with suppress(Exception):  # Of sqlite3 or apsw.
        if isinstance(connection, sqlite3.Connection):
            cursor = sqlite3.Cursor(connection)
            cursor.row_factory = None
            return cursor.execute(sql, parameters).fetchall()
        return [*connection.execute(sql, parameters)]
    return []


def _attached_files(connection: Any) -> dict[str, str]:
    """Return the names of the files of a connection, by schema: "main" first, then in the order of ATTACH."""
    rows = _rows(connection, "PRAGMA database_list")
    return {schema: Path(file).name for _, schema, file in rows if file}


def _written_schema(connection: Any, sql: str, schemas: Sequence[str]) -> str:
    """Return the schema of the table that a statement writes; empty if unknown."""
    names = written_name(sql)
    if len(names) == 2:
        return names[0] if names[0] in schemas else ""
    for schema in schemas if names else ():
        found = f'SELECT 1 FROM "{schema}".sqlite_master WHERE lower(name) = lower(?)'
        if _rows(connection, found, names[0]):
            return schema
    return ""


def _has_open_statement(history: History) -> str:
    """Return whether a connection has a statement with rows left to fetch: "yes", "no", or "" if unknown.

    A statement that has failed is closed, so it does not count. The answer is unknown if several threads
    share the connection, because a call could deadlock: Python's sqlite3 waits for the connection's mutex
    while it holds the interpreter's lock. The thread with the mutex may need that lock, to call a trace or a
    function.
    """
    connection: Any = history.connection()
    if history.is_shared:
        return ""
    try:
        for _ in range(2):  # The first call may create the collation, which always works.
            connection.create_collation(_PROBE, _compare)
    except Exception as error:
        return "yes" if "active statements" in str(error) else ""
    return "no"


def _reading_steps(connection: Any) -> Iterator[Step]:
    """Yield the last queries of all cursors of a connection. One of these queries is the open statement."""
    is_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()  # get_objects() hides frozen objects: all that existed before the measurement.
    cursors = [value for value in gc.get_objects() if hasattr(type(value), "_sqlstress_step")]
    if is_frozen:
        gc.freeze()
    for cursor in cursors:
        step = getattr(cursor, "_sqlstress_step", None)
        if step and getattr(cursor, "connection", None) is connection and statement_kind(step[0]) == "read":
            yield step


def _compare(left: str, right: str) -> int:
    return (left > right) - (left < right)


# Subclasses of the libraries' classes. Each statement runs their code, so they make no unnecessary call.


@cache
def _sqlite3_connection(base: Any, recorder: FailedStatements) -> Any:
    """Return a subclass of a connection's class that reports failures to `recorder`.

    If `base` overrides sqlite3's methods for cursors and statements, these methods stay as they are.
    """
    plain, plain_cursor = sqlite3.Connection, _sqlite3_cursor(sqlite3.Cursor)

    def new_cursor(connection: Any) -> Any:
        return plain.cursor(connection, plain_cursor)

    def ends(connection: Any, sql: str, call: Callable[..., Any], *args: Any) -> Any:
        history = connection._sqlstress
        history.use(sql, connection)
        begun = perf_counter()
        try:
            result = call(connection, *args)
        except sqlite3.Error as error:
            history.fail(error, begun)
            raise
        history.spans.append((begun, perf_counter()))
        return result

    class Watched(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            # Set first, because __init__ of `base` may run statements.
            self._sqlstress = recorder.watch(self)
            super().__init__(*args, **options)

        def commit(self) -> None:
            ends(self, "COMMIT", base.commit)

        def rollback(self) -> None:
            ends(self, "ROLLBACK", base.rollback)

        def __exit__(self, *error: Any) -> Any:
            return ends(self, "ROLLBACK" if error[0] else "COMMIT", base.__exit__, *error)

    def cursor(connection: Any, factory: Any = sqlite3.Cursor) -> Any:
        is_class = isinstance(factory, type) and issubclass(factory, sqlite3.Cursor)
        return plain.cursor(connection, _sqlite3_cursor(factory) if is_class else factory)

    if base.cursor is plain.cursor:
        Watched.cursor = cursor
    for name in _STATEMENTS:
        if getattr(base, name) is getattr(plain, name):
            setattr(Watched, name, _recorded(getattr(sqlite3.Cursor, name), new_cursor=new_cursor))
    if base.execute is plain.execute:
        Watched.execute = _recorded_execute(plain_cursor)
    return _named_like(Watched, base)


@cache
def _sqlite3_cursor(base: Any) -> Any:
    """Return a subclass of sqlite3's cursor class that reports failures to the history of its connection."""
    return _watched_cursor(base, _STATEMENTS)


def _apsw_cursor(base: Any, history: History) -> Any:
    """Return a subclass of apsw's cursor class that reports failures to `history`."""
    return _watched_cursor(base, ("execute", "executemany"), history)


def _watched_cursor(base: Any, names: tuple[str, ...], history: History | None = None) -> Any:
    """Return a subclass of a cursor's class whose methods `names` record their statements and failures.

    The history is that of the cursor's connection if `history` is None.
    """

    class Watched(base):  # type: ignore[misc]
        # A dictionary for each cursor takes longer. The rows are those of `checkpoint_answers`.
        __slots__ = ("_sqlstress_rows", "_sqlstress_step")

    for name in names:
        setattr(Watched, name, _recorded(getattr(base, name), history))
    return _named_like(Watched, base)


def _recorded_execute(cursor_class: Any) -> Callable[..., Any]:
    """Return a method `execute` of sqlite3 connections that records its statements and failures.

    `_recorded` would return such a method, too, but it takes 0.2 µs longer for each statement.
    """
    new_cursor, call = sqlite3.Connection.cursor, sqlite3.Cursor.execute

    def execute(connection: Any, sql: str, parameters: Any = (), /) -> Any:
        cursor, history, step = new_cursor(connection, cursor_class), connection._sqlstress, None
        if connection.in_transaction and get_ident() == history.thread:
            history.steps.append((sql, True, None))
        else:
            step = cursor._sqlstress_step = history.use(sql, connection)
        begun = perf_counter()
        try:
            call(cursor, sql, parameters)
        except Exception as error:
            history.fail(error, begun)
            raise
        history.spans.append((begun, perf_counter()))
        if history.is_new:
            history.end_first(sql, begun)
        if step and is_checkpoint(sql):
            history.note_checkpoint(cursor, begun)
        return cursor

    return execute


def _recorded(
    call: Callable[..., Any],
    fixed_history: History | None = None,
    new_cursor: Callable[[Any], Any] | None = None,
) -> Callable[..., Any]:
    """Return a method that runs a statement by `call`, and records the statement and its failure.

    The method is for a class of cursors; with `new_cursor` it is for a class of connections, and makes a
    cursor for each statement. The history is that of the connection, unless `fixed_history` is given.
    """

    each_row, is_script = call.__name__ == "executemany", call.__name__ == "executescript"

    def method(owner: Any, *args: Any, **options: Any) -> Any:
        cursor, connection = (new_cursor(owner), owner) if new_cursor else (owner, owner.connection)
        history = fixed_history or connection._sqlstress
        split = history.transaction() if is_script and _commits_first(connection) else None
        step = history.use(args[0] if args else "", connection)
        if step:
            cursor._sqlstress_step = step
        begun = perf_counter()
        try:
            result = call(cursor, *args, **options)
        except Exception as error:
            history.fail(error, begun)
            raise
        history.spans.append((begun, perf_counter()))
        if history.is_new:
            history.end_first(args[0] if args else "", begun)
        if step and is_checkpoint(step[0]):
            history.note_checkpoint(cursor, begun)
        if split:
            history.recorder.add_split(split)
        if each_row and step and not connection.in_transaction:
            history.count_row_commits()
        return result

    return method


def _commits_first(connection: Any) -> bool:
    """Return whether executescript would commit the connection's open transaction before its script."""
    # The attribute is new in Python 3.12. It is -1 unless the program sets autocommit.
    return connection.in_transaction and getattr(connection, "autocommit", -1) == -1


def _named_like(subclass: Any, base: Any) -> Any:
    """Give a subclass the name of its base, because the user's code may print it. Return the subclass."""
    subclass.__name__, subclass.__qualname__ = base.__name__, base.__qualname__
    subclass.__module__ = base.__module__
    return subclass
