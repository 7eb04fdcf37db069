"""Experiments that repeat three articles: ways to write rows, types of primary keys, cycles of small writes.

A cycle inserts rows, deletes all, and inserts rows again. The report of `sqlstress cycles` has two lists with
a time for each cycle. The constants are the names of these lists.
"""

STATEMENTS = "statements"
"""Name of a list in the report of `sqlstress cycles`: time of each cycle's INSERTs and DELETE, in ns."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""Name of a list in the report of `sqlstress cycles`: time of BEGIN and COMMIT in each cycle, in ns."""
