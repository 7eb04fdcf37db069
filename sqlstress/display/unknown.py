"""How cases are shown whose experiment is not known: what all cases have in common, and nothing else."""

from __future__ import annotations

from sqlstress.analysis.group import Group
from sqlstress.display.measures import RATIO, TPS
from sqlstress.display.shown import Shown
from sqlstress.report import Run


class ShownUnknown(Shown):
    """Says that it does not know what the processes did."""

    measures = ((TPS, RATIO),)

    def what(self, group: Group) -> str:
        return (
            f"The experiment {group.case.workload!r:.60} is not known to this version of sqlstress, which "
            "can show only what all experiments have in common"
        )

    def rate(self, run: Run) -> float | None:
        return run.median_tps()
