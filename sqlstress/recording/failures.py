"""Counts of failed statements by kind (result code, SQL and line), and facts found in SQL text."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Sequence
from statistics import median
from time import perf_counter_ns
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlstress.recording import FAILED_STATEMENT, THIS_THREAD, PlainObservation
from sqlstress.recording.messages import group_key
from sqlstress.sqlite_codes import name

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.report.case import Settings
    from sqlstress.targets.views import Refusal

MAX_KINDS = 20
"""Maximum number of kinds of failures. Further kinds are counted by result code only."""
MAX_EXAMINED = 50
"""Maximum number of failures per kind whose facts are read. Later failures are only counted."""
MAX_WAITS = 500
"""Maximum number of durations per kind of failure that are kept, for the median."""
MAX_HISTORY = 50
"""Maximum number of a connection's last statements that are kept."""
MAX_SQL = 100
"""Maximum length of the kept text of a statement, in characters."""
IMPLICIT_BEGIN = "implicit BEGIN"
"""Text for the beginning of a transaction that began without BEGIN or SAVEPOINT."""
READ_ONLY = " (read-only)"
"""End of the text for the opening of a blob handle that cannot write."""
_BLOBS = ("BLOB", "BLOBOPEN")
"""First words, in capitals, of the texts for the opening of a blob handle, such as "blob_open t.data"."""
_READS = ("SELECT", "VALUES", "WITH", "EXPLAIN")
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER", "REINDEX", "VACUUM")

LEAD = r"(?:\s|/\*.*?\*/|--[^\n]*\n)*"
"""Pattern of spaces and comments before the first word of a statement.

A text that is only a comment has no first word. SQLite's trace reports a trigger's statements as such
comments.
"""
_WORDS = re.compile(rf"{LEAD}([A-Za-z]+)(?:\s+([A-Za-z]+))?", re.DOTALL)

_NAME = r"(\w+|\"[^\"]+\"|`[^`]+`|\[[^\]]+\])"
_WRITTEN = re.compile(rf"\b(?:INTO|FROM|UPDATE(?:\s+OR\s+\w+)?)\s+(?:{_NAME}\s*\.\s*)?{_NAME}", re.IGNORECASE)
"""Pattern of the table in an INSERT, DELETE or UPDATE."""

Line = tuple[str, int]
"""File and line number."""
Instruction = tuple[CodeType, int]
"""Code object of a function, and the offset of an instruction in the bytecode."""
Caller = Line | Instruction
"""Position in Python code that calls sqlite3 or apsw."""
UNKNOWN_CALLER: Line = ("", 0)
Step = tuple[str, bool, Caller | None]
"""Statement of a connection: SQL, whether a transaction was already open, and calling position.

The position is None if a transaction was already open.
"""
TimedStep = tuple[str, bool, Caller | None, float, float]
"""Statement as (SQL, whether a transaction was open, calling position, start, end).

Start and end are times of `perf_counter`, in seconds.
"""
K = TypeVar("K")
_S = TypeVar("_S", bound=Step | TimedStep)


class Kind(NamedTuple):
    """Facts by which failures of statements are grouped."""

    code: int
    """Extended result code of SQLite."""
    sql: str
    """SQL of the statement, shortened, with numbers replaced by N."""
    at: str
    """File and line of the user's code, such as "bank.py:27"; empty if unknown."""


class FailureFacts(NamedTuple):
    """Facts read after the failure of a statement, as text; each is "" if unknown."""

    timeout_ms: str
    """Busy timeout of the connection, in ms."""
    journal: str
    """Journal mode, such as "wal"."""
    statement: str
    """Kind of the statement, such as "begin" or "write"."""
    transaction: str
    """State of the transaction before the statement: "none", "read" or "written"."""
    began: str
    """First words of the statement that began the transaction, such as "BEGIN IMMEDIATE"."""
    open_cursor: str
    """Whether the connection had a query with unfetched rows, or a blob handle: "yes" or "no"."""
    shared_cache: str
    """Whether the connection uses a shared cache: "yes" or "no"."""
    holder: str
    """Owner of an idle connection that held the write lock: THIS_THREAD or "this process"; or empty."""
    held_since: str = ""
    """Statement and line that began the transaction of `holder`; empty if `holder` is empty."""
    reader: str = ""
    """Query with unfetched rows on another connection of this process, for which COMMIT waited; or empty."""
    scan: str = ""
    """Table scan and duration of an earlier, slow run of the statement, such as "SCAN t, 20 ms"; or empty."""
    locking_mode: str = ""
    """Locking mode of the connection: "normal" or "exclusive"."""
    repeated: str = ""
    """"yes" if the statement had already failed in this transaction because of a lock; else empty."""
    lock_order: str = ""
    """Files that the transaction locked, in order, then the awaited file, separated by commas.

    Empty if the connection has a single file, or the transaction waited for its first file.
    """
    opened_by: str = ""
    """Function whose call left the transaction open; empty if the current call began the transaction."""
    earlier_query: str = ""
    """Query of the call that read the written table outside of a transaction, with its line; or empty.

    Only searched for if the write failed because its key already existed.
    """
    open_blob: str = ""
    """Opening of a blob handle of the connection that was still open, with its line; or empty."""
    rolled_back: str = ""
    """"yes" if a violated constraint ended the transaction; or empty."""
    sharers: str = ""
    """"yes" if several threads have used the connection, or several asyncio tasks are running; or empty."""
    busy_handler: str = ""
    """Line that set a busy handler, which has replaced the busy timeout; or empty."""
    library: str = ""
    """Library that ran the statement for the user's code: "django", "peewee", "sqlalchemy", or ""."""


class Occurrences:
    """Counter of the failures of one kind, with their durations and facts."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.count = 0
        self.waits_s: deque[float] = deque(maxlen=MAX_WAITS)
        self.longest_s = 0.0
        self.given_up = Counter[str]()
        """Number of calls that returned after the failure without a later commit, by function."""
        self.repeated = 0
        """Number of calls that returned after the failure with a later commit."""
        self.examined: dict[FailureFacts, int] = {}

    def add(self, waited_s: float) -> None:
        """Count a failure; `waited_s` is the duration of the statement in seconds."""
        self.count += 1
        self.waits_s.append(waited_s)
        self.longest_s = max(self.longest_s, waited_s)

    def traits(self, kind: Kind) -> dict[str, str]:
        """Return the most frequent facts of the failures as text, by name.

        The result also has `waited_ms` and `longest_ms` (median and maximum duration), and numbers of calls.
        """
        commonest = max(self.examined, key=lambda facts: self.examined[facts])
        # These facts count even if only one failure has them. While two transactions wait for each other,
        # most failures are at the first statement of other transactions, and lack these facts.
        rare = {
            name: next(filter(None, (getattr(facts, name) for facts in self.examined)), "")
            for name in ("lock_order", "repeated", "reader", "scan")
        }
        for facts in self.examined:
            if facts.holder == THIS_THREAD:
                rare |= {"holder": THIS_THREAD, "held_since": facts.held_since}
        return {
            "code": str(kind.code),
            "at": kind.at,
            "waited_ms": f"{median(self.waits_s) * 1000:.3g}",
            "longest_ms": f"{self.longest_s * 1000:.3g}",
            "given_up": str(self.given_up.total()),
            "given_up_by": ", ".join(call for call, _ in self.given_up.most_common()),
            "repeated_calls": str(self.repeated),
            **commonest._replace(**rare)._asdict(),
        }


class FailureCounter:
    """Counter of failed statements of this process, by kind."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, Occurrences] = {}
        self.window: Window | None = None
        """Measured time in which failures count; None counts all failures, as while connecting.

        A later failure counts if its statement began in this time: it may have waited for the busy timeout.
        """

    def add(self, kind: Kind, message: str, waited_s: float, examine: Callable[[], FailureFacts]) -> None:
        """Count a failed statement that took `waited_s` seconds, if it ran in the measured time.

        `examine`, called for the first failures of a kind, returns the facts.
        """
        if not overlaps(self.window, waited_s):
            return
        if kind not in self._kinds and len(self._kinds) >= MAX_KINDS:
            kind = Kind(kind.code, "", "")
        occurrences = self._kinds.setdefault(kind, Occurrences(message))
        occurrences.add(waited_s)
        if sum(occurrences.examined.values()) < MAX_EXAMINED:
            facts = examine()
            occurrences.examined[facts] = occurrences.examined.get(facts, 0) + 1

    def end_call(self, call: str, kind: Kind, *, is_repeated: bool) -> None:
        """Count a call of the function `call` that returned after a failure of this kind.

        `is_repeated` is whether the call committed after the failure.
        """
        if occurrences := self._kinds.get(kind):
            occurrences.repeated += is_repeated
            if not is_repeated:
                occurrences.given_up[call] += 1

    def records(self) -> list[PlainObservation]:
        """Return each kind of failure with its count, first error message and most frequent facts."""
        return [
            (FAILED_STATEMENT, kind.sql, occurrences.count, occurrences.message, occurrences.traits(kind))
            for kind, occurrences in self._kinds.items()
        ]


def count_kind(counts: Counter[K], kind: K) -> None:
    """Count an observation of this kind. After MAX_KINDS kinds, ignore new kinds."""
    if kind in counts or len(counts) < MAX_KINDS:
        counts[kind] += 1


def is_within(window: Window | None) -> bool:
    """Return whether the current time is in the measured time `window`; True for None."""
    return window is None or window.opens_ns <= perf_counter_ns() < window.closes_ns


def overlaps(window: Window | None, waited_s: float) -> bool:
    """Return whether the last `waited_s` seconds overlap the measured time `window`; True for None."""
    now_ns = perf_counter_ns()
    return window is None or (window.opens_ns <= now_ns and now_ns - waited_s * 1e9 < window.closes_ns)


def refusal_records(refusals: Iterable[Refusal], settings: Settings) -> list[PlainObservation]:
    """Return observations of failed statements that sqlstress itself ran, from the user's SQL script.

    All facts follow from the SQL and the settings, so nothing is read from connections.
    """
    return [_refusal_record(refusal, settings) for refusal in refusals]


def _refusal_record(refusal: Refusal, settings: Settings) -> PlainObservation:
    steps: list[Step] = [(sql, number > 0, None) for number, sql in enumerate(refusal.history)]
    state, began, _ = transaction_of(steps) if steps else ("none", "", None)
    occurrences = Occurrences("")
    occurrences.count, occurrences.longest_s = refusal.times, refusal.longest_s
    occurrences.waits_s.extend(refusal.waits_s)
    facts = FailureFacts(
        timeout_ms=str(settings.busy_timeout_ms),
        journal=settings.journal_mode,
        statement=statement_kind(refusal.sql),
        transaction=state,
        began=began,
        open_cursor="no",
        shared_cache="no",
        holder="",
    )
    occurrences.examined[facts] = 1
    traits = occurrences.traits(Kind(refusal.code, refusal.sql, ""))
    return FAILED_STATEMENT, refusal.sql, refusal.times, name(refusal.code), traits


# Facts that follow from the text of statements.


def words_of(sql: str) -> tuple[str, str]:
    """Return the first two words of a statement in capitals; ("", "") for a trigger's statement."""
    words = _WORDS.match(sql)
    return (words[1].upper(), (words[2] or "").upper()) if words else ("", "")


def short_sql(sql: str) -> str:
    """Return a statement in one line of at most MAX_SQL characters, with numbers replaced by N."""
    return group_key(" ".join(sql.split()))[:MAX_SQL]


def statement_kind(sql: str) -> str:
    """Return a statement's kind: begin, commit, read, write, journal_mode, checkpoint; "" for others."""
    word, _ = words_of(sql)
    if word == "PRAGMA":
        return next((name for name in ("journal_mode", "checkpoint") if name in sql.lower()), "")
    if word in ("COMMIT", "END"):
        return "commit"
    if word in ("BEGIN", "SAVEPOINT"):
        return "begin"
    if word in _WRITES:
        return "write"
    if word in _BLOBS:
        return "read" if sql.endswith(READ_ONLY) else "write"
    return "read" if word in _READS else ""


def is_blob(sql: str) -> bool:
    """Return whether the text of a statement means the opening of a blob handle."""
    return words_of(sql)[0] in _BLOBS


def is_write(sql: str) -> bool:
    return statement_kind(sql) == "write"


def written_name(sql: str) -> tuple[str, ...]:
    """Return (table,) or (schema, table) for the table that a statement writes; () if unknown."""
    found = _WRITTEN.search(sql)
    return tuple(name.strip("\"`[]'") for name in found.groups() if name) if found else ()


def transaction_steps(steps: Sequence[_S]) -> list[_S]:
    """Return the statements of the last transaction in `steps`, which are in order."""
    first = next((number for number in range(len(steps) - 1, -1, -1) if not steps[number][1]), 0)
    return [*steps][first:]


def takes_write_lock(sql: str) -> bool:
    """Return whether a statement takes the write lock, unless its transaction already has the lock."""
    kind = statement_kind(sql)
    return kind == "write" or (kind == "begin" and words_of(sql)[1] in ("IMMEDIATE", "EXCLUSIVE"))


def is_in_memory(name: str) -> bool:
    """Return whether a database name given to `connect` means a database in memory."""
    return name == ":memory:" or (name.startswith("file:") and (":memory:" in name or "mode=memory" in name))


def is_checkpoint(sql: str) -> bool:
    """Return whether a statement may run a checkpoint."""
    return "wal_checkpoint" in sql or "WAL_CHECKPOINT" in sql


def is_busy(rows: Any) -> bool:
    """Return whether the result rows of PRAGMA wal_checkpoint report a busy checkpoint."""
    return bool(rows) and rows[0][0] == 1


def transaction_of(
    steps: Iterable[Step | TimedStep], refused: Container[int] = ()
) -> tuple[str, str, Caller | None]:
    """Return state, first words and calling position of the last transaction in `steps`.

    The state is "none", "read" or "written"; "" if unknown. The words are such as "BEGIN IMMEDIATE". The
    position is that of the first statement. `refused` has the `id()` of each step that got no lock.
    """
    state, began, line = "", "", None
    words: tuple[str, ...]
    for step in steps:
        sql, was_open, at = step[:3]
        kind, words = statement_kind(sql), words_of(sql)
        if not was_open:
            state, line = "none", at
            words = words[:1] if words[0] == "SAVEPOINT" else words
            began = " ".join(filter(None, words)) if kind == "begin" else IMPLICIT_BEGIN
        if id(step) in refused:
            continue
        if takes_write_lock(sql):
            state = "written"
        elif kind == "read" and state != "written":
            state = "read"
    return state, began, line
