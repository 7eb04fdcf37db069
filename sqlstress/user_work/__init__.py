"""Shared parts of the experiments that run the user's own work: sql, app and exec.

Each of these experiments is a package with four modules:

- spec: the options of a case: the database and the user's checks (field `data`), and the operations that
  the worker processes run
- work: a subclass of `parent.UserWork`, which runs in the parent process. It creates the database and runs
  the user's checks before, during and after the load
- worker: a subclass of `source.UserSource`, which draws operations at random, in proportion to their weights
- show: a subclass of `show.UserPresenter`, which shows a table with a row for each number of processes

Terms: a case is a combination of options to measure, and a trial is one measurement of a case. A call is one
call of a function of the user's Python file. A sighting is an observation in the report, such as a statement
that SQLite refused, with a topic and further properties (traits).
"""

UNDER, AFTER = "checks under load", "checks after the load"
"""Names, in a trial's verdict, of the combined result of the user's checks.

UNDER: the checks during the load. AFTER: the checks after it.
"""
SUSPICION = "suspicion"
"""Report topic: two statements of a transaction that look like a race."""
OURS, OTHERS, UNKNOWN = "sqlstress", "other programs", ""
"""Labels of some processes that held the write lock. Other processes are listed by their command line.

OURS: processes of sqlstress, including the user's code. OTHERS: all programs after the first
`lock_watch.MOST`, which are not listed separately. UNKNOWN: processes that ended, or could not be inspected.
"""
NOT_REHEARSED = "not rehearsed"
"""Report topic: a transaction that the rehearsal could not call and trace, with the reason.

A rehearsal calls each transaction after the load, on a copy of the data.
"""
INTERLEAVING = "interleaving"
"""Report topic: the step, in an order of statements that sqlstress made, after which a check fails."""
ALONE, IN_TURN, HALF, BETWEEN = "alone", "in turn", "half", "between"
"""Kinds of the step after which a check fails (INTERLEAVING).

ALONE: a call of a single process. IN_TURN: a call of one of two processes, without overlap. HALF: a pause in
a call. BETWEEN: calls of another process during such a pause.
"""
ORDERS = "orders"
"""Fact in a suspicion that was tested: the number of orders of calls after which all checks held."""
REHEARSAL_TOPICS = SUSPICION, NOT_REHEARSED, INTERLEAVING
"""Report topics of the rehearsal."""
