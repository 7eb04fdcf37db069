"""How the user's own work is shown: a row for each number of processes, latencies by kind of operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.group import Group
from sqlstress.analysis.scaling import throughput
from sqlstress.analysis.wording import whole
from sqlstress.display import side_by_side, sweeps
from sqlstress.display.at_a_rate.findings import at_a_rate
from sqlstress.display.at_a_rate.plots import plots as plots_at_a_rate
from sqlstress.display.at_a_rate.table import NOTHING
from sqlstress.display.at_a_rate.table import blocks as table_at_a_rate
from sqlstress.display.blocks import Block, Paragraph
from sqlstress.display.measures import RATIO, SCALING, SPREAD, TPS
from sqlstress.display.plot import Plot
from sqlstress.display.shown import Shown, Topic, Value
from sqlstress.display.sweeps.throughput import over_time
from sqlstress.own.shown.table import HELD, build, latencies, legend, proved
from sqlstress.own.shown.waiting import waiting
from sqlstress.report import Run
from sqlstress.report.case import Case


class OwnShown(Shown):
    """An experiment inherits from it, and says what its processes do."""

    topics: ClassVar[tuple[Topic, ...]] = (throughput, at_a_rate, waiting, partial_proofs, trust)
    meanings: ClassVar[Mapping[str, str]] = NOTHING
    """Columns of the table that mean something else here."""
    proves = HELD
    together = 3
    measures = ((TPS, RATIO), (SPREAD,), SCALING)

    def work(self, case: Case) -> str:
        """Return what the processes of a case do, as the beginning of a sentence."""
        return case.workload

    def what(self, group: Group) -> str:
        works = dict.fromkeys(map(self.work, (run.case for run in group.runs)))
        return "; ".join((*works, *_checked(group.case)))

    def blocks(self, group: Group) -> Iterator[Block]:
        if group.case.arrivals:
            yield from table_at_a_rate(group, self.meanings, proved(group))
        else:
            yield from side_by_side.blocks(group)
            table = build(group)
            yield table
            yield Paragraph(legend(group, table, self.meanings))
        yield from latencies(group)

    def plots(self, group: Group) -> Iterator[Plot]:
        if group.case.arrivals:
            yield from plots_at_a_rate(group)
            yield from over_time(group)
        else:
            yield from sweeps.plots(group)

    def rate(self, run: Run) -> float | None:
        return run.median_tps()

    def loads(self, cases: Sequence[Case]) -> list[str]:
        return list(map(self.work, cases))

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        return CASE


def _checked(case: Case) -> Iterator[str]:
    data = case.spec.data
    made = " and ".join(filter(None, (data.database and f"a copy of {data.database}", data.setup)))
    if made:
        yield f"database: {made}"
    if data.checks:
        count = len(data.checks)
        yield f"{whole(count)} check{'s' * (count != 1)} before, during and after"


def _of_data(field: str) -> Callable[[Run], Value]:
    def value(run: Run) -> Value:
        data = getattr(run.case.spec, "data", None)
        found: Value = getattr(data, field) if data else None
        return found

    return value


def _checks(run: Run) -> Value:
    data = getattr(run.case.spec, "data", None)
    return len(data.checks) if data else None


CASE: dict[str, Callable[[Run], Value]] = {
    "setup": _of_data("setup"),
    "database": _of_data("database"),
    "checks": _checks,
}
