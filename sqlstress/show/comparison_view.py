"""Blocks of a comparison of reports: the list of reports, their differences, then the figures.

Each report has a letter: A, B and so on. A table compares the cases that reports share; each of its
`parts` has the runs of one report. Ratios to the first report are barred if they are meaningless, for example
because the reports differ in the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from sqlstress.analysis.comparison import ComparedTable, Comparison, comparison_findings
from sqlstress.analysis.differences import LETTERS, Difference
from sqlstress.analysis.wording import listing, processes
from sqlstress.experiment import case_label, experiment_of, units_of
from sqlstress.report import Report
from sqlstress.show.blocks import (
    Block,
    Bullets,
    Column,
    Lines,
    Note,
    Paragraph,
    Table,
    case_columns,
    clean,
    conclusions,
    count_cell,
    meanings,
    ms_cell,
    name_end,
    shortened,
    table_of,
    whole_cell,
)
from sqlstress.show.case_table import SYSTEMS, FigureGroups
from sqlstress.show.shown import Presenter, presenter_of
from sqlstress.statistics.units import digits, plural

UNKNOWN = "unknown"
NOT_COMPARABLE = "NOT COMPARABLE"
"""First words of the sentence on a report whose ratios to the first report are meaningless."""
_LONGEST_CASE = 42
_LONGEST_NAME = 22
WIDTH, GAP = 80, 2
"""Width of a terminal, and of the gap between the columns of a table, in characters."""


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Blocks on the cases that several reports share: the work, the figures and the conclusions."""

    compared: ComparedTable
    before: tuple[Block, ...]
    """Blocks above the figures: the measured work, and the differences between the reports."""
    figures: tuple[Block, ...]
    """Tables of figures, and their legend."""
    findings: Bullets
    """Conclusions from the figures."""


def comparison_blocks(comparison: Comparison) -> Iterator[Block]:
    yield from comparison_heading(comparison)
    for view in comparison_tables(comparison):
        yield from (*view.before, *view.figures, view.findings)


def comparison_tables(comparison: Comparison) -> Iterator[ComparisonView]:
    """Yield the blocks for each table of a comparison."""
    for compared in comparison.tables:
        figures: tuple[Block, ...] = (*tables(compared), Note(_legend(compared)))
        findings = conclusions(comparison_findings(compared))
        yield ComparisonView(compared, tuple(_blocks_before(compared)), figures, findings)


def _by_letter(lettered: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group the letters of reports by text: [("A", "wal"), ("B", "wal")] → {"wal": ["A", "B"]}."""
    letters: dict[str, list[str]] = {}
    for letter, text in lettered:
        letters.setdefault(text, []).append(letter)
    return letters


def comparison_heading(comparison: Comparison) -> Iterator[Block]:
    """Yield the list of reports, remarks on published reports, and the numbers of cases left out."""
    yield Paragraph(f"{len(comparison.reports)} reports side by side. Ratios are relative to A.")
    yield _environments_table(comparison)
    lettered = list(zip(LETTERS, comparison.names, comparison.reports, strict=False))
    names = {letter: clean(name) for letter, name, _ in lettered}
    notes = [f"{letter}: {name}." for letter, name in names.items() if len(name) > _LONGEST_NAME]
    notes += [
        f"{letter}: published, not measured or verified by sqlstress: {report.published}."
        for letter, _, report in lettered
        if report.published is not None
    ]
    left_out = [
        f"{digits(len(report.runs) - shown)} of {letter}'s {plural(len(report.runs), 'case')}"
        for (letter, _, report), shown in zip(lettered, comparison.case_counts(), strict=False)
        if shown < len(report.runs)
    ]
    if left_out:
        notes.append(f"Not shown, as no other report has them: {listing(left_out)}.")
    if notes:
        yield Lines(tuple(notes))
    if not comparison.tables:
        yield Paragraph("The reports have no case in common.")


def _environments_table(comparison: Comparison) -> Table:
    columns = (
        Column("", align="left"),
        Column("report", align="left"),
        Column("system", align="left"),
        Column("cores"),
        Column("sync call", align="left", leaves=1),
        Column("sync p50 ms", ("sync", "p50 ms")),
        Column("gets/s in memory"),
    )
    rows = tuple(
        (letter, name_end(name, _LONGEST_NAME), *(cell or UNKNOWN for cell in _environment_cells(report)))
        for letter, name, report in zip(LETTERS, comparison.names, comparison.reports, strict=False)
    )
    return Table(columns, rows)


def _environment_cells(report: Report) -> Iterator[str | None]:
    host, sync = report.environment.host, report.environment.sync
    yield shortened(SYSTEMS.get(host.system, host.system), 12)
    yield None if host.cores is None else whole_cell(host.cores)
    yield shortened(sync.primitive, 16) if sync else None
    yield ms_cell(sync.overwrite_p50_ns) if sync else None
    yield next(
        filter(None, (count_cell(build.memory_gets_per_s) for build in report.environment.builds)), None
    )


def _blocks_before(compared: ComparedTable) -> Iterator[Block]:
    parts = compared.table.parts
    what = _presenter(compared).activity
    work = _by_letter((part.letter, what(part.group)) for part in parts)
    yield Lines(tuple(f"{listing(letters)}: {text}." for text, letters in work.items()))
    barred = [part.letter for index, part in enumerate(parts) if compared.reasons(index)]
    if barred:
        shown = "shown because of --anyway" if compared.anyway else "not shown; use --anyway to show them"
        yield Paragraph(f"{NOT_COMPARABLE} with A: {listing(barred)}. Ratios to A are {shown}.")
        yield Bullets(
            tuple(_values_by_part(each, compared) for each in compared.differences if any(each.barred))
        )
    # Reports may share a warning, so it is shown once, with the letters of these reports.
    warnings = _by_letter(
        (part.letter, warning.text)
        for part in parts
        for warning in part.report.environment.warnings
        if warning.serious
    )
    remarks = [*_other_differences(compared)]
    remarks += [f"{listing(list(dict.fromkeys(letters)))}: {text}" for text, letters in warnings.items()]
    if remarks:
        yield Paragraph("Differences and warnings:")
        yield Bullets(tuple(remarks))


def _other_differences(compared: ComparedTable) -> Iterator[str]:
    """Yield sentences on differences between reports that do not make ratios meaningless."""
    unknown: dict[str, list[str]] = {}
    for difference in compared.differences:
        if any(difference.barred):
            continue
        if len(set(difference.values) - {None}) > 1:
            yield _values_by_part(difference, compared)
        else:
            lacking = zip(compared.table.parts, difference.values, strict=True)
            letters = listing([part.letter for part, value in lacking if value is None])
            unknown.setdefault(letters, []).append(difference.subject)
    for letters, subjects in unknown.items():
        yield f"Unknown for {letters}: {listing(subjects)}."


def _values_by_part(difference: Difference, compared: ComparedTable) -> str:
    lettered = zip(compared.table.parts, difference.values, strict=True)
    values = _by_letter((part.letter, value or "unknown") for part, value in lettered)
    clauses = [f"{listing(letters)}: {value}." for value, letters in values.items()]
    return " ".join((f"{difference.subject[:1].upper()}{difference.subject[1:]}.", *clauses))


def tables(compared: ComparedTable) -> Iterator[Table]:
    """Yield the tables of figures. Each has the first report and up to `Presenter.together` other reports."""
    others = range(1, len(compared.table.parts))
    together = _presenter(compared).together
    for begin in range(0, len(others), together):
        yield from _fitting_tables(compared, (0, *others[begin : begin + together]))


def _presenter(compared: ComparedTable) -> Presenter:
    return presenter_of(compared.table.parts[0].case)


def _compared_figures(compared: ComparedTable) -> FigureGroups:
    parts = compared.table.parts
    runs = tuple(run for part in parts for run in part.measured())
    return _presenter(compared).comparison_figures(replace(parts[0].group, runs=runs))


def _fitting_tables(compared: ComparedTable, indices: Sequence[int]) -> Iterator[Table]:
    """Yield tables of the reports with these indices, each with as many figures as fit into WIDTH."""
    rows = range(len(compared.table.keys))
    figures = labels = _labels(compared)
    table = table_of(rows, labels)
    for more in _column_groups(compared, indices):
        wider = table_of(rows, (*figures, *more))
        if _width(wider) > WIDTH and len(table.columns) > len(labels):
            yield table
            figures, wider = labels, table_of(rows, (*labels, *more))
        figures, table = (*figures, *more), wider
    if len(table.columns) > len(labels):
        yield table


def _column_groups(compared: ComparedTable, indices: Sequence[int]) -> Iterator[tuple[Column[int], ...]]:
    """Yield the columns that a table must keep together: those of a group of figures.

    If the columns of a group are wider than WIDTH together, yield the columns of each figure separately.
    """
    rows, labels = range(len(compared.table.keys)), _labels(compared)
    for measures in _compared_figures(compared):
        figures = [tuple(measure.column(compared, index) for index in indices) for measure in measures]
        together = tuple(chain.from_iterable(figures))
        fits = _width(table_of(rows, (*labels, *together))) <= WIDTH
        yield from [together] if fits else figures


def _width(table: Table) -> int:
    cells = zip(*table.rows, strict=True)
    widths = (
        max(map(len, (*column.heading, *column_cells)))
        for column, column_cells in zip(table.columns, cells, strict=True)
    )
    return sum(width + GAP for width in widths) - GAP


def _legend(compared: ComparedTable) -> str:
    table = compared.table
    units = " or ".join(dict.fromkeys(units_of(part.case) for part in table.parts))
    rows, indices = range(len(table.keys)), range(len(table.parts))
    measures = chain.from_iterable(_compared_figures(compared))
    shown = table_of(rows, [measure.column(compared, index) for measure in measures for index in indices])
    return f"{'; '.join(meanings(shown)).replace('{units}', units)}."


def _labels(compared: ComparedTable) -> tuple[Column[int], ...]:
    table = compared.table
    if table.sweeps:
        columns = case_columns(table.case)
        return columns if table.by_layout else columns[1:]
    # If all cases have one number of processes, the heading of the column shows the number.
    counts = {run.case.concurrency for part in table.parts for run in part.measured()}
    by = f"by {processes(min(counts))}" if len(counts) == 1 and 0 not in counts else ""

    def cell(row: int) -> str:
        case = table.case(row)
        several = len(counts - {0}) > 1
        return shortened(case_label(case) if several else experiment_of(case).work_label(case), _LONGEST_CASE)

    return (Column(", ".join(filter(None, ("case", by))), (by, "case"), "left", cell=cell),)
