"""What a worker calls the series that it tells: apart from `series`, since it makes no dataclass."""

from __future__ import annotations

STATEMENTS = "statements"
"""Of the experiment with cycles: ns in the inserts and deletes of each cycle."""
BEGIN_AND_COMMIT = "BEGIN and COMMIT"
"""ns in those of transactions, in the cycle in which they fell."""
