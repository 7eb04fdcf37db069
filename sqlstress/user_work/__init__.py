"""Shared parts of the experiments with the user's own work: sql, app and exec.

Each of these experiments is a package with the following modules:

- spec: the case's `data: Data` (the database and the user's checks), and the work of the workers. The
  experiment's options have `data: DataOptions`, from which `options.read` makes a Data;
- work: a subclass of `parent.UserWork`, the part that runs in the parent process. It makes the database and
  runs the user's checks before, during and after the load. Its method `proofs` returns further checks, its
  method `ready` makes further preparations;
- worker: a subclass of `source.UserSource`, which draws operations at random, in proportion to their weights.
  The subclass defines the function that each kind of operation calls, and the errors which mean that a lock
  was not released in time;
- show: a subclass of `show.UserPresenter`, a table with a row for each number of processes, and latencies by
  kind of operation.

Terms: a call is one call of a function of the user's Python file. A sighting is an observation that processes
add to the report of a trial. Its topic says what was observed, such as a statement that SQLite refused. Its
traits are further properties by name.
"""

from sqlstress.sqlite_codes import CANTOPEN, CORRUPT, IOERR, NOTADB, READONLY

UNDER, AFTER = "checks under load", "checks after the load"
"""Names, in a trial's verdict, of the results of the user's checks during and after the load."""
SUSPICION = "suspicion"
"""Report topic: suspicions, which are statements of a transaction that look like a race."""
OURS, OTHERS, UNKNOWN = "sqlstress", "other programs", ""
"""Labels that replace the command line of a process that held the write lock.

OURS: processes of sqlstress, including the user's code that they call. OTHERS: all programs together that are
not listed separately, because there are too many. UNKNOWN: processes that ended, or could not be inspected.
"""
FAILED_STATEMENT = "failed statement"
"""Report topic: statements that SQLite refused."""
LEFT_OPEN, NOT_COMMITTED = "left open", "not committed"
"""Report topics: calls that returned with a transaction open; calls whose transaction never committed."""
NEVER = "never"
"""Trait of NOT_COMMITTED sightings: "yes" if the process committed no transaction that a call left open."""
OPEN_STATEMENT = "open statement"
"""Report topic: queries that stayed open, because their rows were not all fetched."""
OVERLAP = "overlapping transactions"
"""Report topic: statements in a transaction that another thread began on a shared connection."""
NO_EFFECT = "PRAGMA without effect"
"""Report topic: PRAGMAs that ran in a transaction, where SQLite ignores them."""
REPEATED = "repeated transactions"
"""Report topic: calls that repeated a transaction after SQLite had refused a write in it."""
SPLIT = "split transaction"
"""Report topic: calls of `executescript` that committed the open transaction before its end."""
SCHEMA_CHANGE = "schema change"
"""Report topic: statements outside of a transaction by which calls changed the schema."""
UNCLOSED = "unclosed connections"
"""Report topic: lines of code that opened connections which stayed open."""
LONG_HOLD = "long hold"
"""Report topic: transactions that held the write lock for long."""
IN_MEMORY = "in memory"
"""Report topic: connections to a database in memory, which is private to its process."""
LOST_LOCKS = "lost locks"
"""Report topic: causes and signs that a process lost SQLite's locks on a database that it has open."""
CLOSED, DELETED = "closed", "deleted"
"""Kinds of LOST_LOCKS.

CLOSED: code other than SQLite opened a file of the database. DELETED: -wal or -shm was deleted while in use.
"""
COPIED, MOVED = "copied by a program", "moved or deleted"
"""Kinds of LOST_LOCKS.

COPIED: another program copied the database file. MOVED: the file was moved, replaced or deleted.
"""
DAMAGE_CODES = CANTOPEN, IOERR, CORRUPT, NOTADB
"""Errors of SQLite on a database that was used without locks, or whose WAL was deleted."""
MOVED_CODES = *DAMAGE_CODES, READONLY
"""Errors of SQLite on a database that was moved, replaced or deleted while it was in use."""
LIBRARIES, LOADED, LOCKLESS = "two libraries", "two libraries loaded", "without locks"
NO_LOCKS = "no locks"
"""Kinds of LOST_LOCKS, for a process with two SQLite libraries, or without locks.

LIBRARIES: it used the database with two libraries. LOADED: it had two libraries loaded, and the database open
twice. LOCKLESS: it had the database open, but none of SQLite's locks. NO_LOCKS: it wrote without any lock.
"""
CALL_COST = "call cost"
"""Report topic: connections and commits of the calls of a function. The count is the number of calls."""
NOT_REHEARSED = "not rehearsed"
"""Report topic: reasons why the rehearsal did not examine a transaction."""
REHEARSAL_TOPICS = SUSPICION, NOT_REHEARSED
"""Report topics of a rehearsal.

A rehearsal calls the transactions again after the load, on a copy of the data, and traces their SQL.
"""
MAX_WEIGHT = 1_000_000
"""Maximum weight of a kind of operation: its frequency relative to the other kinds."""
