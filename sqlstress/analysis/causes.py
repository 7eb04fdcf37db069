"""Causes and cures of SQLite's errors, by the result code and the facts of the failed statement.

The result code alone rarely shows the cause: the waiting time, the busy timeout and the state of the
transaction are needed, too.

Sources: https://www.sqlite.org/rescode.html, https://www.sqlite.org/lang_transaction.html,
https://www.sqlite.org/wal.html, https://www.sqlite.org/howtocorrupt.html, and examples/database_is_locked.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple

from sqlstress.sqlite_codes import BUSY_SNAPSHOT, LOCKED_SHAREDCACHE, NAMES, SIGBUS, TRANSACTION_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of a failed statement; None if unknown. In a rule, None matches every value."""

    waited: Literal["at once", "the timeout"] | None = None
    """Time until the statement failed: "at once" is about 0, "the timeout" the whole busy timeout."""
    timeout: Literal["none", "short", "set"] | None = None
    """Busy timeout: "none" (0), "short" (below 100 ms, and waited for in full) or "set"."""
    statement: Literal["open", "journal_mode", "begin", "read", "write", "commit", "checkpoint"] | None = None
    """Kind of the statement."""
    transaction: Literal["none", "read", "written"] | None = None
    """Earlier statements of the transaction: "none", only reads ("read"), or a write ("written")."""
    journal: Literal["wal", "rollback"] | None = None
    """Kind of the journal: WAL or rollback journal."""
    open_cursor: bool | None = None
    """Whether another statement of the connection was open (neither finished nor reset)."""
    open_blob: bool | None = None
    """Whether a blob handle of the connection was open."""
    shared_cache: bool | None = None
    """Whether connections of the process share a cache."""
    exclusive: bool | None = None
    """Whether all connections use PRAGMA locking_mode = EXCLUSIVE."""
    repeated: bool | None = None
    """Whether this statement of the transaction had already failed because of a lock."""
    holder: Literal["this process", "another process"] | None = None
    """Process that held the lock for which the statement waited."""
    other_file: bool | None = None
    """Whether the transaction held the lock of one file while it waited for another file."""
    busy_handler: bool | None = None
    """Whether the program has set a busy handler, which replaces the busy timeout."""
    left_open: bool | None = None
    """Whether an earlier call of the user's code began the transaction and returned without ending it."""
    rolled_back: bool | None = None
    """Whether the failure ended the transaction, so that the earlier writes of the transaction are undone."""
    shared_connection: bool | None = None
    """Whether several threads have used the connection, or several asyncio tasks were running."""


class Rule(NamedTuple):
    """Cause of an error: the result codes and facts that identify the cause, and the cure."""

    name: str
    """Identifier of the cause, such as "read-before-write"."""
    codes: tuple[int, ...]
    """Result codes. A primary code, such as 5, includes extended codes (517) that no rule lists."""
    when: Facts
    """Facts that distinguish the cause from other causes of the result codes."""
    cause: str
    """Text on the cause, in one or more sentences."""
    cure: str
    """Text on the cure, in one or more sentences."""
    repetition: str = ""
    """Advice to run the transaction again after the failure; left out if the program already does so."""

    @property
    def advice(self) -> str:
        """Cure, followed by the advice to run the transaction again."""
        return f"{self.cure} {self.repetition}".rstrip()


RULES: tuple[Rule, ...] = (
    # Rules of the result codes 5, SQLITE_BUSY, and 517, SQLITE_BUSY_SNAPSHOT.
    Rule(
        "wal-switch",
        (5,),
        Facts(statement="journal_mode"),
        "Switching the journal mode needs the file alone, and other connections were using it.",
        "Switch once, in setup, before other connections open the file: it keeps the mode. Set the busy"
        " timeout before the switch. WAL mode cannot be left while others have the file open.",
    ),
    Rule(
        "checkpoint-race",
        (5,),
        Facts(waited="at once", statement="checkpoint"),
        "Another checkpoint was running: no busy timeout applies to that. Without a timeout it can also be a"
        " reader or a writer.",
        "Let one connection make the checkpoints, with a short timeout.",
    ),
    Rule(
        "busy-checkpoint",
        (5,),
        Facts(waited="the timeout", statement="checkpoint"),
        "A reader kept its snapshot, or a writer its lock, for the whole busy timeout.",
        "End long readers; let one connection make the checkpoints, with a short timeout.",
    ),
    Rule(
        "open-blob",
        (5, 517),
        Facts(waited="at once", open_blob=True),
        "A blob handle of the same connection was still open and kept its snapshot or the write lock.",
        "Close it first, best by `with`.",
    ),
    Rule(
        "commit-behind-reader",
        (5,),
        Facts(statement="commit", journal="rollback"),
        "COMMIT waited for a reader, and the transaction stays open.",
        "Repeat COMMIT, or ROLLBACK: else nothing that follows is durable. In WAL mode readers do not block"
        " COMMIT.",
    ),
    Rule(
        "shared-cache-timeout",
        (5, 517),
        Facts(waited="at once", shared_cache=True, timeout="set"),
        "Another connection of this process shares the cache and was reading. A shared cache has a single"
        " snapshot, so the write failed at once, like a write after a read in the same transaction.",
        "Leave out cache=shared and enable_shared_cache.",
    ),
    Rule(
        "open-cursor",
        (5, 517),
        Facts(waited="at once", open_cursor=True),
        "A SELECT of the same connection was still open and kept its snapshot.",
        "Fetch all rows or close the cursor before writing. BEGIN IMMEDIATE just before the write does not"
        " help, nor does a timeout.",
    ),
    Rule(
        "left-open-reads",
        (5, 517),
        Facts(waited="at once", transaction="read", left_open=True),
        "An earlier call had read and left its transaction open, so this write used an old snapshot while"
        " another connection wrote.",
        "End every transaction in its call, also after queries: COMMIT, ROLLBACK, or close the ORM's session."
        " No timeout helps.",
    ),
    Rule(
        "repeated-statement",
        (5, 517),
        Facts(waited="at once", transaction="read", journal="wal", repeated=True),
        "The program repeated only the statement, in a transaction that had read: its snapshot is stale once"
        " the other connection has committed, and then no repetition can succeed.",
        "ROLLBACK and repeat from BEGIN; better begin with BEGIN IMMEDIATE.",
    ),
    Rule(
        "busy-handler",
        (5,),
        Facts(waited="at once", timeout="none", busy_handler=True),
        "A busy handler had replaced the busy timeout, and gave up while another connection held the lock.",
        "Set a busy timeout of some seconds and no handler, or let the handler sleep and try for seconds.",
    ),
    Rule(
        "no-timeout",
        (5,),
        Facts(waited="at once", timeout="none"),
        "The busy timeout was 0 when another connection held the lock.",
        "Set a busy timeout of some seconds on every connection, before anything else.",
    ),
    Rule(
        "read-before-write",
        (5,),
        Facts(waited="at once", timeout="set", transaction="read"),
        "The transaction had read before its first write, and another connection was writing.",
        "Begin with BEGIN IMMEDIATE.",
        "Repeat the transaction from BEGIN, never the statement alone.",
    ),
    Rule(
        "exclusive-mode",
        (5,),
        Facts(waited="the timeout", exclusive=True),
        "PRAGMA locking_mode=EXCLUSIVE is set: the first connection never releases its locks.",
        "Remove that PRAGMA; no busy timeout helps.",
    ),
    Rule(
        "lock-order",
        (5,),
        Facts(waited="the timeout", other_file=True),
        "The transaction held the lock of one file and waited for another, while a transaction with the"
        " opposite order, or a long one, held that.",
        "Lock files in the same order everywhere; BEGIN IMMEDIATE locks attached files in the order of"
        " ATTACH. Or keep the tables in one file.",
    ),
    Rule(
        "waits-for-itself",
        (5,),
        Facts(waited="the timeout", holder="this process"),
        "An idle connection of the same process held the lock: the process waited for itself.",
        "Write with that connection, or commit its transaction first; let threads and tasks queue before they"
        " begin to write. A longer timeout only waits longer.",
    ),
    Rule(
        "short-timeout",
        (5,),
        Facts(waited="the timeout", timeout="short"),
        "The busy timeout was below 100 ms, and other connections held the lock for so long.",
        "Use several seconds: 5 for timeout= of Python's connect, 5000 for PRAGMA busy_timeout, which"
        " counts milliseconds, as set_busy_timeout does.",
    ),
    Rule(
        "held-longer",
        (5,),
        Facts(waited="the timeout"),
        "For the whole busy timeout, other connections held the lock at every try: in one long transaction,"
        " or in many short ones.",
        "Find the holder (sqlstress watch FILE) and make its transactions shorter, or use fewer writers.",
    ),
    Rule(
        "stale-snapshot",
        (517,),
        Facts(open_cursor=False),
        "The transaction had read before its first write, and another connection has committed since.",
        "Begin with BEGIN IMMEDIATE.",
        "Repeat the transaction from BEGIN; no timeout helps.",
    ),
    Rule(
        "recovery",
        (261,),
        Facts(),
        "Another connection, the first to open the file, was recovering the WAL.",
        "Set a busy timeout: recovery takes a few seconds at most.",
    ),
    Rule(
        "blocking-lock",
        (773,),
        Facts(),
        "A lock of the operating system was not free within the timeout (SQLITE_ENABLE_SETLK_TIMEOUT).",
        "Find the holder (sqlstress watch FILE) and make its transactions shorter.",
    ),
    # Rules of the result code 6, SQLITE_LOCKED.
    Rule(
        "checkpoint-in-transaction",
        (6,),
        Facts(statement="checkpoint"),
        "The same connection had an open transaction or SELECT.",
        "COMMIT and fetch all rows first.",
    ),
    Rule(
        "shared-cache",
        (6, 262),
        Facts(shared_cache=True),
        "Another connection of this process shares the cache and has the table locked.",
        "Leave out cache=shared and enable_shared_cache: no busy timeout applies between such connections.",
    ),
    Rule(
        "own-statement",
        (6,),
        Facts(open_cursor=True),
        "The statement changes what an open SELECT of the same connection is reading, such as DROP TABLE.",
        "Fetch all rows or close the cursor first.",
    ),
    Rule(
        "virtual-table",
        (518,),
        Facts(),
        "A virtual table, such as FTS, was being written by the same connection.",
        "Finish the statement that uses the virtual table first.",
    ),
    # Rules of the result codes 8, SQLITE_READONLY, and 14, SQLITE_CANTOPEN.
    Rule(
        "moved-database",
        (1032,),
        Facts(),
        "The database file was deleted, moved or replaced while the connection was open.",
        "Close all connections before you replace the file; copy it with the backup API or VACUUM INTO.",
    ),
    Rule(
        "read-only-recovery",
        (264, 520, 776, 1288),
        Facts(),
        "The database needs recovery or its -shm file, and this process may only read.",
        "Open it once with a process that may write to the file, its -wal, -shm and the folder.",
    ),
    Rule(
        "read-only-folder",
        (1544,),
        Facts(),
        "The process may not create the journal in the folder of the database.",
        "Give it write access to the folder, too.",
    ),
    Rule(
        "read-only-file",
        (8,),
        Facts(),
        "The process may not write to the database file, its -wal or its -shm, or opened it with mode=ro.",
        "Check the owner and permissions of these files and their folder, and how the disk is mounted.",
    ),
    Rule(
        "dirty-wal",
        (1294,),
        Facts(),
        "The connection is read-only and the WAL needs recovery.",
        "Open the database once with a process that may write.",
    ),
    Rule(
        "open-folder",
        (526,),
        Facts(),
        "The path of the database is a folder.",
        "Name the file. In a container, a bind mount of a missing file makes a folder of that name.",
    ),
    Rule(
        "no-temporary-folder",
        (270, 6410),
        Facts(),
        "SQLite found no folder for temporary files.",
        "Set SQLITE_TMPDIR or TMPDIR to a writable folder.",
    ),
    Rule(
        "cannot-open",
        (14,),
        Facts(),
        "The folder is missing or not writable, too many files are open, or a WAL database is opened with"
        " nolock=1, with vfs=unix-none, or in a read-only folder without its -shm file.",
        "Check the path as the process sees it, and ulimit -n; remove nolock=1 and vfs=unix-none. immutable=1"
        " opens a file without writers.",
    ),
    # Rules of result codes for lost locks and damage.
    Rule(
        "short-read",
        (522,),
        Facts(),
        "The file, -wal or -shm became shorter under a connection, often because a process lost its locks.",
        "Let no code open, copy or delete these files except one SQLite library in each process. Then run"
        " PRAGMA integrity_check.",
    ),
    Rule(
        "not-a-database",
        (26,),
        Facts(),
        "The file is not a database, is encrypted, or was overwritten, for example by a WAL of another file.",
        "Check its first 16 bytes and the path; restore a copy with its own -wal or with none.",
    ),
    Rule(
        "damaged-index",
        (779,),
        Facts(),
        "An index does not agree with its table.",
        "Run REINDEX, then PRAGMA integrity_check; look for deleted -wal files and changed collations.",
    ),
    Rule(
        "damage",
        (11,),
        Facts(),
        "The file is damaged. Usual causes: a process lost its locks because other code closed the file; -wal"
        " was deleted, or restored without its database; the file was copied while in use.",
        "Stop all processes, copy the file with its -wal, and run .recover in the sqlite3 shell.",
    ),
    Rule(
        "begun-by-earlier-call",
        (TRANSACTION_ERROR,),
        Facts(left_open=True),
        "An earlier call had left its transaction open.",
        "COMMIT on every path, or ROLLBACK after an error.",
    ),
    Rule(
        "begun-by-other-task",
        (TRANSACTION_ERROR,),
        Facts(shared_connection=True),
        "Threads or tasks share the connection, which has a single transaction: one began or ended that of"
        " another.",
        "Use a connection for each of them, or hold a lock from BEGIN to COMMIT, not for each statement.",
    ),
    Rule(
        "transaction-state",
        (TRANSACTION_ERROR,),
        Facts(),
        "BEGIN found an open transaction, or COMMIT or ROLLBACK found none: threads or tasks share a"
        " connection, or an error path has no ROLLBACK.",
        "Use a connection for each thread or task, and end each transaction on every path.",
    ),
    Rule(
        "bus-error",
        (SIGBUS,),
        Facts(),
        "The -shm file was truncated under a live connection: a process lost its locks, or uses two SQLite"
        " libraries. A full disk can do it, too.",
        "Use one SQLite library in each process; let no other code open or delete -shm. Check the disk.",
    ),
    # Rules of the result code 10, SQLITE_IOERR, and of codes for a lack of disk space, memory and so on.
    Rule(
        "lock-failed",
        (2058, 2314, 3594, 3850, 5130),
        Facts(),
        "The file system could not lock the file: a network or shared folder without locks.",
        "Move the database to a local disk.",
    ),
    Rule(
        "no-shared-memory",
        (4618, 4874, 5386),
        Facts(),
        "The -shm file could not be created or mapped: full disk, read-only folder, network file system, or"
        " too little memory.",
        "Check the free space and the folder's permissions; WAL needs a local disk.",
    ),
    Rule(
        "no-memory",
        (7, 3082),
        Facts(),
        "SQLite could not allocate memory.",
        "Close other programs, lower cache_size and mmap_size, or raise the limit of the container.",
    ),
    Rule(
        "sync-failed",
        (1034, 1290),
        Facts(),
        "The operating system could not write the data to the disk. The last transactions may be lost.",
        "Check the disk and the system's log, then run PRAGMA integrity_check.",
    ),
    Rule(
        "deleted-journal",
        (2570, 5898),
        Facts(),
        "Another program had the rollback journal open, or deleted it.",
        "Exclude the folder from virus scanners, synchronisation and backups of open files.",
    ),
    Rule(
        "disk-error",
        (10,),
        Facts(),
        "The disk or the file system failed, is full, or the limit of the file size was reached.",
        "Check the free space, ulimit -f and the system's log.",
    ),
    Rule(
        "full",
        (13,),
        Facts(),
        "The disk is full, or the database has reached max_page_count.",
        "Free some space, also for -wal and temporary files; if the WAL is large: sqlstress watch FILE.",
    ),
    # Rules of result codes for races and misuse.
    Rule(
        "lock-race",
        (15,),
        Facts(),
        "Many connections opened or closed the WAL database at the same moment.",
        "Repeat the statement, and keep connections open.",
    ),
    Rule(
        "schema-changed",
        (17,),
        Facts(),
        "Another connection keeps changing the schema.",
        "Change the schema once, before the load.",
    ),
    Rule(
        "misuse",
        (21,),
        Facts(),
        "The program used a closed connection or statement, or one connection in two threads at once.",
        "Give each thread its own connection.",
    ),
    Rule(
        "permission",
        (3,),
        Facts(),
        "The operating system denied access.",
        "Check the owner and the permissions of the file and its folder.",
    ),
    Rule(
        "interrupted",
        (9,),
        Facts(),
        "The program called interrupt, or a time limit did.",
        "Make the statement faster, or raise the time limit.",
    ),
    Rule(
        "conflict-rolls-back",
        (19, 275, 1299, 1555, 2067, 2579),
        Facts(rolled_back=True),
        "The conflict rolled back the whole transaction, as ON CONFLICT ROLLBACK in the schema, INSERT OR"
        " ROLLBACK and RAISE(ROLLBACK) do: earlier writes are lost, and later ones commit at once.",
        "Leave out ROLLBACK: the default undoes only the statement. Or repeat from BEGIN after the error.",
    ),
    Rule(
        "duplicate-key",
        (1555, 2067, 2579),
        Facts(),
        "A row with this key exists. If one process alone (-c 1) does not fail, two had looked for the row,"
        " or read the same max(id), before either inserted its row.",
        "Use BEGIN IMMEDIATE before the SELECT, or INSERT ... SELECT max(id) + 1, or ON CONFLICT.",
    ),
    Rule(
        "foreign-key",
        (787,),
        Facts(),
        "A row refers to a row that does not exist, or that another process deleted.",
        "If the program had read that row before, read and write within one BEGIN IMMEDIATE transaction.",
    ),
    Rule(
        "constraint",
        (19, 275, 1299),
        Facts(),
        "The data broke a constraint, which SQLite's message names.",
        "Correct the data: no timeout and no other transaction mode helps.",
    ),
)
"""Causes of errors. If several rules of a result code agree with the facts, the first applies."""

MESSAGES: tuple[tuple[str, int], ...] = (
    ("database is locked", 5),
    ("database table is locked", 6),
    ("database schema is locked", 6),
    ("attempt to write a readonly database", 8),
    ("disk i/o error", 10),
    ("database disk image is malformed", 11),
    ("database or disk is full", 13),
    ("unable to open database file", 14),
    ("locking protocol", 15),
    ("database schema has changed", 17),
    ("unique constraint failed", 2067),
    ("constraint failed", 19),
    ("bad parameter or other api misuse", 21),
    ("file is not a database", 26),
    ("file is encrypted or is not a database", 26),
    ("out of memory", 7),
    ("access permission denied", 3),
    ("interrupted", 9),
    ("cannot start a transaction within a transaction", TRANSACTION_ERROR),
    ("no transaction is active", TRANSACTION_ERROR),
    ("bus error", SIGBUS),
    ("sigbus", SIGBUS),
)
"""SQLite's messages, in lower case, with result codes. If several match, the first applies."""

_NAME = re.compile(r"SQLITE_[A-Z_]+|\b[A-Z]+_[A-Z]+\b|\b[A-Z]{4,}\b")
_NUMBER = re.compile(r"(?:^|[(\s:=#])(\d{1,4})(?=$|[)\s,.;:\]])")


class Diagnosis(NamedTuple):
    """Causes that agree with the facts of an error."""

    cause: Rule | None
    """The only cause that agrees with the facts; None if there are several causes, or no cause."""
    possible: tuple[Rule, ...]
    """All causes that agree with the facts; several if the decisive fact is unknown."""


def diagnose(code: int, facts: Facts) -> Diagnosis:
    """Return the causes of a result code that agree with the facts of the failed statement."""
    if code == BUSY_SNAPSHOT:
        facts = replace(facts, waited="at once")  # SQLite never waits before this error
    if code == LOCKED_SHAREDCACHE:
        facts = replace(facts, shared_cache=True)
    possible: list[Rule] = []
    for rule in rules_of(code):
        unknown = _unknown(rule.when, facts)
        if unknown is None:
            continue
        possible.append(rule)
        if not unknown:
            break  # all facts of this rule are known, and the first such rule applies
    return Diagnosis(possible[0] if len(possible) == 1 else None, tuple(possible))


def rules_of(code: int) -> Sequence[Rule]:
    """Return the rules that list a result code; if there are none, those of its primary code (5 for 517)."""
    rules = [rule for rule in RULES if code in rule.codes]
    if rules or code < 0:
        return rules
    return [rule for rule in RULES if code & 0xFF in rule.codes]


def code_in(text: str) -> int | None:
    """Return the result code in a text, such as 5 for "database is locked"; None without a code.

    The text is a number, a name such as "SQLITE_BUSY", a message or a log line. Names are preferred to
    messages. A number in a longer text counts only if it is an extended code of the name or message:
    "database is locked (517)" has the code 517.
    """
    stripped = text.strip()
    if stripped.isdecimal():
        return int(stripped) if int(stripped) & 0xFF in {code & 0xFF for code in NAMES} else None
    by_name = {name: code for code, name in NAMES.items()}
    words = _NAME.findall(text.upper() if " " not in stripped else text)
    names = [f"SQLITE_{word.removeprefix('SQLITE_')}" for word in words]
    codes = [by_name[name] for name in names if name in by_name]
    numbers = [int(number) for number in _NUMBER.findall(text) if int(number) in NAMES]
    if codes:
        return max([*codes, *(number for number in numbers if number & 0xFF in codes)])
    lower = text.lower()
    messages = [code for message, code in MESSAGES if message in lower]
    if messages:
        return max([messages[0], *(number for number in numbers if number & 0xFF == messages[0])])
    return None


def _unknown(when: Facts, facts: Facts) -> list[str] | None:
    """Return the names of unknown facts that a rule needs; None if a known fact contradicts the rule."""
    unknown = []
    for field in fields(Facts):
        expected, value = getattr(when, field.name), getattr(facts, field.name)
        if expected is None or expected == value:
            continue
        if value is not None:
            return None
        unknown.append(field.name)
    return unknown
