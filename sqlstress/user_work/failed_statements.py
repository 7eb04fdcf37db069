"""Facts of each statement of the user's code that SQLite refused, also if the code caught the exception.

The connections and cursors that the user's code gets are instances of our subclasses. Their methods measure
the time of each statement and catch its exception. All other facts are read only after a failure.

Python's sqlite3 and apsw are covered, also if another library calls them. Not covered are connections that
existed before `install`, connections from a factory that is not a class, and methods that a class of the
user's code overrides.

Terms: a call is one call of a function of the user file. A caller is the position in Python code that calls
the SQLite library. The history of a connection has its last statements.
"""

from __future__ import annotations

import gc
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from threading import get_ident
from time import perf_counter
from types import CodeType, FrameType
from typing import Any, Protocol, TypeVar, cast

from sqlstress.sqlite_codes import BUSY, CONSTRAINT
from sqlstress.target import OTHER_SQLITE
from sqlstress.user_work import (
    IN_MEMORY,
    LEFT_OPEN,
    NEVER,
    NO_EFFECT,
    NOT_COMMITTED,
    OPEN_STATEMENT,
    REPEATED,
    SPLIT,
    UNCLOSED,
)
from sqlstress.user_work.call_costs import CallCosts, Hold, LongHolds
from sqlstress.user_work.callers import is_abandoned
from sqlstress.user_work.connections import (
    attached_files,
    has_open_statement,
    is_in_transaction,
    is_open,
    on_apsw_connection,
    pragma,
    reading_steps,
    rows,
    writes_temporary,
    written_schema,
)
from sqlstress.user_work.failures import (
    MAX_KINDS,
    UNKNOWN_CALLER,
    Caller,
    FailureCounter,
    FailureFacts,
    Kind,
    Line,
    TimedStep,
    is_in_memory,
    is_within,
    is_write,
    short_sql,
    statement_kind,
    transaction_of,
    transaction_steps,
    words_of,
)
from sqlstress.user_work.history import History, Transaction
from sqlstress.user_work.overlaps import ActiveCalls, Overlaps
from sqlstress.user_work.recorded_classes import apsw_cursor, runs_statement, sqlite3_connection
from sqlstress.user_work.source import PlainObservation

LOOK_S = 0.05
"""Minimum seconds between two searches for queries that stay open: their rows are not all fetched."""
SYNCHRONOUS = {"0": "off", "1": "normal", "2": "full", "3": "extra"}
"""Names of the numbers that PRAGMA synchronous returns."""
MIN_UNCLOSED = 10
"""Minimum number of calls that opened connections to a file, for the same thread, which are still open.

A pool of fixed size opens its connections in few calls.
"""
MIN_NEVER = 100
"""Minimum number of calls in a transaction to report it as never committed, if it is open at the end."""
SLOW_SCAN_S = 0.005
"""Minimum time, in seconds, of a write for which the plan of SQLite is read."""
LONG_OPEN_S = 0.2
"""Minimum time, in seconds, for which a query stays open before it is recorded."""

CONNECT = "@connect"
"""Name of the function that left a transaction open which began before the first call."""
TASKS, CLOSED = "tasks", "closed"
"""Traits of LEFT_OPEN sightings: "yes" if tasks ran the transaction; if the connection was closed in it."""

_SELECTS = re.compile(r"\bselect\b.*\bfrom\b", re.IGNORECASE | re.DOTALL)

K = TypeVar("K")


class UserLines(Protocol):
    """Interface of the finder of lines in the user's code, `callers.UserFrames`."""

    def line(self, frame: FrameType | None) -> Line | None:
        """Return the file and line in the user's code that led to a stack frame; None if there is none."""

    def text(self, line: Line) -> str:
        """Return a line as text, such as "bank.py:27"; empty if it is not in the user's code."""

    def awaiting_line(self) -> Line | None:
        """Return the line of the coroutine that waits for this thread; None if unknown."""

    def active_calls(self, frame: FrameType | None) -> ActiveCalls:
        """Return the user's functions on the call stack of a frame, with their current lines."""


class FailedStatements:
    """Recorder of failed statements and open transactions in this process, from `install` on."""

    def __init__(self, lines: UserLines, costs: CallCosts) -> None:
        self.lines = lines
        self.costs = costs
        self.on_open: Callable[[], None] = lambda: None
        """Function that is called after the user's code has opened a connection."""
        self._looks_up = False
        """Whether to search for the user's line at each statement that begins a transaction.

        The search is slow, so it starts only after the first observation that needs the line, such as a
        transaction that a call left open. Before that, the line is known only if the user's code calls the
        SQLite library directly.
        """
        self.used_files = set[str]()
        """Names of the databases on which statements other than PRAGMA have run."""
        self._libraries = set[str]()
        """Libraries that have opened a connection: "sqlite3", "apsw" or both."""
        self.failures = FailureCounter()
        self.holds = LongHolds()
        self.overlaps = Overlaps(lines)
        self._no_effect = Counter[tuple[str, str, Transaction]]()
        """Number of PRAGMAs that had no effect, by statement, line and transaction."""
        self._left_open = Counter[tuple[str, Transaction, int, str]]()
        """Number of calls that returned in an open transaction, or closed its connection (see CLOSED).

        A key has the function, the transaction, the result code of a failed COMMIT (0 if none failed), and
        TASKS, CLOSED or an empty text.
        """
        self._closed: list[tuple[float, Transaction]] = []
        """Transactions in which a connection was closed, each with the time at which the call began."""
        self._not_committed = Counter[str]()
        self._never_committed = Counter[str]()
        """Number of calls that returned in a transaction that the process never ended, by function."""
        self._commits_later = False
        """Whether a later call ever committed a transaction that a call left open, as batches do."""
        self._repeats: dict[tuple[str, str, str], tuple[int, int]] = {}
        """Number of calls, and most refusals in a call, by function and by `_refused` key."""
        self._refused = Counter[tuple[str, str]]()
        """Refused writes of the current call that came after other work of the call.

        A key has the line of the write, and the line of an earlier write that the call has committed; "" if
        the transaction of the refused write had only read.
        """
        self._unfinished: list[tuple[History, TimedStep, str, str]] = []
        """Refused writes of the current call in a transaction that had written before.

        An item has the connection's history, the refused statement, its line, and the line of the other
        write.
        """
        self._busy: dict[Kind, float] = {}
        """End of the last failure with BUSY of each kind in the current call, as a time of `perf_counter`.

        Only kinds of statements that begin, write or commit.
        """
        self._splits = Counter[tuple[str, Transaction]]()
        """Number of open transactions that `executescript` committed, by line of the call and transaction."""
        self._open_statements: dict[tuple[str, str], float] = {}
        """Longest time for which a query stayed open, in seconds, by statement and line."""
        self._in_memory = Counter[tuple[str, str]]()
        """Number of connections to databases in memory, by name and line."""
        self._next_look_s = 0.0
        self._histories: list[History] = []

    def install(self) -> None:
        """Record the statements of all connections that are opened from now on. This cannot be undone."""
        connect = sqlite3.connect

        def watched_connect(*args: Any, **options: Any) -> Any:
            begun = perf_counter()
            connection: Any = connect(*self._with_factory(args, options), **options)
            self.costs.add_connection(perf_counter() - begun)
            self._libraries.add("sqlite3")
            if history := getattr(connection, "_sqlstress", None):
                history.name = str(args[0] if args else options.get("database", ""))
                history.opened_at = self.lines.line(sys._getframe(1))
                self._note_memory(history.name)
                self.on_open()
            return connection

        sqlite3.connect = sqlite3.dbapi2.connect = watched_connect
        on_apsw_connection(self._watch_apsw)

    def _note_memory(self, name: str) -> None:
        """Count a connection of the user's code if its database is in memory."""
        if not is_in_memory(name):
            return
        line = self.lines.line(sys._getframe(2))
        _count(self._in_memory, (name, self.line_text(line)))

    def _with_factory(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        """Replace the connection's class in the arguments of `sqlite3.connect` by our subclass of it.

        Return the positional arguments; `options`, the keyword arguments, are changed in place.
        """
        index = 5
        factory = args[index] if len(args) > index else options.get("factory", sqlite3.Connection)
        if not (isinstance(factory, type) and issubclass(factory, sqlite3.Connection)):
            return args
        subclass = sqlite3_connection(cast(Any, factory), self)
        if len(args) > index:
            return (*args[:index], subclass, *args[index + 1 :])
        options["factory"] = subclass
        return args

    def _watch_apsw(self, connection: Any) -> None:
        history = self.watch(connection)
        self._libraries.add("apsw")
        history.name = connection.filename
        history.opened_at = self.lines.line(sys._getframe(1))
        self.costs.add_connection(0.0)  # The duration is unknown: apsw calls this afterwards.
        self.on_open()
        connection.cursor_factory = apsw_cursor(connection.cursor_factory, history)
        connection_class = type(connection)

        def note_block(source: Any, sql: str, _: Any) -> bool:
            # `with connection` runs its statements without a cursor: only a trace sees them.
            if isinstance(source, connection_class):
                begun = perf_counter()
                caller = history.begin(source, begun)
                history.add((sql, caller is None, caller, begun, begun))
            return True

        connection.exec_trace = note_block

    def watch(self, connection: Any) -> History:
        """Return a new history (last statements) of a new connection. Drop those of deleted connections."""
        history = History(self, connection)
        for known in self._histories:
            if not known.connection():
                known.end_transaction()
        self._histories = [known for known in self._histories if known.connection()] + [history]
        return history

    def open_libraries(self, file: str) -> set[str]:
        """Return the libraries that have the file `file` open: "sqlite3", "apsw" or both."""
        return {
            "sqlite3" if isinstance(connection, sqlite3.Connection) else "apsw"
            for history in self._histories
            if file in history.name and is_open(connection := history.connection())
        }

    def apsw_settings(self, file: str) -> dict[str, str]:
        """Return the settings of apsw's open connections to the file `file`, by name of the setting.

        Different values are separated by " / ". Empty if sqlite3 has opened a connection, too.
        """
        found: dict[str, dict[str, None]] = {}
        for history in self._histories if self._libraries == {"apsw"} else ():
            connection = history.connection()
            if file in history.name and is_open(connection) and not is_in_transaction(connection):
                for name in ("journal_mode", "synchronous", "busy_timeout"):
                    value = pragma(connection, name)
                    text = SYNCHRONOUS.get(value, value) if name == "synchronous" else value
                    found.setdefault(name, {})[text] = None
        return {name: " / ".join(values) for name, values in found.items()}

    def holds_write_lock(self, file: str) -> bool:
        """Return whether this process has an open transaction that has written to the file `file`."""
        return any(
            file in history.name and is_in_transaction(history.connection()) and history.transaction().wrote
            for history in self._histories
        )

    def caller(self, frame: FrameType) -> Caller:
        """Return the instruction in `frame` that calls the SQLite library, or the user's line if `_looks_up`.

        Without `_looks_up`, the line is only searched for when it is reported, because the search takes as
        long as a short statement.
        """
        if self._looks_up:
            return self.lines.line(frame) or self.lines.awaiting_line() or UNKNOWN_CALLER
        return frame.f_code, frame.f_lasti

    def line_text(self, at: Caller | None) -> str:
        """Return the line of a caller, a position in code, such as "bank.py:27".

        Empty if the line is unknown, or is not in the user's code.
        """
        if at is None:
            return ""
        origin, number = at
        if isinstance(origin, CodeType):
            spans = origin.co_lines()
            at = (
                origin.co_filename,
                next((line or 0 for start, end, line in spans if start <= number < end), 0),
            )
            return self.lines.text(at)
        return self.lines.text((origin, number))

    def add(self, history: History, code: int, message: str, waited_s: float) -> None:
        """Record the failure of the last statement of a connection, with its SQLite result code.

        `waited_s` is the duration of the failed statement, in seconds.
        """
        *earlier, (sql, was_open, *_) = history.steps
        line = self.lines.line(sys._getframe(3)) or self.lines.awaiting_line()
        kind = Kind(code, short_sql(sql), self.line_text(line))

        def examine() -> FailureFacts:
            refused, connection = history.refused(), history.connection()
            state, began, _ = transaction_of(earlier, refused) if was_open else ("none", "", None)
            if state == "written" and is_write(sql):
                state = _state_without_temporary(connection, earlier, refused)
            steps = transaction_steps(earlier) if was_open else []
            writes = [step[0] for step in steps if id(step) not in refused]
            holder = self._holder(connection, history.name)
            return FailureFacts(
                timeout_ms=pragma(connection, "busy_timeout"),
                journal=pragma(connection, "journal_mode"),
                statement=statement_kind(sql),
                transaction=state,
                began=began,
                open_cursor=has_open_statement(connection, history.is_shared),
                shared_cache="yes" if "cache=shared" in history.name else "no",
                holder="this process" if holder else "",
                held_since=str(holder or ""),
                reader=self._reader(connection, history.name) if statement_kind(sql) == "commit" else "",
                scan=_slow_scan(connection, earlier, sql, refused) if is_write(sql) else "",
                locking_mode=pragma(connection, "locking_mode"),
                repeated="yes" if history.is_repeated() else "",
                lock_order=_lock_order(connection, [*writes, sql]),
            )

        self.failures.add(kind, message, waited_s, examine)
        if code & 0xFF == BUSY and statement_kind(sql) in ("begin", "write", "commit"):
            self._busy[kind] = perf_counter()
        if code & 0xFF in (BUSY, CONSTRAINT) and is_write(sql):
            committed = "" if was_open else self._last_write(history, earlier)
            if committed or (was_open and code & 0xFF == BUSY and not history.is_repeated()):
                self._refused[kind.at, committed] += 1
            if was_open and (write := self._last_write(history, transaction_steps(earlier))):
                self._unfinished.append((history, history.steps[-1], kind.at, write))

    def _last_write(self, history: History, earlier: Sequence[TimedStep]) -> str:
        """Return the line of the last write of the current call that was not rolled back, if any.

        `earlier` has the statements before the last one.
        """
        refused = history.refused()
        for step in reversed(earlier):
            sql, _, at, begun, _ = step
            if begun < self.costs.begun_s or words_of(sql)[0] == "ROLLBACK":
                break
            if is_write(sql) and id(step) not in refused:
                return self.line_text(at) or short_sql(sql)
        return ""

    def _holder(self, failed: Any, name: str) -> Transaction | None:
        """Return the transaction of another connection of this process that holds the write lock, or None.

        That connection has written in a transaction that is still open, and runs no statement now.
        """
        for history in self._histories:
            connection = history.connection()
            if connection is failed or history.name != name or not is_in_transaction(connection):
                continue
            transaction = history.transaction()
            if transaction.wrote and not runs_statement(history):
                return transaction
        return None

    def _reader(self, failed: Any, name: str) -> str:
        """Return the open query, with its line, of another connection of this process, if any."""
        for history in self._histories:
            connection = history.connection()
            if connection is failed or history.name != name or not is_open(connection):
                continue
            if not runs_statement(history) and has_open_statement(connection, history.is_shared) == "yes":
                for sql, _, line, *_ in reading_steps(connection):
                    return " ".join(filter(None, (short_sql(sql), f"({self.line_text(line)})")))
        return ""

    def add_hold(self, hold: Hold, first: TimedStep) -> None:
        """Record a long hold of the write lock. `first` is the first statement of its transaction."""
        at = self.line_text(first[2])
        self.holds.add(hold, *((at, "") if first[0] == hold.sql else ("", at)))
        self._looks_up = True

    def add_no_effect(self, sql: str, transaction: Transaction) -> None:
        """Record a PRAGMA that had no effect because it ran in a transaction."""
        line = self.lines.line(sys._getframe(2))
        _count(self._no_effect, (short_sql(sql), self.line_text(line), transaction))

    def add_split(self, transaction: Transaction) -> None:
        """Record that `executescript` has committed an open transaction, as Python does before the script.

        Nothing is recorded outside of the window: scripts at the start of a program often set up tables.
        """
        window = self.failures.window
        if window is None or not is_within(window) or not (transaction.is_explicit or transaction.wrote):
            return
        line = self.lines.line(sys._getframe(2))
        _count(self._splits, (self.line_text(line), transaction))
        self._looks_up = True

    def add_closed(self, transaction: Transaction) -> None:
        """Record that a connection was closed in a transaction that had changed rows."""
        self._closed.append((self.costs.begun_s, transaction))

    def check_left_open(self, call: str, *, returned: bool = True) -> None:
        """Record the transactions that are open in this thread after a call of the user's function `call`.

        `returned` is whether the call raised no exception. A transaction that was already open before the
        call is attributed to the function that left it open first. At most every LOOK_S seconds, also search
        for queries that stay open.
        """
        for history, step, at, write in self._unfinished:
            if history.end_after(step) == "commit":
                self._refused[at, write] += 1
        self._unfinished.clear()
        if self._busy:
            self._note_given_up(returned=returned)
        if self._refused:
            self._note_repeats(call, returned=returned)
        if self._closed:
            self._note_closed(call, returned=returned)
        now_s = perf_counter()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + LOOK_S
            self._look_for_open_statements(now_s)
        for history in self._histories:
            if is_in_transaction(history.connection()):
                is_own = history.thread == get_ident()
                if is_own or (not runs_statement(history) and is_abandoned(history.thread)):
                    self._leave_open(history, call, by_tasks=not is_own, returned=returned)
            # If a statement is running, another thread may be ending the transaction.
            elif history.opened_by and not runs_statement(history):
                self._end(history, was_committed=history.last_end() == "commit")

    def _note_given_up(self, *, returned: bool) -> None:
        """Count a call that returned, and committed nothing after a statement had failed with BUSY."""
        for kind, failed_s in self._busy.items():
            if returned and not any(history.has_committed_since(failed_s) for history in self._histories):
                self.failures.give_up(kind)
        self._busy.clear()

    def _note_repeats(self, call: str, *, returned: bool) -> None:
        """Record a call that repeated its transaction after SQLite had refused a write in it.

        A call that raised, or did not commit its last transaction, may have given up: it is not recorded.
        """
        refused, self._refused = self._refused, Counter[tuple[str, str]]()
        is_committed = returned and any(history.last_end() == "commit" for history in self._histories)
        for (at, committed), count in refused.items():
            calls, most = self._repeats.get((call, at, committed), (0, 0))
            is_known = calls or len(self._repeats) < MAX_KINDS
            if (committed or is_committed) and is_known:
                self._repeats[call, at, committed] = calls + 1, max(most, count)

    def _note_closed(self, call: str, *, returned: bool) -> None:
        """Record the connections that a call closed in a transaction, unless the call has failed."""
        for begun_s, transaction in self._closed:
            if returned and begun_s == self.costs.begun_s:
                _count(self._left_open, (call, transaction, 0, CLOSED))
                self._looks_up = True
        self._closed.clear()

    def _leave_open(self, history: History, call: str, *, by_tasks: bool, returned: bool) -> None:
        """Count a call that ended while a transaction was open on the connection with this history.

        `by_tasks` is whether asyncio tasks, which have ended, ran the transaction's statements.
        """
        if not history.opened_by:
            first = transaction_steps(history.steps)[:1]
            is_earlier = not self._left_open and bool(first) and first[0][3] < self.costs.begun_s
            history.opened_by = CONNECT if is_earlier else call
            history.open_calls, history.open_wrote = 0, False
            history.left_open = history.transaction()
        history.open_wrote = history.open_wrote or history.transaction().wrote
        history.open_calls += returned
        ended_by = TASKS if by_tasks else ""
        _count(self._left_open, (history.opened_by, history.left_open, history.failed_commit(), ended_by))
        self._looks_up = True

    def _look_for_open_statements(self, now_s: float) -> None:
        """Record the queries that stay open outside of a transaction, and so keep an old snapshot.

        `now_s` is a time of `perf_counter`, in seconds.
        """
        for history in self._histories:
            connection = history.connection()
            is_idle = is_open(connection) and not is_in_transaction(connection)
            is_ours = history.thread == get_ident()
            if not (is_idle and is_ours) or has_open_statement(connection, history.is_shared) != "yes":
                history.statement_open_s, history.open_queries = None, ()
                continue
            if history.statement_open_s is None:
                history.statement_open_s = now_s
            open_s = now_s - history.statement_open_s
            if open_s >= LONG_OPEN_S:
                if not history.open_queries:  # The search takes milliseconds, so it runs once per statement.
                    history.open_queries = tuple(reading_steps(connection))
                for sql, _, line, *_ in history.open_queries:
                    kind = short_sql(sql), self.line_text(line)
                    self._open_statements[kind] = max(open_s, self._open_statements.get(kind, 0.0))

    def _end(self, history: History, *, was_committed: bool) -> None:
        """Handle the end of a transaction that a call left open: count its calls if it was not committed."""
        self._commits_later = self._commits_later or was_committed
        if not was_committed:
            self._not_committed[history.opened_by] += history.open_calls
        history.opened_by = ""

    def records(self) -> list[PlainObservation]:
        """Return all observations of this process, each kind with its count. Call it when the work is done.

        A transaction that is still open counts as not committed if its COMMIT has failed. It also counts if
        MIN_NEVER calls have returned in it, and the process never committed a transaction that a call left
        open. Otherwise a later call might have committed it.
        """
        for history in self._histories:
            if history.opened_by and history.failed_commit():
                self._end(history, was_committed=False)
            elif history.opened_by and not history.is_uncommitted():
                self._end(history, was_committed=True)
        for history in self._histories:
            is_lost = history.open_wrote and history.open_calls >= MIN_NEVER and not self._commits_later
            if history.opened_by and is_lost:
                self._never_committed[history.opened_by] += history.open_calls
            history.opened_by = ""
            if not is_in_transaction(history.connection()):
                history.end_transaction()
        lost: Iterator[PlainObservation] = (
            (NOT_COMMITTED, call, count, "", {}) for call, count in self._not_committed.items()
        )
        never: Iterator[PlainObservation] = (
            (NOT_COMMITTED, call, count, "", {NEVER: "yes"}) for call, count in self._never_committed.items()
        )
        repeats: Iterator[PlainObservation] = (
            (REPEATED, call, count, "", {"at": at, "most": str(most), "committed": committed})
            for (call, at, committed), (count, most) in self._repeats.items()
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
            *self._no_effect_records(),
            *self.overlaps.records(),
            *self.holds.records(),
            *self._other_sqlite(),
            *self._unclosed_records(),
            *statements,
            *lost,
            *never,
            *repeats,
            *memory,
        ]

    def _other_sqlite(self) -> Iterator[PlainObservation]:
        """Yield the version of SQLite that ran, if only apsw was used, which has its own SQLite."""
        if self._libraries == {"apsw"}:
            yield OTHER_SQLITE, "apsw", 1, import_module("apsw").sqlite_lib_version(), {}

    def _unclosed_records(self) -> Iterator[PlainObservation]:
        """Yield each line from which MIN_UNCLOSED calls or more opened connections that are still open."""
        if len(self._histories) < MIN_UNCLOSED:
            return
        gc.collect()  # A connection in a cycle of objects is no leak.
        calls: dict[tuple[str, int, str], list[float]] = {}
        for history in self._histories:
            if is_open(history.connection()):
                kind = history.name, history.thread, self.line_text(history.opened_at)
                calls.setdefault(kind, []).append(history.opened_in_s)
        for (_, _, at), begun_s in calls.items():
            if len({*begun_s}) >= MIN_UNCLOSED:
                yield UNCLOSED, at, 1, "", {"open": str(len(begun_s))}

    def _open_records(self) -> Iterator[PlainObservation]:
        for (call, transaction, code, ended_by), count in self._left_open.items():
            ends = {kind: "yes" if kind == ended_by else "" for kind in (TASKS, CLOSED)}
            traits = {**transaction._asdict(), "failed_commit": str(code or ""), **ends}
            yield LEFT_OPEN, call, count, "", traits

    def _no_effect_records(self) -> Iterator[PlainObservation]:
        for (sql, at, transaction), count in self._no_effect.items():
            traits = {"at": at, "began": transaction.began, "began_at": transaction.at}
            yield NO_EFFECT, sql, count, "", traits

    def _split_records(self) -> Iterator[PlainObservation]:
        for (at, transaction), count in self._splits.items():
            yield SPLIT, at, count, "", transaction._asdict()


def _state_without_temporary(connection: Any, steps: Sequence[TimedStep], refused: set[int]) -> str:
    """Return the state of a transaction ("none", "read" or "written"), without temporary tables.

    Writes of temporary tables take no lock of the database file, but an INSERT ... SELECT may read the file.
    `refused` are the ids of the statements that got no lock.
    """
    temporary = [step for step in transaction_steps(steps) if writes_temporary(connection, step[0])]
    state, _, _ = transaction_of(steps, refused | {id(step) for step in temporary})
    reads = any(_SELECTS.search(step[0]) for step in temporary)
    return "read" if state == "none" and reads else state


def _slow_scan(connection: Any, steps: Sequence[TimedStep], sql: str, refused: set[int]) -> str:
    """Return a text on a write that reads a whole table and took SLOW_SCAN_S; empty for other writes.

    `steps` are earlier statements of the connection, in which the same write may have succeeded.
    """
    times_s = [step[4] - step[3] for step in steps if step[0] == sql and id(step) not in refused]
    if max(times_s, default=0.0) < SLOW_SCAN_S:
        return ""
    with suppress(Exception):  # An error of sqlite3 or apsw.
        plan = rows(connection, f"EXPLAIN QUERY PLAN {sql}", [""] * sql.count("?"))
        scans = [
            str(row[-1]) for row in plan if str(row[-1]).startswith("SCAN") and "INDEX" not in str(row[-1])
        ]
        if scans:
            return f"{scans[0]}, {max(times_s) * 1000:.0f} ms"
    return ""


def _lock_order(connection: Any, statements: Sequence[str]) -> str:
    """Return the files in the order in which a transaction locks them, separated by commas.

    `statements` are the transaction's statements, of which the last one failed. Empty if the order is
    unknown, or there is only one file.
    """
    files = attached_files(connection)
    if len(files) < 2:
        return ""
    if statement_kind(statements[-1]) == "begin":
        return ", ".join(files.values())
    schemas = [written_schema(connection, sql, [*files]) for sql in statements if is_write(sql)]
    order = [files[schema] for schema in dict.fromkeys(schemas) if schema]
    return ", ".join(order) if len(order) > 1 and schemas[-1] not in schemas[:-1] else ""


def _count(counts: Counter[K], kind: K) -> None:
    """Count an observation of this kind. After MAX_KINDS kinds, no further kind is counted."""
    if kind in counts or len(counts) < MAX_KINDS:
        counts[kind] += 1
