"""A table from what its columns say of each row, and the one column that every table of runs has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlstress.analysis.group import Group
from sqlstress.display.blocks import Column, Table
from sqlstress.display.figures import MISSING, UNKNOWN
from sqlstress.report import Run

R = TypeVar("R")


@dataclass(frozen=True)  # with slots, Python 3.11 can make no Figure[Row](...)
class Figure(Generic[R]):
    """A column, and what it says."""

    column: Column
    cell: Callable[[R], str | None]
    """What it says of a row; None when it has no figure."""


def table_of(rows: Sequence[R], figures: Sequence[Figure[R]], leaving: tuple[str, ...] = ()) -> Table:
    """Return a table; `leaving` are the names of the columns that leave first where it is too wide."""
    cells = [(figure.column, [figure.cell(row) for row in rows]) for figure in figures]
    filled = [(column, found) for column, found in cells if any(cell is not None for cell in found)]
    return Table(
        tuple(column for column, _ in filled),
        tuple(
            tuple(MISSING if found[place] is None else str(found[place]) for _, found in filled)
            for place in range(len(rows))
        ),
        leaving,
    )


FAILED = "FAILED"
_WORDS = {"ok": "ok", "failed": FAILED, "skipped": MISSING, "unknown": UNKNOWN}
_MEANINGS = {
    "failed": "the data is wrong",
    "unknown": "it could not be decided",
    "skipped": "not checked",
}


def verified_cell(run: Run) -> str:
    """Return what is said of a run."""
    return _WORDS.get(run.verdict.status, UNKNOWN)


VERIFIED: Figure[Any] = Figure(
    Column("verified", ("veri-", "fied"), align="left"), lambda row: verified_cell(row.run)
)
"""Of rows that have a run: whether its data was proved right."""


def verified_legend(group: Group, ok: str = "no acknowledged write was lost") -> Iterator[str]:
    """Yield what the words in the column mean, as far as the group has them; `ok` is what was proved."""
    meanings = {"ok": ok, **_MEANINGS}
    statuses = {run.verdict.status for run in group.runs}
    told = [f"{_WORDS[status]} = {text}" for status, text in meanings.items() if status in statuses]
    if told:
        yield f"verified: {', '.join(told)}"
