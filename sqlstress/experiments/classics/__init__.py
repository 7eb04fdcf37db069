"""Three published experiments: methods of writing rows, types of primary keys, cycles of small writes.

The constants name series in the reports of cycles, with a value for each cycle.
"""

STATEMENTS = "statements"
"""Series with the time of the inserts and deletes of each cycle, in ns."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""Series with the time of BEGIN and COMMIT in each cycle, in ns."""
