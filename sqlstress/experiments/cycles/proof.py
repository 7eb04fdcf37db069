"""The proof, as a pure function: from how far a worker was told it had come to what its table holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlstress.report.problems import Tally


def check_table(
    tally: Tally, name: str, found: Sequence[tuple[Any, ...]], allowed: Sequence[Sequence[str]]
) -> None:
    """Count what is wrong with a table's rows: they must be those of one of the allowed states, no more.

    A row is its id and its value. Ids count from 1, in the order of insertion.

    There are two for a worker that died: it may have done one step more than it was told. Rows that are
    those of neither are held against the state that they come nearest to.
    """
    tally.checked += 1
    rows = Counter(value for _, value in found)
    lacking, foreign, state = min(
        ((wanted - rows, rows - wanted, state) for state in allowed for wanted in (Counter(state),)),
        key=lambda wrong: wrong[0].total() + wrong[1].total(),
    )
    for value in lacking.elements():
        tally.problem(f"{name} lacks the row {value!r}")
    for value in foreign.elements():
        tally.problem(f"{name} holds the row {value!r:.80}, which it must not hold")
    if not lacking and not foreign:
        for (own, value), (right, expected) in zip(found, enumerate(state, 1), strict=True):
            if (own, value) != (right, expected):
                what = f"{value!r} with id {own}; it must be {expected!r} with id {right}"
                tally.problem(f"row {right} of {name} is {what}")
