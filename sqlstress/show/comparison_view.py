"""How reports are shown side by side: who they are, what they differ in, then the figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlstress.analysis.comparison import LETTERS, Compared, Comparison, Difference, Part, conclude
from sqlstress.analysis.wording import listing, processes, whole
from sqlstress.experiment import face_of
from sqlstress.report import Report
from sqlstress.show.blocks import (
    NAME,
    Block,
    Bullets,
    Column,
    Figure,
    Lines,
    Paragraph,
    Table,
    clean,
    count_cell,
    layout_column,
    ms_cell,
    shortened,
    table_of,
    whole_cell,
)
from sqlstress.show.case_table import SYSTEMS, Measure
from sqlstress.show.phrases import phrase
from sqlstress.show.shown import Shown

# The tables of a comparison: where the reports come from, and their figures side by side.


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
        lambda row: count_cell(rate) if (rate := case(row).rate) else None,
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
        Column(name, (by, "case"), "left"), lambda row: _short(face_of(case(row)).words.work_of(case(row)))
    )


def _short(words: str) -> str:
    return shortened(words, _LONGEST_CASE)


NOT_COMPARABLE = "NOT COMPARABLE"
"""How the sentence begins that forbids a ratio."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What is shown of a table of several reports, in its order."""

    compared: Compared
    before: tuple[Block, ...]
    """What was done, and what the reports differ in: it stands above every figure."""
    figures: tuple[Block, ...]
    findings: Bullets


def comparison_blocks(comparison: Comparison) -> Iterator[Block]:
    """Yield everything that a comparison shows."""
    yield from comparison_heading(comparison)
    for beside in comparison_tables(comparison):
        yield from (*beside.before, *beside.figures, beside.findings)


def comparison_heading(comparison: Comparison) -> Iterator[Block]:
    """Yield which reports they are."""
    yield Paragraph(f"{len(comparison.reports)} reports side by side; ratios are to A.")
    yield surroundings(comparison)
    yield from _notes(comparison)
    if not comparison.tables:
        yield Paragraph("They have no case in common.")


def comparison_tables(comparison: Comparison) -> Iterator[Beside]:
    """Yield what is shown of each table."""
    for compared in comparison.tables:
        yield Beside(
            compared,
            tuple(_before(compared)),
            (*tables(compared), Paragraph(legend(compared))),
            Bullets(tuple(phrase(finding) for finding in conclude(compared))),
        )


def _notes(comparison: Comparison) -> Iterator[Block]:
    """Yield the names that are too long for a table, which reports are published, and what is left out."""
    notes = list(long_names(comparison))
    notes += [
        f"{letter}: published, neither measured nor verified by sqlstress: {report.published}."
        for letter, report in zip(LETTERS, comparison.reports, strict=False)
        if report.published is not None
    ]
    left_out = [
        f"{whole(len(report.runs) - shown)} of {letter}'s {whole(len(report.runs))} cases"
        for letter, report, shown in zip(LETTERS, comparison.reports, comparison.shown(), strict=False)
        if shown < len(report.runs)
    ]
    if left_out:
        notes.append(f"Not shown, for want of a counterpart: {listing(left_out)}.")
    if notes:
        yield Lines(tuple(notes))


def _before(compared: Compared) -> Iterator[Block]:
    yield Lines(tuple(_work(compared)))
    yield from _barred(compared)
    said = (*_said(compared), *_warnings(compared.table.parts))
    if said:
        yield Paragraph("To know before the figures:")
        yield Bullets(said)


def _work(compared: Compared) -> Iterator[str]:
    """Yield what the processes of each report did; the same work is told once."""
    what = face_of(compared.table.parts[0].case).show().what
    letters: dict[str, list[str]] = {}
    for part in compared.table.parts:
        letters.setdefault(what(part.group), []).append(part.letter)
    for text, own in letters.items():
        yield f"{listing(own)}: {text}."


def _barred(compared: Compared) -> Iterator[Block]:
    """Yield whose figures can't be set in a ratio to the first one's, and why."""
    letters = [part.letter for place, part in enumerate(compared.table.parts) if compared.reasons(place)]
    if letters:
        shown = "shown, as was asked" if compared.anyway else "not shown (--anyway shows them)"
        yield Paragraph(f"{NOT_COMPARABLE} with A: {listing(letters)}. Ratios to A are {shown}.")
        yield Bullets(tuple(_told(one, compared) for one in compared.differences if any(one.barred)))


def _said(compared: Compared) -> Iterator[str]:
    """Yield what else differs; what is only not known is told in a sentence for all subjects."""
    unknown: dict[str, list[str]] = {}
    for one in compared.differences:
        if any(one.barred):
            continue
        if len(set(one.values) - {None}) > 1:
            yield _told(one, compared)
        else:
            lacking = zip(compared.table.parts, one.values, strict=True)
            letters = listing([part.letter for part, value in lacking if value is None])
            unknown.setdefault(letters, []).append(one.subject)
    for letters, subjects in unknown.items():
        yield f"Not known of {letters}: {listing(subjects)}."


def _told(difference: Difference, compared: Compared) -> str:
    """Return what something is in each part; parts in which it is the same are told together."""
    letters: dict[str | None, list[str]] = {}
    for part, value in zip(compared.table.parts, difference.values, strict=True):
        letters.setdefault(value, []).append(part.letter)
    told = [f"{listing(own)}: {value or 'not known'}." for value, own in letters.items()]
    return " ".join((f"{difference.subject[:1].upper()}{difference.subject[1:]}.", *told))


def _warnings(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the serious warnings of the surroundings, each once, and whose they are."""
    letters: dict[str, list[str]] = {}
    for part in parts:
        for warning in part.report.environment.warnings:
            if warning.serious:
                letters.setdefault(warning.text, []).append(part.letter)
    for text, own in letters.items():
        yield f"{listing(list(dict.fromkeys(own)))}: {text}"
