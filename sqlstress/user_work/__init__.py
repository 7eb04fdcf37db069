"""Shared parts of experiments with the user's own work: database, checks, weights, report table.

An experiment of this kind (SQL scripts, an application's file, any command) is a package that adds:

- a spec, with `data: Data` and the work of its workers; its options have `data: DataOptions`, from which
  `options.read` makes a Data;
- work, a subclass of `parent.UserWork`, the part that runs in the parent process: it makes the database and
  runs the checks before, during and after the load. Further checks belong into its method `proofs`, further
  preparations into `ready`;
- worker, a subclass of `source.UserSource`, which draws operations at random, in proportion to their weights.
  The subclass defines the function that each kind of operation calls, and the errors which mean that a lock
  was not released in time;
- show, a subclass of `show.UserPresenter`: a table row for each number of processes, latencies by kind of
  operation.
"""

UNDER, AFTER = "checks under load", "checks after the load"
"""Names of the user's checks in the verdict of a trial, if there are any."""
SUSPICION = "suspicion"
"""Topic of suspicious statements in a transaction.

A topic is the kind of an observation ("sighting") that a process adds to the report of a trial.
"""
OURS, OTHERS, UNKNOWN = "sqlstress", "other programs", ""
"""Labels that replace the command line of a process that held the write lock.

OURS: processes of sqlstress, including the user's code that they call. OTHERS: all programs together that are
not listed separately, because there are too many. UNKNOWN: processes that ended, or could not be inspected.
"""
FAILED_STATEMENT = "failed statement"
"""Topic of statements that SQLite refused."""
LEFT_OPEN, NOT_COMMITTED = "left open", "not committed"
"""Topics of calls that returned with a transaction open, and of calls whose transaction never committed."""
NEVER = "never"
"""Trait of NOT_COMMITTED: "yes" if the process committed none of its open transactions to its end."""
OPEN_STATEMENT = "open statement"
"""Topic of queries that stayed open, because their rows were not all fetched."""
OVERLAP = "overlapping transactions"
"""Topic of statements of a thread in a transaction that another thread began on the same connection."""
NO_EFFECT = "PRAGMA without effect"
"""Topic of PRAGMAs that ran in a transaction, where SQLite ignores them."""
REPEATED = "repeated transactions"
"""Topic of calls that repeated a transaction after SQLite had refused a write in it."""
SPLIT = "split transaction"
"""Topic of calls of executescript that committed the open transaction before its end."""
LONG_HOLD = "long hold"
"""Topic of transactions that held the write lock for long."""
IN_MEMORY = "in memory"
"""Topic of connections to a database in memory, which is private to its process."""
LOST_LOCKS = "lost locks"
"""Topic of causes and signs of lost locks."""
CLOSED, DELETED = "closed", "deleted"
"""Kinds of this topic: code other than SQLite opened a file of the database; -wal or -shm was deleted while
in use."""
COPIED, MOVED = "copied by a program", "moved or deleted"
"""More kinds: another program copied the database file; code moved, replaced or deleted the file."""
LIBRARIES, LOADED, LOCKLESS = "two libraries", "two libraries loaded", "without locks"
NO_LOCKS = "no locks"
"""More kinds: a process used the database with two SQLite libraries; it had the database open twice, and two
libraries loaded; it had the database open and none of SQLite's locks; it wrote without any lock."""
CALL_COST = "call cost"
"""Topic of the connections and commits of calls: its count is the number of calls."""
NOT_REHEARSED = "not rehearsed"
"""Topic of the reasons why the rehearsal did not examine a transaction."""
REHEARSAL_TOPICS = SUSPICION, NOT_REHEARSED
"""Topics of a rehearsal: calls of the transactions after the load, on a copy, with their SQL traced."""
MAX_WEIGHT = 1_000_000
"""Largest weight of an operation, relative to the others."""
