"""How methods are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from sqlstress.analysis.group import Group
from sqlstress.analysis.proof import partial_proofs
from sqlstress.analysis.wording import whole
from sqlstress.display.blocks import Block
from sqlstress.display.plot import Plot
from sqlstress.display.shown import Shown
from sqlstress.experiments.methods.face import tricks_of
from sqlstress.experiments.methods.shown import plots, view
from sqlstress.experiments.methods.shown.findings import methods
from sqlstress.report import Run
from sqlstress.report.case import Case


class MethodsShown(Shown):
    """The published matrices and summaries, and what goes further."""

    topics = (methods, partial_proofs)

    def what(self, group: Group) -> str:
        return view.what(group)

    def blocks(self, group: Group) -> Iterator[Block]:
        return view.blocks(group)

    def plots(self, group: Group) -> Iterator[Plot]:
        return plots.plots(group)

    def tracked(self, run: Run) -> Iterator[float | None]:
        return (trial.rows_per_s for trial in run.valid if trial.outcome == "done")

    def tracked_unit(self, case: Case) -> str:
        return "rows"

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Of each method the largest scale has a bar, phase by phase."""
        return case.spec.phase, (tricks_of(case), case.driver, case.concurrency)

    def bar_name(self, case: Case) -> str:
        return f"{tricks_of(case)}, {case.driver}, {whole(case.spec.scale)}"
