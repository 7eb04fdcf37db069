"""Records after each call of a user's function: open transactions, open queries, refused writes.

A transaction is left open if it is still open when the call returns. A `History` has the last statements of a
connection. A write is refused if it fails with SQLITE_BUSY or violates a constraint. The results go to the
parent process as observations: topic, count and facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from threading import get_ident
from time import perf_counter

from sqlstress.recording import (
    AFTER_BEGIN,
    AFTER_COMMIT,
    CAUGHT,
    CONNECT,
    LEFT_OPEN,
    NEVER,
    NOT_COMMITTED,
    OPEN_STATEMENT,
    REPEATED,
    ROLLED_BACK,
    PlainObservation,
)
from sqlstress.recording.callers import is_abandoned
from sqlstress.recording.connections import has_open_statement, is_in_transaction, is_open, reading_steps
from sqlstress.recording.failures import (
    MAX_KINDS,
    Caller,
    FailureCounter,
    Kind,
    TimedStep,
    count_kind,
    is_blob,
    is_write,
    short_sql,
    statement_kind,
    transaction_steps,
    written_name,
)
from sqlstress.recording.history import History, Transaction
from sqlstress.recording.recorded_classes import runs_statement
from sqlstress.sqlite_codes import BUSY

MIN_NEVER = 100
"""Minimum number of calls that returned during an open transaction, to report it as never committed."""
LOOK_S = 0.05
"""Minimum time between two searches for queries with unfetched rows, in seconds."""
LONG_OPEN_S = 0.2
"""Minimum time for which a query has unfetched rows, in seconds, to record the query as open."""

TASKS, CLOSED = "tasks", "closed"
"""Facts in observations of transactions that a call left open (LEFT_OPEN).

TASKS: asyncio tasks, which have ended, ran the transaction. CLOSED: the call closed the connection.
"""


class OpenTransactions:
    """Recorder of transactions that are open when a call returns or closes the connection."""

    def __init__(self) -> None:
        self._left_open = Counter[tuple[str, Transaction, int, str]]()
        """Number of calls that left a transaction open, or closed the connection in a transaction.

        A key has the function, the transaction, the result code of a failed COMMIT (0 if none failed), and
        TASKS, CLOSED or "".
        """
        self._closed: list[tuple[float, Transaction]] = []
        """Transactions in which a connection was closed, each with the start time of the call."""
        self._not_committed = Counter[str]()
        """Number of calls that returned in transactions left open and then rolled back, by function."""
        self._never_committed = Counter[str]()
        """Number of calls that returned in transactions left open until the end of the work, by function."""
        self._commits_later = False
        """Whether a call committed a transaction that an earlier call left open, as in code with batches."""

    def add_closed(self, transaction: Transaction, begun_s: float) -> None:
        """Record that a call, which began at `begun_s`, closed a connection in a transaction."""
        self._closed.append((begun_s, transaction))

    def end_call(self, call: str, histories: Sequence[History], begun_s: float, *, returned: bool) -> bool:
        """Record this thread's open transactions after a call of the function `call`.

        Return whether the call left a transaction open, or closed a connection in a transaction. `begun_s` is
        the call's start time. `returned` is False if the call raised an exception. If a transaction stays
        open during several calls, each of these calls counts for the function of the first call.
        """
        is_seen = bool(self._closed) and self._note_closed(call, begun_s, returned=returned)
        for history in histories:
            if is_in_transaction(history.connection()):
                is_own = history.thread == get_ident()
                if is_own or (not runs_statement(history) and is_abandoned(history.thread)):
                    self._leave_open(history, call, begun_s, by_tasks=not is_own, returned=returned)
                    is_seen = True
            # If a statement is running, another thread may be ending the transaction.
            elif history.opened_by and not runs_statement(history):
                self._end_left_open(history, was_committed=history.last_end() == "commit")
        return is_seen

    def _note_closed(self, call: str, begun_s: float, *, returned: bool) -> bool:
        closed = [transaction for closed_s, transaction in self._closed if returned and closed_s == begun_s]
        self._closed.clear()
        for transaction in closed:
            count_kind(self._left_open, (call, transaction, 0, CLOSED))
        return bool(closed)

    def _leave_open(
        self, history: History, call: str, begun_s: float, *, by_tasks: bool, returned: bool
    ) -> None:
        """Count a call that left a transaction open. `by_tasks` is whether ended asyncio tasks ran it."""
        if not history.opened_by:
            first = transaction_steps(history.steps)[:1]
            is_earlier = not self._left_open and bool(first) and first[0][3] < begun_s
            history.opened_by = CONNECT if is_earlier else call
            history.open_calls, history.open_wrote = 0, False
            history.left_open = history.transaction()
        history.open_wrote = history.open_wrote or history.transaction().wrote
        history.open_calls += returned
        ended_by = TASKS if by_tasks else ""
        count_kind(self._left_open, (history.opened_by, history.left_open, history.failed_commit(), ended_by))

    def _end_left_open(self, history: History, *, was_committed: bool) -> None:
        self._commits_later = self._commits_later or was_committed
        if not was_committed:
            self._not_committed[history.opened_by] += history.open_calls
        history.opened_by = ""

    def end_work(self, histories: Sequence[History]) -> None:
        """Record the transactions that are still open at the end of the worker's work.

        An open transaction counts as rolled back if its COMMIT failed. A transaction counts as never
        committed if it has written, and at least MIN_NEVER calls returned during it. But if any call of this
        process committed a transaction of an earlier call, none counts: the code may commit in batches.
        """
        for history in histories:
            if history.opened_by and history.failed_commit():
                self._end_left_open(history, was_committed=False)
            elif history.opened_by and not history.is_uncommitted():
                self._end_left_open(history, was_committed=True)
        for history in histories:
            is_lost = history.open_wrote and history.open_calls >= MIN_NEVER and not self._commits_later
            if history.opened_by and is_lost:
                self._never_committed[history.opened_by] += history.open_calls
            history.opened_by = ""

    def left_open(self) -> Iterator[PlainObservation]:
        """Yield the number of calls that left a transaction open, by function and kind of transaction."""
        for (call, transaction, code, ended_by), count in self._left_open.items():
            ends = {kind: "yes" if kind == ended_by else "" for kind in (TASKS, CLOSED)}
            traits = {**transaction._asdict(), "failed_commit": str(code or ""), **ends}
            yield LEFT_OPEN, call, count, "", traits

    def not_committed(self) -> Iterator[PlainObservation]:
        """Yield, by function, the number of calls whose transactions were never committed."""
        for call, count in self._not_committed.items():
            yield NOT_COMMITTED, call, count, "", {}
        for call, count in self._never_committed.items():
            yield NOT_COMMITTED, call, count, "", {NEVER: "yes"}


class OpenQueries:
    """Recorder of queries with unfetched rows, and of blob handles, that stay open outside of a transaction.

    Such a query or blob handle keeps a snapshot, so that a checkpoint cannot complete.
    """

    def __init__(self) -> None:
        self._open_statements: dict[tuple[str, str], float] = {}
        """Longest time for which a query stayed open, in seconds, by SQL text and line."""

    def look(self, histories: Sequence[History], line_text: Callable[[Caller | None], str]) -> None:
        """Record this thread's queries with unfetched rows. Call this method every LOOK_S seconds.

        `line_text` converts a position in code to text, such as "bank.py:27".
        """
        now_s = perf_counter()
        for history in histories:
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
                    history.open_queries = tuple(history.open_blobs() or reading_steps(connection))
                for sql, _, line, *_ in history.open_queries:
                    kind = short_sql(sql), line_text(line)
                    self._open_statements[kind] = max(open_s, self._open_statements.get(kind, 0.0))

    def records(self) -> Iterator[PlainObservation]:
        """Yield an observation for each query that stayed open, with the longest time."""
        for (sql, at), seconds in self._open_statements.items():
            blob = {"blob": statement_kind(sql)} if is_blob(sql) else {}
            yield OPEN_STATEMENT, sql, 1, "", {"at": at, "seconds": f"{seconds:.3g}", **blob}


class RefusedWrites:
    """Recorder of writes that SQLite refused, and of calls that gave up or did work twice after that."""

    def __init__(self, failures: FailureCounter) -> None:
        """`failures` counts calls that gave up, and calls that committed later, for each kind of failure."""
        self._failures = failures
        self._busy: dict[Kind, float] = {}
        """Time of the last SQLITE_BUSY of each kind in the current call, by `perf_counter`.

        The failed statements are BEGIN, COMMIT, reads and writes.
        """
        self._refused = Counter[tuple[str, str, str]]()
        """Number of refused writes of the current call after which the call may do work twice.

        A key has the line of the refused statement, that of an earlier write that stays committed (with
        AFTER_BEGIN: its SQL), and AFTER_COMMIT, AFTER_BEGIN, ROLLED_BACK or CAUGHT; the last two may be "".
        """
        self._unfinished: list[tuple[History, TimedStep, str, str]] = []
        """Refused writes of the current call in transactions that had already written.

        An item has the connection's history, the refused statement, its line, and the line of the earlier
        write.
        """
        self._begins: list[tuple[History, TimedStep, str]] = []
        """BEGINs of the current call that SQLite refused with SQLITE_BUSY: history, statement and line."""
        self._open_commits: list[tuple[History, TimedStep, str]] = []
        """COMMITs of the current call that SQLite refused with SQLITE_BUSY: history, statement and line."""
        self._repeats: dict[tuple[str, str, str, str], tuple[int, int]] = {}
        """Number of calls, and maximum number of refused writes in a call, by function and `_refused` key."""

    def add(self, history: History, kind: Kind, committed: str, uncommitted: str) -> None:
        """Record that SQLite refused the last statement of a connection, because of a lock or a constraint.

        `committed` is the line of an earlier write of the call that is already committed. `uncommitted` is
        the line of an earlier write in the transaction of the refused statement. Each is "" if there is no
        such write.
        """
        sql, was_open, *_ = history.steps[-1]
        is_busy = kind.code & 0xFF == BUSY
        if is_busy and statement_kind(sql) in ("begin", "read", "write", "commit"):
            self._busy[kind] = perf_counter()
        if is_busy and statement_kind(sql) == "begin":
            self._begins.append((history, history.steps[-1], kind.at))
        if is_busy and statement_kind(sql) == "commit":
            self._open_commits.append((history, history.steps[-1], kind.at))
        if not is_write(sql):
            return
        if committed or (was_open and is_busy and not history.is_repeated()):
            self._refused[kind.at, committed, ""] += 1
        if uncommitted:
            self._unfinished.append((history, history.steps[-1], kind.at, uncommitted))

    def end_call(self, call: str, histories: Sequence[History], *, returned: bool) -> None:
        """Decide, at the end of a call of the function `call`, whether the call gave up or did work twice.

        `returned` is False if the call raised an exception.
        """
        for history, step, at, write in self._unfinished:
            if history.end_after(step) == "commit":
                # A later write of the same table, such as UPDATE after a refused INSERT, replaces the write.
                if written_name(step[0]) not in map(written_name, history.writes_after(step)):
                    self._refused[at, write, CAUGHT] += 1
            elif returned and history.lost_writes(step):
                self._refused[at, "", ROLLED_BACK] += 1
        self._unfinished.clear()
        for history, step, at in self._open_commits:
            if history.writes_after(step):
                self._refused[at, "", AFTER_COMMIT] += 1
        self._open_commits.clear()
        for history, step, at in self._begins:
            if write := history.write_repeated_after(step):
                self._refused[at, short_sql(write), AFTER_BEGIN] += 1
        self._begins.clear()
        if self._busy:
            self._note_busy(call, histories, returned=returned)
        if self._refused:
            self._note_repeats(call, histories, returned=returned)

    def _note_busy(self, call: str, histories: Sequence[History], *, returned: bool) -> None:
        for kind, failed_s in self._busy.items() if returned else ():
            if statement_kind(kind.sql) == "read":
                if any(history.has_run_since(kind.sql, failed_s) for history in histories):
                    self._failures.end_call(call, kind, is_repeated=True)
                continue  # A read that is given up loses no work.
            is_repeated = any(history.has_committed_since(failed_s) for history in histories)
            self._failures.end_call(call, kind, is_repeated=is_repeated)
        self._busy.clear()

    def _note_repeats(self, call: str, histories: Sequence[History], *, returned: bool) -> None:
        """Record a call that may have done work twice: SQLite refused a write, and the call went on.

        If no earlier write of the call is committed, the call must have returned and committed at the end.
        Otherwise it may have given up.
        """
        refused, self._refused = self._refused, Counter[tuple[str, str, str]]()
        is_committed = returned and any(history.last_end() == "commit" for history in histories)
        for (at, committed, after), count in refused.items():
            calls, most = self._repeats.get((call, at, committed, after), (0, 0))
            is_known = calls or len(self._repeats) < MAX_KINDS
            if (committed or after or is_committed) and is_known:
                self._repeats[call, at, committed, after] = calls + 1, max(most, count)

    def records(self) -> Iterator[PlainObservation]:
        """Yield each refused write after which calls may have done work twice, by function and line."""
        for (call, at, committed, after), (count, most) in self._repeats.items():
            traits = {"at": at, "most": str(most), "committed": committed, "after": after}
            yield REPEATED, call, count, "", traits
