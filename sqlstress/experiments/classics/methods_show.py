"""The table of methods, as pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.group import Group
from sqlstress.experiments.classics.methods_findings import (
    BARE,
    BASE,
    DONE,
    LIMIT,
    TIMEOUT,
    WRONG,
    MethodsCell,
    MethodsCells,
    best,
    methods,
    rates,
)
from sqlstress.experiments.classics.spec import tricks_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    NAME,
    VERIFIED,
    Block,
    Column,
    Legend,
    count_cell,
    seconds_cell,
    table_of,
    verified_legend,
)
from sqlstress.show.plots import Plot
from sqlstress.show.shown import Presenter
from sqlstress.statistics.units import digits, format_count

_FAILURES = {TIMEOUT: "TIMEOUT", LIMIT: "LIMIT", WRONG: "FAILED"}


def _rate(cell: MethodsCell) -> str:
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


def _relative(base_of: Callable[[MethodsCell], MethodsCell | None]) -> Callable[[MethodsCell], str | None]:
    """Return the cell of the ratio of a rate to that of another cell."""

    def ratio(cell: MethodsCell) -> str | None:
        base = base_of(cell)
        known = base and base.rows_per_s and cell.rows_per_s
        return _factor(cell.rows_per_s / base.rows_per_s) if base and known else None

    return ratio


def _columns(group: Group, cells: MethodsCells) -> Iterator[Column[MethodsCell]]:
    def base(cell: MethodsCell) -> MethodsCell | None:
        return best(cells.series(cell.phase, BASE, cell.driver))

    def bare(cell: MethodsCell) -> MethodsCell | None:
        same = cells.series(cell.phase, cell.tricks, BARE)
        return next((other for other in same if other.scale == cell.scale), None)

    yield Column("phase", align="left", role=NAME, cell=lambda cell: cell.phase)
    yield Column(
        "method",
        align="left",
        role=NAME,
        cell=lambda cell: cell.tricks,
        meaning="WAL: journal mode WAL, otherwise DELETE; TSC: all in one transaction",
    )
    yield Column("rows", role=NAME, cell=lambda cell: format_count(cell.rows))
    if len(cells.drivers) > 1:
        yield Column("driver", align="left", role=NAME, cell=lambda cell: cell.driver)
    yield Column("rows/s", ("rows", "per s"), cell=_rate)
    yield Column(
        f"{BASE} = 1",
        (BASE, "= 1"),
        cell=_relative(base),
        meaning=f"{BASE} = 1: relative to the best figure of {BASE} in the same phase",
    )
    if {BARE} < {*cells.drivers}:
        yield Column(
            f"{BARE} = 1",
            (BARE, "= 1"),
            cell=_relative(bare),
            meaning=f"{BARE} = 1: relative to {BARE}, with the same method and as many rows",
            leaves=20,
        )
    yield Column("time s", cell=lambda cell: seconds_cell(cell.seconds) if cell.seconds else None, leaves=10)
    yield VERIFIED.explained(_legend(group))


def _legend(group: Group) -> Iterator[str]:
    """Yield the clauses of the legend that depend on the runs."""
    samples = next((run.case.spec.samples for run in group.runs if run.case.spec.phase == "query"), 0)
    if samples:
        rows = format_count(samples * (samples - 1) // 2)
        yield f"queries read a table of {rows} results: all pairs of {format_count(samples)} samples"
    yield from case_table.spread_legend(group, "figure")
    yield "TIMEOUT: given up, and not tried at larger scales; LIMIT: SQLite rejects such a statement"
    yield from verified_legend(group, "the tables and the answers are right")


class MethodsShown(Presenter):
    """A row for each cell."""

    topics = (methods, partial_proofs)

    def activity(self, group: Group) -> str:
        return "Rows are written and read one by one (1b1), in bulk (BLK), from JSON and inside SQLite (SPC)"

    def blocks(self, group: Group) -> Iterator[Block]:
        cells = MethodsCells(group)
        if cells.all:
            table = table_of(cells.by_work(), (*_columns(group, cells),))
            yield table
            yield Legend(table)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield no plots: the standard ones draw processes, in which these cases do not differ."""
        return iter(())

    def tracked_rates(self, run: Run) -> Iterator[float | None]:
        return (trial.rows_per_s for trial in run.ended)

    def tracked_unit(self, case: Case) -> str:
        return "rows"

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Return the phase and the series: the largest scale of each method has a bar."""
        return case.spec.phase, (tricks_of(case), case.driver, case.concurrency)

    def bar_name(self, case: Case) -> str:
        return f"{tricks_of(case)}, {case.driver}, {digits(case.spec.scale)}"
