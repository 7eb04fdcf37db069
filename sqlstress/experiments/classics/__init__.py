"""Classic experiments: ways to write rows (methods), types of primary keys (keys), cycles of small writes.

Each repeats the measurements of a published article. A cycle inserts rows, deletes all, and inserts rows
again. The report of `sqlstress cycles` has two lists of times, whose names are defined here.
"""

STATEMENTS = "statements"
"""Name of a list in the report of `sqlstress cycles`: time of each cycle's INSERTs and DELETE, in ns."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""Name of a list in the report of `sqlstress cycles`: time of BEGIN and COMMIT in each cycle, in ns."""
