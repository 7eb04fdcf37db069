"""Three published experiments: methods of writing rows, types of primary keys, and cycles of small writes.

The constants are names of series that the workers of cycles send.
"""

STATEMENTS = "statements"
"""Series: ns in the inserts and deletes of each cycle."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""Series: ns in those of transactions, in the cycle in which they fell."""
