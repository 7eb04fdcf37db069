"""The table, plot and texts of methods, as pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial

from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import processes
from sqlstress.experiments.classics.bars import bar_view
from sqlstress.experiments.classics.methods import tricks_of
from sqlstress.experiments.classics.methods_findings import (
    BARE,
    BASE,
    DONE,
    LIMIT,
    TIMEOUT,
    WRONG,
    Cell,
    Cells,
    methods,
    rates,
)
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    NAME,
    PROCESSES_COLUMN,
    VERIFIED,
    Block,
    Column,
    Figure,
    Legend,
    Table,
    count_cell,
    seconds_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.plots import Plot, axis, name
from sqlstress.show.shown import Shown
from sqlstress.statistics.units import format_count, whole

_FAILURES = {TIMEOUT: "TIMEOUT", LIMIT: "LIMIT", WRONG: "FAILED"}


def _rate(cell: Cell) -> str:
    """Write the rows per second of a cell that was done, with their spread, or the reason if it was not."""
    if cell.outcome != DONE:
        return _FAILURES.get(cell.outcome, case_table.FAILED)
    return case_table.marked_cell(cell.run, count_cell(cell.rows_per_s), rates(cell.run))


def _factor(ratio: float) -> str:
    """Write a ratio in at most six characters: "1x", "1.2x", "90x", "17kx"."""
    if ratio < 0.095:
        return "<0.01x" if ratio < 0.01 else f"{ratio:.2f}x"
    if ratio < 9.95:
        return "1x" if ratio == 1 else f"{ratio:.1f}x"
    if ratio < 9999.5:
        return f"{ratio:.0f}x"
    return f"{ratio / 1000:.0f}kx" if ratio < 999_500 else f"{ratio:.0e}x"


def _over(base_of: Callable[[Cell], Cell | None]) -> Callable[[Cell], str | None]:
    """Return the cell of a figure's ratio to that of another cell."""

    def ratio(cell: Cell) -> str | None:
        base = base_of(cell)
        known = base and base.rows_per_s and cell.rows_per_s
        return _factor(cell.rows_per_s / base.rows_per_s) if base and known else None

    return ratio


def _columns(cells: Cells) -> Iterator[Figure[Cell]]:
    yield Figure(Column("phase", align="left", role=NAME), lambda cell: cell.series.phase)
    yield Figure(Column("method", align="left", role=NAME), lambda cell: cell.series.tricks)
    yield Figure(Column("rows", role=NAME), lambda cell: format_count(cell.rows))
    if len(cells.drivers) > 1:
        yield Figure(Column("driver", align="left", role=NAME), lambda cell: cell.series.driver)
    if len(cells.processes) > 1:
        yield Figure(PROCESSES_COLUMN, lambda cell: whole_cell(cell.series.processes))
    yield Figure(Column("rows/s", ("rows", "per s")), _rate)
    yield Figure(Column(f"{BASE} = 1", (BASE, "= 1")), _over(lambda cell: cells.like(cell, tricks=BASE).best))
    if {BARE} < {*cells.drivers}:
        yield Figure(
            Column(f"{BARE} = 1", (BARE, "= 1")),
            _over(lambda cell: cells.like(cell, driver=BARE).at(cell.scale)),
        )
    yield Figure(Column("time s"), lambda cell: seconds_cell(cell.seconds) if cell.seconds else None)
    yield VERIFIED


class MethodsShown(Shown):
    """A row for each cell, and a plot of their times."""

    topics = (methods, partial_proofs)

    def what(self, group: Group) -> str:
        return "Rows are written and read one by one (1b1), in bulk (BLK), from JSON and inside SQLite (SPC)"

    def blocks(self, group: Group) -> Iterator[Block]:
        cells = Cells(group)
        if cells.all:
            table = table_of(cells.by_work(), (*_columns(cells),), ("time s", f"{BARE} = 1"))
            yield table
            yield Legend(table, partial(_legend, group))

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield the rows per second of each method at its best scale, phase by phase."""
        cells = Cells(group)
        views: dict[str, dict[str, list[tuple[str, float]]]] = {}
        for cell in cells.all:
            if cell is cell.series.best:
                by = cell.series.driver
                if len(cells.processes) > 1:
                    by = f"{by}, {processes(cell.series.processes)}"
                bars = views.setdefault(cell.series.phase, {}).setdefault(name(by), [])
                bars.append((name(cell.series.tricks), cell.rows_per_s))
        if views:
            heights = axis("rows/s", type="log")
            shown = tuple(bar_view(phase, heights, bars) for phase, bars in views.items())
            yield Plot("Methods", "The best scale of each method, on a logarithmic scale.", shown, wide=True)

    def tracked(self, run: Run) -> Iterator[float | None]:
        return (trial.rows_per_s for trial in run.ended)

    def tracked_unit(self, case: Case) -> str:
        return "rows"

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Return the phase and the series: the largest scale of each method has a bar."""
        return case.spec.phase, (tricks_of(case), case.driver, case.concurrency)

    def bar_name(self, case: Case) -> str:
        return f"{tricks_of(case)}, {case.driver}, {whole(case.spec.scale)}"


def _legend(group: Group, table: Table) -> Iterator[str]:
    yield "WAL: journal mode WAL, otherwise DELETE; TSC: all in one transaction"
    yield f"{BASE} = 1: relative to the best figure of {BASE} in the same phase"
    if f"{BARE} = 1" in table.headers:
        yield f"{BARE} = 1: relative to {BARE}, with the same method and as many rows"
    samples = next((run.case.spec.samples for run in group.runs if run.case.spec.phase == "query"), 0)
    if samples:
        rows = format_count(samples * (samples - 1) // 2)
        yield f"queries read a table of {rows} results: all pairs of {format_count(samples)} samples"
    yield from case_table.spread_legend(group, "figure")
    yield "TIMEOUT: given up, and not tried at larger scales; LIMIT: SQLite rejects such a statement"
    yield from verified_legend(group, "the tables and the answers are right")
