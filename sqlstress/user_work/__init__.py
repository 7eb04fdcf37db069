"""What experiments with the user's own work have in common: the database, the checks, the weights, the table.

An experiment of this kind (SQL scripts, an application's file, any command) is a package that adds little:

- spec: a dataclass with `data: Data`, and what its workers do; its options have `data: DataOptions`, which
  `data.read` makes a Data of, and `DATA` are these options for the face.
- face: `face.own(...)` makes the Experiment: windows, a sweep of processes, the checker beside the workers.
- work: a subclass of `work.OwnWork`, which makes the database and runs the checks before, during and after.
  What it proves beside goes into `proofs`; what it prepares beside into `ready`.
- worker: a subclass of `source.OwnSource`, which draws what to do by weight; it says what each kind of
  operation calls, and which errors mean that a lock stayed taken.
- shown: a subclass of `shown.OwnShown`: a row for each number of processes, latencies by kind of operation.
"""

UNDER, AFTER = "checks under load", "checks after the load"
"""What the verdict of a trial calls the user's checks, where there are any."""
