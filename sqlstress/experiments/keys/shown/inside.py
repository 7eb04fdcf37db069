"""What it costs to make ids by a function inside SQLite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import geometric_mean

from sqlstress.analysis.comparing import as_much, untold
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import ERROR, Group
from sqlstress.analysis.wording import times
from sqlstress.experiments.keys.shown.cells import Cell, Cells
from sqlstress.report import Run
from sqlstress.statistics.ratios import Passes

Pair = tuple[Cell, Cell]
"""The same case, with ids made by Python and made inside SQLite."""


def pairs_of(cells: Cells) -> list[Pair]:
    """Return the cases that were measured both ways; but for integers, which need no function there."""
    return [
        (twin, cell)
        for cell in cells.all
        if cell.picks.made_by == "sqlite" and cell.picks.id_type != "int"
        if (twin := cells.twin(cell, made_by="python"))
    ]


def made_inside(group: Group, pairs: Sequence[Pair]) -> Iterator[Finding]:
    """Yield how long it took inside SQLite, over all cases that were measured both ways."""
    if pairs:
        yield Finding(
            "made-inside", f"With ids made inside SQLite, by a function of Python, {_took(group, pairs)}."
        )


def _took(group: Group, pairs: Sequence[Pair]) -> str:
    python, inside = (_means([pair[place].run for pair in pairs]) for place in (0, 1))
    # Less done in a second is more time.
    found = Passes({"python": python, "inside": inside}, ERROR / group.groups).ratio("inside", "python")
    if found is None:
        return f"it took {times(geometric_mean(each.seconds / twin.seconds for twin, each in pairs))} as long"
    told = as_much(found, "as long")
    return f"it took {told}" if told else f"whether it takes longer {untold(found)}"


def _means(runs: Sequence[Run]) -> dict[int, float]:
    """Return the mean of all runs in each pass that all of them have."""
    rates = [run.rates() for run in runs]
    common = set.intersection(*map(set, rates))
    return {number: geometric_mean(own[number] for own in rates) for number in common}
