"""Three published experiments: methods of writing rows, types of primary keys, cycles of small writes.

The constants are names of lists of values in the reports of cycles, with a value for each cycle.
"""

STATEMENTS = "statements"
"""Time of the inserts and deletes of each cycle, in ns."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""Time of BEGIN and COMMIT in each cycle, in ns."""
