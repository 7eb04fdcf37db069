"""How cycles are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.comparison import Compared
from sqlstress.analysis.group import Group
from sqlstress.analysis.proof import partial_proofs
from sqlstress.display.blocks import Block
from sqlstress.display.figures import ms_cell, whole_cell
from sqlstress.display.measures import RATIO, Measure, of_run, rate_cell
from sqlstress.display.plot import Plot
from sqlstress.display.shown import Shown
from sqlstress.experiments.cycles.shown import plots, view
from sqlstress.experiments.cycles.shown.compared import each_cycle
from sqlstress.experiments.cycles.shown.findings import cycles
from sqlstress.experiments.cycles.shown.times import times_of, total_ns
from sqlstress.report import Run, Trial
from sqlstress.statistics.units import NS_PER_S


def _slowest(run: Run, trial: Trial) -> tuple[float, int] | None:
    """Return the slowest cycle but for the first: its time in ns, and its number."""
    times = times_of(run.case, trial)
    return times.slowest[:2] if times and times.slowest else None


class CyclesShown(Shown):
    """Settings, each cycle, and the checkpoints among them."""

    topics = (cycles, partial_proofs)
    measures = (
        (
            Measure(
                "{letter} cycles/s",
                ("{letter} {system}", "cycles/s"),
                "cycles/s: cycles a second, all processes together, without the closing checkpoint",
                rate_cell,
            ),
            RATIO,
        ),
        (
            Measure(
                "{letter} total ms",
                ("{letter}", "total ms"),
                "total: what they took",
                of_run(lambda run, trial: ms_cell(total_ns(run.case, trial))),
            ),
            Measure(
                "{letter} slowest ms",
                ("{letter} slow-", "est ms"),
                "slowest: the slowest cycle but for the first",
                of_run(lambda run, trial: ms_cell(slowest[0]) if (slowest := _slowest(run, trial)) else None),
            ),
            Measure(
                "{letter} slowest cycle",
                ("{letter} in", "cycle"),
                "",
                of_run(
                    lambda run, trial: whole_cell(slowest[1]) if (slowest := _slowest(run, trial)) else None
                ),
            ),
        ),
    )

    def what(self, group: Group) -> str:
        return view.what(group)

    def blocks(self, group: Group) -> Iterator[Block]:
        return view.blocks(group)

    def plots(self, group: Group) -> Iterator[Plot]:
        return plots.plots(group)

    def compared_plots(self, compared: Compared, names: Sequence[str]) -> Iterator[Plot]:
        yield from super().compared_plots(compared, names)
        yield from each_cycle(compared, names, self)

    def rate(self, run: Run) -> float | None:
        trial = run.shown()
        total = total_ns(run.case, trial) if trial else 0
        return NS_PER_S * run.case.spec.cycles * run.case.concurrency / total if total > 0 else None
