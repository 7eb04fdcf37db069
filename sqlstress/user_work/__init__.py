"""What experiments with the user's own work have in common: the database, the checks, the weights, the table.

An experiment of this kind (SQL scripts, an application's file, any command) is a package that adds little:

- a spec, with `data: Data` and what its workers do; its options have `data: DataOptions`, of which
  `options.read` makes a Data;
- work, a subclass of `parent.UserWork`, which makes the database and runs the checks before, during and
  after: what it proves beside goes into `proofs`, what it prepares beside into `ready`;
- worker, a subclass of `source.UserSource`, which draws what to do by weight: it says what each kind of
  operation calls, and which errors mean that a lock stayed taken;
- show, a subclass of `show.UserShown`: a row for each number of processes, latencies by kind of operation.
"""

UNDER, AFTER = "checks under load", "checks after the load"
"""What the verdict of a trial calls the user's checks, where there are any."""
SUSPICION = "suspicion"
"""The topic of what is suspicious in the statements of a transaction."""
OURS, OTHERS, UNKNOWN = "sqlstress", "other programs", ""
"""Instead of a command line: sqlstress's own processes, with what they call of the user's; programs beyond
the first ones; processes that had ended before they could be asked, or may not be asked."""
UNREHEARSED = "not rehearsed"
"""The topic of why nothing suspicious was looked for."""
MOST_WEIGHT = 1_000_000
"""Of an operation, beside the others."""
