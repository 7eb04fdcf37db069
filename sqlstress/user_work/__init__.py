"""Shared parts of the experiments that run the user's own work: sql, app and exec.

Each of these experiments is a package with four modules:

- spec: the case's field `data` (the database and the user's checks), and the operations of the worker
  processes
- work: a subclass of `parent.UserWork`, which runs in the parent process. It creates the database and runs
  the user's checks before, during and after the load
- worker: a subclass of `source.UserSource`, which draws operations at random, in proportion to their weights
- show: a subclass of `show.UserPresenter`, which shows a table with a row for each number of processes

Terms: a call is one call of a function of the user's Python file. A sighting is an observation in the report,
such as a statement that SQLite refused, with a topic and further properties (traits).
"""

UNDER, AFTER = "checks under load", "checks after the load"
"""Names in a trial's verdict: UNDER for the user's checks during the load, AFTER for those after it."""
SUSPICION = "suspicion"
"""Report topic: two statements of a transaction that look like a race."""
OURS, OTHERS, UNKNOWN = "sqlstress", "other programs", ""
"""Labels that replace the command line of a process that held the write lock.

OURS: processes of sqlstress, including the user's code. OTHERS: the programs that are not listed separately.
UNKNOWN: processes that ended, or could not be inspected.
"""
NOT_REHEARSED = "not rehearsed"
"""Report topic: reasons why a transaction could not be called and traced on a copy after the load."""
REHEARSAL_TOPICS = SUSPICION, NOT_REHEARSED
"""Report topics of the rehearsal, which calls the transactions after the load and traces their SQL."""
