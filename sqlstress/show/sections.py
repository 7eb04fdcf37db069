"""Sections of a report or comparison, as blocks (paragraphs, tables and so on) that each format draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from sqlstress.analysis.advice import advise_group, missing
from sqlstress.analysis.baseline import BaselineCheck
from sqlstress.analysis.comparison import Comparison
from sqlstress.analysis.group import Group, group_runs, merge_groups
from sqlstress.analysis.study_parts import interruption
from sqlstress.report import Report
from sqlstress.show import heading
from sqlstress.show.blocks import (
    FAILED,
    Block,
    Bullets,
    Lines,
    Note,
    Paragraph,
    VerdictLine,
    clean,
    conclusions,
)
from sqlstress.show.comparison_view import comparison_blocks, comparison_heading, comparison_tables
from sqlstress.show.shown import presenter_of, shown_results
from sqlstress.show.study_view import ab_blocks, check_blocks, limit_blocks


@dataclass(frozen=True, slots=True)
class Section:
    """Section of a shown report: blocks such as paragraphs and tables."""

    blocks: tuple[Block, ...]
    group: Group | None = None
    """Runs of the section's table; None if the section concerns the whole report."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Format of pages, such as Markdown. The methods return a whole report or comparison as text."""

    drawn: Callable[[Block], str]
    """Function that returns a block as text, or "" to leave the block out."""
    closing: Callable[[Sequence[Block]], str] = lambda _: ""
    """Function that returns the last text of a page, such as a hint at the blocks that were left out."""

    def report(self, *reports: Report) -> str:
        """Return reports as text: each with its conditions, tables and findings."""
        return self._page(
            block for report in reports for section in report_sections(report) for block in section.blocks
        )

    def comparison(self, comparison: Comparison) -> str:
        """Return a comparison of reports as text: their differences, the tables, and the findings."""
        return self._page(comparison_blocks(comparison))

    def check(self, checked: BaselineCheck, metric: str, max_drop: float) -> str:
        """Return a check of `metric` ("tps" or "p99") as text. `max_drop` is the allowed drop, as a share."""
        return self._page(check_blocks(checked, metric, max_drop))

    def _page(self, blocks: Iterable[Block]) -> str:
        all_blocks = tuple(blocks)
        return "\n\n".join(filter(None, (*map(self.drawn, all_blocks), self.closing(all_blocks)))) + "\n"


def report_sections(report: Report) -> Iterator[Section]:
    """Yield the sections of a report. The first is its origin: version, time and system."""
    is_sweep = not (report.ab or report.limit or report.results)
    yield Section((Paragraph((heading.short_origin if is_sweep else heading.origin)(report)),))
    if report.ab is not None:
        yield Section(tuple(ab_blocks(report, report.ab)))
        return
    if report.limit is not None:
        yield Section(tuple(limit_blocks(report, report.limit)))
        return
    if report.results:
        result_blocks = [
            block for shown, result in shown_results(report) for block in shown.result_blocks(report, result)
        ]
        if report.interrupted:
            result_blocks.append(Bullets((interruption(report).text,)))
        yield Section(tuple(result_blocks))
        return
    warned: set[str] = set()
    for group in merge_groups(group_runs(report.runs)):
        yield Section(tuple(_group_blocks(group, report, warned)), group)
    closing = [finding.text for finding in missing(report)]
    closing += ["Nothing was measured."] * (not report.runs)
    if closing:
        yield Section(tuple(map(Paragraph, closing)))


def _group_blocks(group: Group, report: Report, warned: set[str]) -> Iterator[Block]:
    """Yield the blocks on a group (the runs in one table).

    Warnings in `warned` are left out. Other warnings are shown, and added to `warned`.
    """
    shown = presenter_of(group.case)
    environment, findings = report.environment, advise_group(group)
    warnings = [text for text in heading.warnings(group, environment, findings) if text not in warned]
    warned.update(warnings)
    description, usual = heading.describe_briefly(shown.activity(group), group, report)
    yield Lines((description, *heading.durability(group, environment), *warnings))
    if usual:
        yield Note(usual)
    yield from shown.blocks(group)
    if findings:
        yield conclusions(findings)


LONGEST = 120
"""Maximum length of a headline, in characters."""
_SENTENCE = re.compile(r"[.!?](?=\s+[A-Z])")
"""Pattern of the end of a sentence."""
_CLAUSE = re.compile(r"\([^)]*\)|([;,:]\s|\s(?=\())")
"""Pattern of places to cut a sentence (group 1), and of brackets, which are not cut (no group 1)."""


def headline(sections: Iterable[Section]) -> str:
    """Return the headline of a report: the first sentence on wrong data, if any data is wrong.

    Otherwise, return the first sentence of the verdict, of the findings, or of the description: the first of
    these that the report has.
    """
    blocks = [block for section in sections for block in section.blocks]
    statements = [block.text for block in blocks if isinstance(block, VerdictLine)]
    statements += [text for block in blocks if isinstance(block, Bullets) for text in block.texts]
    wrong = [text for text in statements if text.startswith(FAILED)]
    return title_of(next(chain(wrong, statements, _paragraph_texts(blocks))))


def comparison_headline(comparison: Comparison) -> str:
    """Return the headline of a comparison: the first sentence of its findings, or else of its heading."""
    findings = [text for table in comparison_tables(comparison) for text in table.findings.texts]
    return title_of(next(chain(findings, _paragraph_texts(comparison_heading(comparison)))))


def _paragraph_texts(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the texts of all paragraphs, then "Nothing was measured.", so that there is always a text."""
    for block in blocks:
        match block:
            case Lines():
                yield from block.texts
            case Paragraph():
                yield block.text
    yield "Nothing was measured."


def title_of(text: str) -> str:
    """Return the first sentence of a text. If it exceeds LONGEST characters, cut it after a clause."""
    sentence = _SENTENCE.split(clean(text), maxsplit=1)[0].rstrip(".")
    if len(sentence) <= LONGEST:
        return sentence
    ends = [match.start() for match in _CLAUSE.finditer(sentence) if match[1] and match.start() <= LONGEST]
    return f"{sentence[: ends[-1] if ends and ends[-1] > LONGEST // 3 else LONGEST]} …"
