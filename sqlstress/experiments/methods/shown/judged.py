"""What the passes say of the cells: how many times as fast one is as another."""

from __future__ import annotations

from sqlstress.analysis.group import Group
from sqlstress.experiments.methods.shown.cells import DONE, Cell, Cells
from sqlstress.report import Run
from sqlstress.statistics.ratios import FEWEST, Ratio


def rates(run: Run) -> dict[int, float]:
    """Return the rows a second of each pass: several processes share the rows, not the transactions."""
    return run.by_pass(lambda trial: trial.rows_per_s)


class Judged:
    """The cells that were done in enough passes, tested together."""

    def __init__(self, group: Group, cells: Cells) -> None:
        known = [cell for cell in cells.all if cell.outcome == DONE and len(rates(cell.run)) >= FEWEST]
        self._known = frozenset(known)
        self.tested = group.tested([cell.run for cell in known], rates) if known else None
        """None where there were too few passes."""

    def knows(self, cell: Cell) -> bool:
        """Say whether a cell was done in enough passes."""
        return cell in self._known

    def ratio(self, base: Cell, other: Cell) -> Ratio | None:
        """Return how many times as fast the other one is; None where there were too few passes."""
        if self.tested is None or not (self.knows(base) and self.knows(other)):
            return None
        return self.tested.ratio(base.run, other.run)
