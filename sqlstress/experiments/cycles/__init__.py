"""The experiment with cycles: insert rows, delete all of them, insert rows again, and what each costs.

Workers tell of their cycles in series, whose names these are.
"""

STATEMENTS = "statements"
"""Series: ns in the inserts and deletes of each cycle."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""Series: ns in those of transactions, in the cycle in which they fell."""
