"""Records of the user's statements under load, and the facts that lead to the cause of a failure.

Connections of the user's code are instances of subclasses that record each statement. Each worker process
sends its counts and facts to the parent process as observations, and the parent writes them to the report.

- failed_statements: the recorder of a process
- recorded_classes, history: subclasses of connections and cursors; the last statements of each connection
- failures, failure_facts: counts of similar failed statements, and facts that `analysis.causes` needs
- after_calls, call_costs, slow_calls, overlaps: records about whole calls of the user's functions
- passed_rows: rows that a query for new rows misses, because larger values were committed before
- backups: restarts of backups in several steps
- lost_locks: causes for the loss of SQLite's locks
"""

from sqlstress.sqlite_codes import CANTOPEN, CORRUPT, IOERR, NOTADB, READONLY

PlainObservation = tuple[str, str, int, str, dict[str, str]]
"""Observation of a worker process: topic, subject (such as a statement), count, example, facts by name."""
FAILED_STATEMENT = "failed statement"
"""Report topic: statements that SQLite refused."""
THIS_THREAD = "this thread"
"""Value of the fact "holder": the thread waited for a lock that another connection of its own held."""
LEFT_OPEN, NOT_COMMITTED = "left open", "not committed"
"""Report topics: calls that returned in an open transaction; calls whose work was never committed."""
CONNECT = "@connect"
"""Name in place of a function's name, for a transaction that was already open before the first call."""
NEVER = "never"
"""Fact in observations of NOT_COMMITTED: "yes" if the transaction was still open when the work ended."""
OPEN_STATEMENT = "open statement"
"""Report topic: queries that stayed open because of unfetched rows."""
BACKUP = "backup in steps"
"""Report topic: lines whose backups in several steps began again, because another connection wrote."""
SLOW_READ = "slow read"
"""Report topic: queries, or writes with RETURNING, with a long time until the call's next statement."""
OVERLAP = "overlapping transactions"
"""Report topic: statements that ran in another thread's transaction, on a shared connection."""
PASSED_OVER = "rows passed over"
"""Report topic: INSERTs of rows that a query for new rows misses, such as a row with 10 for `id > 11`."""
NO_EFFECT = "PRAGMA without effect"
"""Report topic: PRAGMAs that SQLite ignored, and COMMIT or ROLLBACK without an open transaction."""
REPEATED = "repeated transactions"
"""Report topic: calls that may have done work twice, because they went on after a refused write."""
AFTER_COMMIT, AFTER_BEGIN, ROLLED_BACK, CAUGHT = "COMMIT", "BEGIN", "ROLLBACK", "error"
"""Values of the fact "after" in observations of REPEATED: the way in which the call went on.

AFTER_COMMIT: after a refused COMMIT, the call wrote again. AFTER_BEGIN: after a refused BEGIN, the call ran
the transaction again that it had committed before. ROLLED_BACK: a ROLLBACK undid several writes, and
the call committed only some of them again, perhaps because it repeated only a part of its work. CAUGHT: the
call committed the writes that came before the refused write in the same transaction.
"""
SPLIT = "split transaction"
"""Report topic: lines that committed a transaction before the code that began it had finished."""
SCRIPT, BLOCK, RELEASE = "script", "block", "release"
"""Ways to commit too early.

SCRIPT: `executescript`. BLOCK: the end of an inner block `with connection`. RELEASE: the end of a SAVEPOINT
that began the transaction, because no BEGIN came before.
"""
SCHEMA_CHANGE = "schema change"
"""Report topic: statements outside of a transaction that changed the schema."""
UNCLOSED = "unclosed connections"
"""Report topic: lines of code that opened connections and left them open."""
LONG_HOLD = "long hold"
"""Report topic: transactions that held the write lock for a long time."""
MIN_HOLD_S, LONG_HOLD_S, SLOW_WRITE_S = 0.02, 0.1, 0.01
"""Minimum times for which a transaction holds the write lock, in seconds.

A hold of MIN_HOLD_S or longer is recorded. The report shows holds of LONG_HOLD_S or longer, and shorter
recorded holds only if they fill the time, or if another transaction waited until its busy timeout. A single
write that computes for SLOW_WRITE_S or longer is recorded, too.
"""
LOCK_ORDER = "lock order"
"""Report topic: calls that waited for the lock of a file while they held the lock of another file."""
CHECKPOINT = "checkpoint"
"""Value of the fact "work" in observations of LONG_HOLD: a checkpoint waited for other connections."""
UNFETCHED = "unfetched rows"
"""Value of the fact "work" in observations of LONG_HOLD: RETURNING gave rows that were not all fetched."""
WAL_HOOK = "WAL hook"
"""Report topic: hooks that replaced SQLite's automatic checkpoints, in a process without checkpoints."""
IN_MEMORY = "in memory"
"""Report topic: connections to databases in memory, which only their process can see."""
LOST_LOCKS = "lost locks"
"""Report topic: causes and signs of the loss of SQLite's locks on a database that a process has open."""
CLOSED, DELETED = "closed", "deleted"
"""Causes for the loss of SQLite's locks on an open database.

CLOSED: code other than SQLite opened a file of the database, whose close drops the locks. DELETED: -wal or
-shm was deleted while in use.
"""
COPIED, MOVED = "copied by a program", "moved or deleted"
"""Causes for the loss of SQLite's locks on an open database.

COPIED: another program copied the database file. MOVED: the file was moved, replaced or deleted.
"""
DAMAGE_CODES = CANTOPEN, IOERR, CORRUPT, NOTADB
"""SQLite errors that can follow if processes use a database without locks, or its WAL is deleted."""
MOVED_CODES = *DAMAGE_CODES, READONLY
"""SQLite errors that can follow if a database is moved, replaced or deleted while open."""
LIBRARIES, LOADED, LOCKLESS = "two libraries", "two libraries loaded", "without locks"
NO_LOCKS, IMMUTABLE = "no locks", "immutable"
"""Causes and signs of lost SQLite locks, in a process with two SQLite libraries or without locks.

LIBRARIES: two libraries used the database. LOADED: two libraries were loaded, and the database was open
twice. LOCKLESS: the database was open, but without any of SQLite's locks. NO_LOCKS: the process wrote without
any lock. IMMUTABLE: a connection was opened with `immutable=1`, and the database is written.
"""
CALL_COST = "call cost"
"""Report topic: number of a function's calls, and sums of their connections, commits and times."""
MAX_WEIGHT = 1_000_000
"""Maximum weight (relative frequency) of an operation."""


def is_passive(sql: str) -> bool:
    """Return whether a checkpoint waits for no other connection: PRAGMA wal_checkpoint or (PASSIVE)."""
    return not any(mode in sql.upper() for mode in ("FULL", "RESTART", "TRUNCATE"))
