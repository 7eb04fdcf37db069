"""How reports are shown side by side: who they are, what they differ in, then the figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlstress.analysis.comparison import LETTERS, Compared, Comparison, Difference, Part, conclude
from sqlstress.analysis.wording import listing, whole
from sqlstress.display.blocks import Block, Bullets, Lines, Paragraph
from sqlstress.display.phrases import phrase
from sqlstress.experiment import face_of
from sqlstress.render.views.comparison_tables import legend, long_names, surroundings, tables

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
