"""Three published experiments: methods of writing rows, types of primary keys, and cycles of small writes.

The constants are names of series in the reports of cycles. A series has a value for each cycle.
"""

STATEMENTS = "statements"
"""Name of the series with the time of the inserts and deletes, in ns per cycle."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""Name of the series with the time of the BEGIN and COMMIT statements, in ns per cycle."""
