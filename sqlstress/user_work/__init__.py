"""Shared parts of the experiments that run the user's own work: sql, app and exec.

Each of these experiments is a package with four modules:

- spec: the case's `data: Data` (the database and the user's checks) and the operations of the worker
  processes
- work: a subclass of `parent.UserWork`, which runs in the parent process. It creates the database and runs
  the user's checks before, during and after the load
- worker: a subclass of `source.UserSource`, which draws operations at random, in proportion to their weights
- show: a subclass of `show.UserPresenter`, which shows a table with a row for each number of processes

Terms: a call is one call of a function of the user's Python file. A sighting is an observation in the report,
such as a statement that SQLite refused, with a topic and further properties (traits).
"""

from sqlstress.sqlite_codes import CANTOPEN, CORRUPT, IOERR, NOTADB, READONLY

UNDER, AFTER = "checks under load", "checks after the load"
"""Names of the results of the user's checks during and after the load, in a trial's verdict."""
SUSPICION = "suspicion"
"""Report topic: two statements of a transaction that look like a race."""
OURS, OTHERS, UNKNOWN = "sqlstress", "other programs", ""
"""Labels that replace the command line of a process that held the write lock.

OURS: processes of sqlstress, including the user's code. OTHERS: the programs that are not listed separately.
UNKNOWN: processes that ended, or could not be inspected.
"""
FAILED_STATEMENT = "failed statement"
"""Report topic: statements that SQLite refused."""
LEFT_OPEN, NOT_COMMITTED = "left open", "not committed"
"""Report topics: calls that returned in an open transaction; calls whose transaction never committed."""
NEVER = "never"
"""Value "yes" in NOT_COMMITTED observations: the process never committed a transaction left open."""
OPEN_STATEMENT = "open statement"
"""Report topic: queries that stayed open because of unfetched rows."""
SLOW_READ = "slow read"
"""Report topic: queries after which the call worked for long, perhaps between their rows."""
OVERLAP = "overlapping transactions"
"""Report topic: statements that ran in another thread's transaction, on a shared connection."""
NO_EFFECT = "PRAGMA without effect"
"""Report topic: a PRAGMA in a transaction, or COMMIT or ROLLBACK without one, all without effect."""
REPEATED = "repeated transactions"
"""Report topic: calls that repeated or kept earlier work after SQLite had refused a write."""
SPLIT = "split transaction"
"""Report topic: calls of `executescript` that committed an open transaction early."""
SCHEMA_CHANGE = "schema change"
"""Report topic: statements outside of a transaction that changed the schema."""
UNCLOSED = "unclosed connections"
"""Report topic: lines of code that opened connections and left them open."""
LONG_HOLD = "long hold"
"""Report topic: transactions that held the write lock for a long time."""
IN_MEMORY = "in memory"
"""Report topic: connections to databases in memory, which only their process can see."""
LOST_LOCKS = "lost locks"
"""Report topic: causes and signs that a process lost SQLite's locks on an open database."""
CLOSED, DELETED = "closed", "deleted"
"""Causes for the loss of SQLite's locks on an open database.

CLOSED: code other than SQLite opened a file of the database. DELETED: -wal or -shm was deleted while in use.
"""
COPIED, MOVED = "copied by a program", "moved or deleted"
"""Causes for the loss of SQLite's locks on an open database.

COPIED: another program copied the database file. MOVED: the file was moved, replaced or deleted.
"""
DAMAGE_CODES = CANTOPEN, IOERR, CORRUPT, NOTADB
"""SQLite errors of a database that was used without locks, or whose WAL was deleted."""
MOVED_CODES = *DAMAGE_CODES, READONLY
"""SQLite errors of a database that was moved, replaced or deleted while open."""
LIBRARIES, LOADED, LOCKLESS = "two libraries", "two libraries loaded", "without locks"
NO_LOCKS = "no locks"
"""Causes and signs of lost SQLite locks, in a process with two SQLite libraries or without locks.

LIBRARIES: two libraries used the database. LOADED: two libraries were loaded, and the database was open
twice. LOCKLESS: the database was open, but without any of SQLite's locks. NO_LOCKS: the process wrote without
any lock.
"""
CALL_COST = "call cost"
"""Report topic: connections and commits of a function's calls. The count is the number of calls."""
NOT_REHEARSED = "not rehearsed"
"""Report topic: reasons why a transaction could not be called and traced on a copy after the load."""
REHEARSAL_TOPICS = SUSPICION, NOT_REHEARSED
"""Report topics of the rehearsal, which traces the transactions again on a copy after the load."""
MAX_WEIGHT = 1_000_000
"""Maximum weight (relative frequency) of an operation."""
