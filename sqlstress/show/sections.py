"""How each experiment is shown, as blocks that every format draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from sqlstress.analysis.advice import advise_group, missing
from sqlstress.analysis.baseline import Checked
from sqlstress.analysis.comparison import Comparison
from sqlstress.analysis.group import Group, group_runs, joined
from sqlstress.analysis.study_parts import interruption
from sqlstress.report import Report
from sqlstress.show import heading
from sqlstress.show.blocks import FAILED, Block, Bullets, Lines, Note, Paragraph, Verdict, clean, conclusions
from sqlstress.show.comparison_view import comparison_blocks, comparison_heading, comparison_tables
from sqlstress.show.shown import presenter_of, shown_results
from sqlstress.show.study_view import ab_blocks, check_blocks, limit_blocks


@dataclass(frozen=True, slots=True)
class Section:
    """A part of what a report shows."""

    blocks: tuple[Block, ...]
    group: Group | None = None
    """The group that it shows; None: something about the whole report."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Whatever is shown, in a format that is blocks below each other."""

    drawn: Callable[[Block], str]
    """Draws a block, or leaves it out."""
    closing: Callable[[Sequence[Block]], str] = lambda _: ""
    """Says at the end how to see what was left out."""

    def report(self, *reports: Report) -> str:
        """Return reports: what was measured, the tables, and what they say."""
        return self._page(
            block for report in reports for section in report_sections(report) for block in section.blocks
        )

    def comparison(self, comparison: Comparison) -> str:
        """Return reports side by side: what they differ in, the tables, and what they say."""
        return self._page(comparison_blocks(comparison))

    def check(self, checked: Checked, metric: str, max_drop: float) -> str:
        """Return a report beside its baseline, and how far that can be trusted."""
        return self._page(check_blocks(checked, metric, max_drop))

    def _page(self, blocks: Iterable[Block]) -> str:
        every = tuple(blocks)
        return "\n\n".join(filter(None, (*map(self.drawn, every), self.closing(every)))) + "\n"


def report_sections(report: Report) -> Iterator[Section]:
    """Yield the parts of what a report shows, the first of which says where it comes from."""
    is_sweep = not (report.ab or report.limit or report.results)
    yield Section((Paragraph((heading.short_origin if is_sweep else heading.origin)(report)),))
    if report.ab is not None:
        yield Section(tuple(ab_blocks(report, report.ab)))
        return
    if report.limit is not None:
        yield Section(tuple(limit_blocks(report, report.limit)))
        return
    if report.results:
        found = [
            block for shown, result in shown_results(report) for block in shown.result_blocks(report, result)
        ]
        if report.interrupted:
            found.append(Bullets((interruption(report).text,)))
        yield Section(tuple(found))
        return
    warned: set[str] = set()
    for group in joined(group_runs(report.runs)):
        yield Section(tuple(_group(group, report, warned)), group)
    closing = [finding.text for finding in missing(report)]
    closing += ["Nothing was measured."] * (not report.runs)
    if closing:
        yield Section(tuple(map(Paragraph, closing)))


def _group(group: Group, report: Report, warned: set[str]) -> Iterator[Block]:
    """Yield what a group shows; a warning that stands above, in `warned`, is not repeated."""
    shown = presenter_of(group.case)
    environment, findings = report.environment, advise_group(group)
    warnings = [text for text in heading.warnings(group, environment, findings) if text not in warned]
    warned.update(warnings)
    described, usual = heading.describe_at_first(shown.what(group), group, report)
    yield Lines((described, *heading.durability(group, environment), *warnings))
    if usual:
        yield Note(usual)
    yield from shown.blocks(group)
    if findings:
        yield conclusions(findings)


# What a report says first: the title of its page.


LONGEST = 120
_SENTENCE = re.compile(r"[.!?](?=\s+[A-Z])")
_CLAUSE = re.compile(r"\([^)]*\)|([;,:]\s|\s(?=\())")
"""Where a sentence can be cut; what stands in brackets is passed over."""


def headline(sections: Iterable[Section]) -> str:
    """Return the first sentence of a report's verdict, or of its findings; wrong data comes before all.

    Of one that says nothing it is what was done.
    """
    blocks = [block for section in sections for block in section.blocks]
    said = [block.text for block in blocks if isinstance(block, Verdict)]
    said += [text for block in blocks if isinstance(block, Bullets) for text in block.texts]
    wrong = [text for text in said if text.startswith(FAILED)]
    return title_of(next(chain(wrong, said, _texts(blocks))))


def headline_beside(comparison: Comparison) -> str:
    """Return the same of reports side by side."""
    findings = [text for beside in comparison_tables(comparison) for text in beside.findings.texts]
    return title_of(next(chain(findings, _texts(comparison_heading(comparison)))))


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Lines():
                yield from block.texts
            case Paragraph():
                yield block.text
    yield "Nothing was measured."


def title_of(text: str) -> str:
    """Return the first sentence of a text, and of a long one the clauses that fit."""
    sentence = _SENTENCE.split(clean(text), maxsplit=1)[0].rstrip(".")
    if len(sentence) <= LONGEST:
        return sentence
    ends = [found.start() for found in _CLAUSE.finditer(sentence) if found[1] and found.start() <= LONGEST]
    return f"{sentence[: ends[-1] if ends and ends[-1] > LONGEST // 3 else LONGEST]} …"
