"""Possible races (suspicions) in the user's transactions, from a trace of single calls.

The rehearsal, a test run before the measurement, calls each transaction a few times without load, and traces
the SQL statements. Rules search the trace and the user's source code for pairs of statements that race: the
result is wrong if another process writes between them.

- tracing, listening, traced_statements: the trace of a call
- touched, guards, dependence: facts from SQL text and from the user's source code
- suspicions, weak_checks, program_races, old_values: the rules
- protected_writes: writes that are safe
"""
