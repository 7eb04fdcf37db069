"""Three published experiments: methods of writing rows, types of primary keys, cycles of small writes.

The constants name two lists in the report of `sqlstress cycles`. Each list has a time for each cycle.
"""

STATEMENTS = "statements"
"""Name of the list with the time of the inserts and deletes of each cycle, in ns."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""Name of the list with the time of BEGIN and COMMIT in each cycle, in ns."""
