"""Shared parts of experiments with the user's own work: database, checks, weights, report table.

An experiment of this kind (SQL scripts, an application's file, any command) is a package that adds:

- a spec, with `data: Data` and the work of its workers; its options have `data: DataOptions`, from which
  `options.read` makes a Data;
- work, a subclass of `parent.UserWork`, which makes the database and runs the checks before, during and
  after the load; further checks belong into `proofs`, further preparations into `ready`;
- worker, a subclass of `source.UserSource`, which draws operations by weight: it defines the function that
  each kind of operation calls, and the errors which mean that a lock was not released in time;
- show, a subclass of `show.UserPresenter`: a table row for each number of processes, latencies by kind of
  operation.
"""

UNDER, AFTER = "checks under load", "checks after the load"
"""Names of the user's checks in the verdict of a trial, if there are any."""
SUSPICION = "suspicion"
"""Topic of suspicious statements in a transaction."""
OURS, OTHERS, UNKNOWN = "sqlstress", "other programs", ""
"""Labels in place of a command line: sqlstress's own processes, including the user's code that they call;
programs beyond the first ones; processes that ended, or could not be inspected."""
FAILED_STATEMENT = "failed statement"
"""Topic of statements that SQLite refused."""
LEFT_OPEN, NOT_COMMITTED = "left open", "not committed"
"""Topics of calls that returned within an open transaction, and of those whose transaction did not commit."""
OPEN_STATEMENT = "open statement"
"""Topic of queries that stayed open."""
LOST_LOCKS = "lost locks"
"""Topic of causes and signs of lost locks."""
CALL_COST = "call cost"
"""Topic of the connections and commits of calls: its count is the number of calls."""
NOT_REHEARSED = "not rehearsed"
"""Topic of the reasons why transactions were not examined for suspicions."""
REHEARSAL_TOPICS = SUSPICION, NOT_REHEARSED
"""Topics of the sightings of a rehearsal."""
MAX_WEIGHT = 1_000_000
"""Largest weight of an operation, relative to the others."""
