"""The proof, as a pure function: from how far a worker was told it had come to what its table holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlstress.workloads.problems import Tally


def check_table(tally: Tally, name: str, found: Sequence[str], allowed: Sequence[Sequence[str]]) -> None:
    """Count what is wrong with a table's rows: they must be those of one of the allowed states, no more.

    There are two for a worker that died: it may have done one step more than it was told. Rows that are
    those of neither are held against the state that they come nearest to.
    """
    tally.checked += 1
    rows = Counter(found)
    lacking, foreign = min(
        ((state - rows, rows - state) for state in map(Counter, allowed)),
        key=lambda wrong: sum(part.total() for part in wrong),
    )
    for value in lacking.elements():
        tally.problem(f"{name} lacks the row {value!r}")
    for value in foreign.elements():
        tally.problem(f"{name} holds the row {value!r:.80}, which it must not hold")
