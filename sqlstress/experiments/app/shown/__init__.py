"""How an application is shown: the usual table, its connections, and what its transactions raised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.scaling import throughput
from sqlstress.analysis.waits import starvation
from sqlstress.display.at_a_rate.findings import at_a_rate
from sqlstress.display.blocks import Block, Paragraph
from sqlstress.display.shown import Topic
from sqlstress.experiments.app.shown import sessions
from sqlstress.experiments.app.shown.connections import described, unwise
from sqlstress.experiments.app.shown.exceptions import raised
from sqlstress.own.shown import OwnShown
from sqlstress.own.shown.at_server import too_weak
from sqlstress.report import Run
from sqlstress.report.case import Case


def waits(group: Group) -> Iterator[Finding]:
    """Yield where a process got less than its share, or waited long."""
    return starvation(group, lambda _: "Try shorter transactions, or fewer processes.")


class AppShown(OwnShown):
    """The figures of an application."""

    topics: ClassVar[tuple[Topic, ...]] = (
        raised,
        unwise,
        sessions.unwise,
        too_weak,
        throughput,
        at_a_rate,
        waits,
        partial_proofs,
        trust,
    )
    meanings: ClassVar[Mapping[str, str]] = {"failed %": "failed: transactions that raised, in per cent"}

    def why_failed(self, run: Run) -> str:
        return "they raised, as the report says"

    def work(self, case: Case) -> str:
        """Return what the processes of a case do, as the beginning of a sentence."""
        app = case.spec
        total = sum(one.weight for one in app.transactions)
        parts = (
            f"{one.name} {100 * one.weight / total:.2g}%" if len(app.transactions) > 1 else one.name
            for one in app.transactions
        )
        return f"{app.file}: {', '.join(parts)}"

    def blocks(self, group: Group) -> Iterator[Block]:
        yield from super().blocks(group)
        for text in (*described(group), *sessions.described(group)):
            yield Paragraph(text)
