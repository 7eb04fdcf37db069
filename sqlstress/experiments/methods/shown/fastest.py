"""Which method is the fastest in each phase, and which of those that every problem allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.comparing import UNTOLD, as_much, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Tested
from sqlstress.analysis.wording import listing, rounded
from sqlstress.experiments.methods.shown.cells import DOING, Cell, Cells, Series
from sqlstress.experiments.methods.shown.grids import BASE
from sqlstress.experiments.methods.shown.judged import Judged

INSIDE = "SPC"
"""The method that not every problem allows."""


def highest(cells: Cells, fewest: int, driver: str) -> Iterator[Finding]:
    """Name the highest cell of each phase, where single trials tell no more."""
    told = []
    for phase in cells.phases():
        best = [
            cell
            for tricks in cells.tricks(phase)
            if (cell := cells.best(Series(fewest, driver, phase, tricks)))
        ]
        if best:
            most = max(best, key=lambda cell: cell.rows_per_s)
            told.append(f"{DOING[phase]} by {most.series.tricks} ({rounded(most.rows_per_s)} rows/s)")
    if told:
        yield Finding("fastest", f"Highest through {driver}: {'; '.join(told)}.")


def fastest(cells: Cells, judged: Judged, fewest: int, driver: str) -> Iterator[Finding]:
    """Name the fastest methods of each phase, and the fastest that every problem allows."""
    told = []
    for phase in cells.phases():
        known = [
            cell
            for tricks in cells.tricks(phase)
            for cell in cells.of(Series(fewest, driver, phase, tricks))
            if judged.knows(cell)
        ]
        if judged.tested and known:
            base = cells.best(Series(fewest, driver, phase, BASE))
            told.append(f"{DOING[phase]} by {_phase(judged, judged.tested, known, base)}")
    if told:
        yield Finding("fastest", f"Fastest through {driver}: {'; '.join(told)}.")


def _phase(judged: Judged, tested: Tested, known: Sequence[Cell], base: Cell | None) -> str:
    best = max(known, key=lambda cell: tested.middle(cell.run))
    general = [cell for cell in known if not cell.series.tricks.startswith(INSIDE)]
    told = [_leading(judged, tested, known, base)]
    if best not in general and general:
        told.append(_leading(judged, tested, general, base))
    return ", or else ".join(told)


def _leading(judged: Judged, tested: Tested, known: Sequence[Cell], base: Cell | None) -> str:
    """Name the methods of which a cell is not slower than the best one, beyond doubt."""
    by_run = {id(cell.run): cell for cell in known}
    found = leaders(tested, [cell.run for cell in known])
    best, near = by_run[id(found.best)], [by_run[id(run)] for run in found.runs]
    names = listing(list(dict.fromkeys(cell.series.tricks for cell in near)))
    alone = all(cell.series == best.series for cell in near)
    figures = [f"{'' if alone else 'about '}{rounded(best.rows_per_s)} rows/s", *_factor(judged, best, base)]
    return f"{names} ({', '.join(figures)}){'' if alone else found.how}"


def _factor(judged: Judged, cell: Cell, base: Cell | None) -> Iterator[str]:
    """Yield how many times as fast a cell is as one by one."""
    if base and base.series != cell.series:
        told = as_much(judged.ratio(base, cell), "as fast as")
        yield f"{told} {BASE}" if told else f"{UNTOLD} from {BASE}"
