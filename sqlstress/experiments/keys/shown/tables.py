"""The tables of primary keys: time, space, and the published figures beside those of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlstress.analysis.disturbance import disturbed
from sqlstress.analysis.group import Group
from sqlstress.display import case_table
from sqlstress.display.blocks import NAME, Column, Table
from sqlstress.display.case_table import FAILED, PROCESSES, ROWS_PER_S, of_latency, of_trial
from sqlstress.display.figures import (
    MISSING,
    VERIFIED,
    Figure,
    count_cell,
    seconds_cell,
    share_cell,
    spread_cell,
    table_of,
    whole_cell,
)
from sqlstress.experiments.keys.shown.cells import Cell, Cells, cell_of, ratio
from sqlstress.experiments.keys.shown.published import Beside, Published
from sqlstress.experiments.keys.spec import Picks
from sqlstress.report import Run, Trial
from sqlstress.statistics.ratios import spread

BASE = "uuid4"
KIND = "picks"
_BYTES_IN_MB = 1e6


@dataclass(frozen=True, slots=True)
class Row(case_table.Row):
    """A case, the trial that stands for it, and what it is compared with."""

    picks: Picks
    cell: Cell | None
    """Its figures; None where they can't be believed."""
    base: Cell | None
    """The figures of the same case with uuid4."""


def rows_of(group: Group) -> list[Row]:
    """Return the rows of a group, in the order of its runs."""
    cells = Cells(group)
    return [_row(run, run.case.spec, cells) for run in group.runs if run.case.spec]


def _row(run: Run, picks: Picks, cells: Cells) -> Row:
    cell = cell_of(run)
    return Row(run, run.shown(), picks, cell, cells.twin(cell, id_type=BASE) if cell else None)


def time_table(rows: list[Row]) -> Table:
    """Return the table of times."""
    return table_of(rows, (*_case(rows), *TIME), ("TPS", "p50 ms", "retries"))


def space_table(rows: list[Row]) -> Table:
    """Return the table of what the databases take; without rows where none was measured."""
    measured = [row for row in rows if row.cell and row.cell.space]
    return table_of(measured, (*_case(rows), *SPACE), ("table fan-out", "bytes per row", "table"))


def published_table(compared: Iterable[Beside]) -> Table:
    """Return the published figures beside the same ones here."""
    return table_of(list(compared), PUBLISHED)


def _case(rows: list[Row]) -> tuple[Figure[Row], ...]:
    """Return the columns that say which case it is: only those in which the rows differ, and the type."""
    makers = {row.picks.made_by for row in rows}
    sizes = {row.run.case.concurrency for row in rows}
    return (
        Figure(Column("schema", ("", "schema"), "left", NAME), lambda row: row.picks.schema),
        Figure(Column("id type", ("", "id type"), "left", NAME), lambda row: row.picks.id_type),
        *[Figure(Column("made by", ("made", "by"), "left", NAME), _made_by)] * (len(makers) > 1),
        *[PROCESSES] * (len(sizes) > 1),
    )


def _made_by(row: Row) -> str | None:
    return row.picks.made_by if row.picks.own_id else None


def _seconds(row: Row) -> str | None:
    if row.trial is None:
        return FAILED
    # The work is the same in every pass: its time is as far off as its rate.
    off = spread_cell(spread([*row.run.rates().values()]))
    return f"{'~' * disturbed(row.run)}{seconds_cell(row.trial.seconds) or MISSING}{off}"


def _retries(trial: Trial) -> str | None:
    counts = [count for count in (trial.busy, trial.busy_snapshot) if count is not None]
    return count_cell(sum(counts)) if counts else None


def _beside(figure: str) -> Callable[[Row], str | None]:
    return lambda row: share_cell(ratio(row.cell, row.base, figure))


def _space(figure: str, written: Callable[[float], str | None]) -> Callable[[Row], str | None]:
    def cell(row: Row) -> str | None:
        value = row.cell.figure(figure) if row.cell else None
        return None if value is None else written(value)

    return cell


def mb_cell(value: float) -> str | None:
    """Write bytes as MB, millions of bytes."""
    mb = value / _BYTES_IN_MB
    return count_cell(mb) if mb >= 1000 else f"{mb:.2f}"


def percent_cell(share: float) -> str:
    """Write a share as a percentage with one decimal, as sqlite3_analyzer does."""
    return f"{100 * share:.1f}%" if share < 1000 else f"{100 * share:.0e}%"


def fan_out_cell(children: float) -> str:
    """Write an average fan-out, which is a whole number."""
    return whole_cell(round(children))


TIME: tuple[Figure[Row], ...] = (
    Figure(Column("time s", ("time", "s")), _seconds),
    Figure(Column("uuid4 = 1 (time)", ("uuid4", "= 1")), _beside("time")),
    ROWS_PER_S,
    Figure(Column("TPS", ("", "TPS")), of_trial(lambda trial: count_cell(trial.tps))),
    Figure(Column("p50 ms", ("p50", "ms")), of_latency(KIND, lambda latency: latency.p50_ns)),
    Figure(Column("p99 ms", ("p99", "ms")), of_latency(KIND, lambda latency: latency.p99_ns)),
    Figure(Column("retries", ("re-", "tries")), of_trial(_retries)),
    VERIFIED,
)
SPACE: tuple[Figure[Row], ...] = (
    Figure(Column("file MB", ("file", "MB")), _space("file", mb_cell)),
    Figure(Column("uuid4 = 1 (file)", ("uuid4", "= 1")), _beside("file")),
    Figure(Column("bytes per row", ("bytes", "per row")), _space("bytes per row", count_cell)),
    Figure(Column("table", ("", "table")), _space("table's share", percent_cell)),
    Figure(Column("indices", ("", "indices")), _space("indices' share", percent_cell)),
    Figure(Column("table fan-out", ("table", "fan-out")), _space("table's fan-out", fan_out_cell)),
    Figure(Column("indices fan-out", ("indices", "fan-out")), _space("indices' fan-out", fan_out_cell)),
)

_WRITTEN: dict[str, tuple[str, Callable[[float], str | None]]] = {
    "time": ("time, s", seconds_cell),
    "file": ("file, MB", mb_cell),
    "indices' share": ("indices' share", percent_cell),
    "indices' fan-out": ("indices' fan-out", fan_out_cell),
    "rows/s": ("rows/s", count_cell),
}
"""Figure → what it is called with its unit, and how it is written."""


def _figure(published: Published) -> str:
    if published.beside is None:
        return _WRITTEN[published.figure][0]
    schema, id_type = published.beside
    return f"{published.figure}, {id_type if schema == published.schema else schema} = 1"


def _written(published: Published, value: float) -> str | None:
    return (share_cell if published.beside else _WRITTEN[published.figure][1])(value)


PUBLISHED: tuple[Figure[Beside], ...] = (
    Figure(Column("schema", ("", "schema"), "left", NAME), lambda one: one.published.schema),
    Figure(Column("id type", ("", "id type"), "left", NAME), lambda one: one.published.id_type),
    Figure(Column("figure", ("", "figure"), "left"), lambda one: _figure(one.published)),
    Figure(Column("published", ("pub-", "lished")), lambda one: _written(one.published, one.published.value)),
    Figure(Column("here", ("", "here")), lambda one: _written(one.published, one.here)),
)
