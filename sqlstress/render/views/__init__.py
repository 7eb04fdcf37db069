"""How each experiment is shown, as blocks that every format draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from sqlstress.analysis.advice import advise_group, missing
from sqlstress.analysis.check import Checked
from sqlstress.analysis.comparison import Comparison
from sqlstress.analysis.finding import interruption, results
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.joined import joined
from sqlstress.display import heading
from sqlstress.display.blocks import Block, Bullets, Lines, Paragraph
from sqlstress.display.phrases import phrase
from sqlstress.experiment import face_of
from sqlstress.render.views.ab import ab_blocks
from sqlstress.render.views.check import check_blocks
from sqlstress.render.views.comparison import comparison_blocks
from sqlstress.render.views.limit import limit_blocks
from sqlstress.report import Report


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
    """Draws a block."""

    def report(self, *reports: Report) -> str:
        """Return reports: what was measured, the tables, and what they say."""
        return self.page(chain.from_iterable(map(report_blocks, reports)))

    def comparison(self, comparison: Comparison) -> str:
        """Return reports side by side: what they differ in, the tables, and what they say."""
        return self.page(comparison_blocks(comparison))

    def check(self, checked: Checked, metric: str, max_drop: float) -> str:
        """Return a report beside its baseline, and how far that can be trusted."""
        return self.page(check_blocks(checked, metric, max_drop))

    def page(self, blocks: Iterable[Block]) -> str:
        """Return blocks below each other."""
        return "\n\n".join(map(self.drawn, blocks)) + "\n"


def report_blocks(report: Report) -> Iterator[Block]:
    """Yield everything that a report shows."""
    for section in report_sections(report):
        yield from section.blocks


def report_sections(report: Report) -> Iterator[Section]:
    """Yield the parts of what a report shows, the first of which says where it comes from."""
    yield Section((Paragraph(heading.origin(report)),))
    if report.ab is not None:
        yield Section(tuple(ab_blocks(report, report.ab)))
        return
    if report.limit is not None:
        yield Section(tuple(limit_blocks(report, report.limit)))
        return
    if report.results:
        yield Section(tuple(_results(report)))
        return
    for group in joined(group_runs(report.runs)):
        yield Section(tuple(_group(group, report)), group)
    closing = [phrase(finding) for finding in missing(report)]
    closing += ["Nothing was measured."] * (not report.runs)
    if closing:
        yield Section(tuple(map(Paragraph, closing)))


def _results(report: Report) -> Iterator[Block]:
    for experiment, found in results(report):
        yield from experiment.show_result().result_blocks(report, found)
    if report.interrupted:
        yield Bullets((phrase(interruption(report)),))


def _group(group: Group, report: Report) -> Iterator[Block]:
    shown = face_of(group.case).show()
    environment, findings = report.environment, advise_group(group)
    yield Lines(
        (
            heading.describe(shown.what(group), group, report),
            *heading.durability(group, environment),
            *heading.warnings(group, environment, findings),
        )
    )
    yield from shown.blocks(group)
    if findings:
        yield Bullets(tuple(phrase(finding) for finding in findings))
