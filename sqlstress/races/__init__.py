"""Possible races (suspicions) in the user's transactions, from a trace of single calls.

The rehearsal calls each transaction a few times without load and traces its statements. Rules search the
trace, and the user's source code, for pairs of statements between which another process could write.

- tracing, listening, traced_statements: the trace of a call
- touched, guards, dependence: facts from SQL text and from the user's source code
- suspicions, weak_checks, program_races, old_values: the rules
- protected_writes: writes that are safe
"""
