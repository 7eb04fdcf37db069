"""The tables of a comparison: where the reports come from, and their figures side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.comparison import LETTERS, Compared, Comparison
from sqlstress.analysis.wording import processes
from sqlstress.display.blocks import NAME, Column, Table
from sqlstress.display.clean import clean, shortened
from sqlstress.display.figures import Figure, count_cell, layout_column, ms_cell, table_of, whole_cell
from sqlstress.display.measures import SYSTEMS, Measure
from sqlstress.display.shown import Shown
from sqlstress.experiment import face_of
from sqlstress.report import Report

UNKNOWN = "unknown"
_LONGEST_CASE = 42
_LONGEST_NAME = 22
WIDTH, GAP = 80, 2
"""Of a terminal, and between the columns of a table."""


def surroundings(comparison: Comparison) -> Table:
    """Return a table of the reports: who is who, and what the figures of each depend on."""
    named = zip(LETTERS, comparison.names, comparison.reports, strict=False)
    return Table(
        (
            Column("", ("", ""), "left"),
            Column("report", ("", "report"), "left"),
            Column("system", ("", "system"), "left"),
            Column("cores", ("", "cores")),
            Column("sync call", ("sync", "call"), "left"),
            Column("sync p50 ms", ("sync", "p50 ms")),
            Column("gets/s in memory", ("gets/s in", "memory")),
        ),
        tuple(
            (letter, _ending(name), *(cell or UNKNOWN for cell in _surroundings(report)))
            for letter, name, report in named
        ),
        leaving=("sync call",),
    )


def _ending(name: str) -> str:
    """Return the end of a long name: there the names of files differ."""
    cleaned = clean(name)
    return cleaned if len(cleaned) <= _LONGEST_NAME else f"..{cleaned[2 - _LONGEST_NAME :]}"


def long_names(comparison: Comparison) -> Iterator[str]:
    """Yield the names of which the table of the reports shows the end only."""
    for letter, name in zip(LETTERS, comparison.names, strict=False):
        if len(clean(name)) > _LONGEST_NAME:
            yield f"{letter}: {clean(name)}."


def _surroundings(report: Report) -> Iterator[str | None]:
    host, sync = report.environment.host, report.environment.sync
    yield shortened(SYSTEMS.get(host.system, host.system), 12)
    yield None if host.cores is None else whole_cell(host.cores)
    yield shortened(sync.primitive, 16) if sync else None
    yield ms_cell(sync.overwrite_p50_ns) if sync else None
    gets = (count_cell(build.memory_gets_per_s) for build in report.environment.builds)
    yield next(filter(None, gets), None)


def tables(compared: Compared) -> Iterator[Table]:
    """Yield the tables of figures, each with so many reports as fit; the first report is in all of them."""
    others = range(1, len(compared.table.parts))
    together = _shown(compared).together
    for begin in range(0, len(others), together):
        yield from _fitted(compared, (0, *others[begin : begin + together]))


def _fitted(compared: Compared, places: Sequence[int]) -> Iterator[Table]:
    """Yield tables of some parts: measures that fit beside each other stand in one."""
    rows = range(len(compared.table.keys))
    labels = _labels(compared)
    table = table_of(rows, labels)
    figures = labels
    for measures in _shown(compared).measures:
        more = [_figure(compared, measure, place) for measure in measures for place in places]
        wider = table_of(rows, [*figures, *more])
        if _width(wider) > WIDTH and len(table.columns) > len(labels):
            yield table
            figures, wider = labels, table_of(rows, [*labels, *more])
        figures, table = [*figures, *more], wider
    if len(table.columns) > len(labels):
        yield table


def _shown(compared: Compared) -> Shown:
    return face_of(compared.table.parts[0].case).show()


def _width(table: Table) -> int:
    """Return how wide a table is on a terminal, its gaps included."""
    cells = zip(*table.rows, strict=True)
    widths = (
        max(map(len, (*column.heading, *own))) for column, own in zip(table.columns, cells, strict=True)
    )
    return sum(width + GAP for width in widths) - GAP


def legend(compared: Compared) -> str:
    """Return what the columns of the tables mean, in a sentence."""
    units = " or ".join(dict.fromkeys(face_of(part.case).units for part in compared.table.parts))
    meanings = [
        measure.meaning.format(units=units)
        for measures in _shown(compared).measures
        for measure in measures
        if _has_any(compared, measure)
    ]
    return f"{'; '.join(filter(None, meanings))}."


def _has_any(compared: Compared, measure: Measure) -> bool:
    table = compared.table
    return any(
        measure.cell(compared, row, place)
        for row in range(len(table.keys))
        for place in range(len(table.parts))
    )


def _figure(compared: Compared, measure: Measure, place: int) -> Figure[int]:
    """Return the column of a measure and a part."""
    return Figure(measure.column(compared.table.parts[place]), lambda row: measure.cell(compared, row, place))


def _labels(compared: Compared) -> list[Figure[int]]:
    """Return the columns that say which case a row is."""
    case = compared.table.case
    if not compared.table.sweeps:
        return [_case(compared)]
    column = layout_column(run.case for part in compared.table.parts for run in part.runs if run)
    files = Figure[int](column, lambda row: whole_cell(case(row).buckets))
    processes = Figure[int](
        Column("processes", ("proc-", "esses"), role=NAME), lambda row: whole_cell(case(row).concurrency)
    )
    rate = Figure[int](
        Column("due per s", ("due", "per s"), role=NAME),
        lambda row: count_cell(arrivals.rate) if (arrivals := case(row).arrivals) else None,
    )
    return [files, processes, rate] if compared.table.by_layout else [processes, rate]


def _case(compared: Compared) -> Figure[int]:
    """Return the column with the work of each case; the number of processes is told once if it is one."""
    case = compared.table.case
    counts = {run.case.concurrency for part in compared.table.parts for run in part.measured()}
    if len(counts - {0}) > 1:
        return Figure(Column("case", ("", "case"), "left"), lambda row: _short(case(row).label))
    by = f"by {processes(counts.pop())}" if counts and 0 not in counts else ""
    name = ", ".join(filter(None, ("case", by)))
    return Figure(
        Column(name, (by, "case"), "left"), lambda row: _short(face_of(case(row)).work_of(case(row)))
    )


def _short(words: str) -> str:
    return shortened(words, _LONGEST_CASE)
