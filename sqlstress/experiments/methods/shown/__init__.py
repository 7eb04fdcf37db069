"""How methods are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from statistics import median_low

from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import processes, whole
from sqlstress.display.blocks import Block, Paragraph
from sqlstress.display.figures import spread_cell
from sqlstress.display.plot import Plot
from sqlstress.display.shown import Shown
from sqlstress.experiments.methods.face import tricks_of
from sqlstress.experiments.methods.shown import plots
from sqlstress.experiments.methods.shown.cells import Cells, Series
from sqlstress.experiments.methods.shown.findings import methods
from sqlstress.experiments.methods.shown.grids import (
    BARE,
    BASE,
    MAPPER,
    MATRICES,
    Matrix,
    costs,
    summary,
    summary_as_published,
)
from sqlstress.experiments.methods.shown.judged import rates
from sqlstress.experiments.methods.shown.tables import binding_table, contention_table, matrix, summary_table
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.statistics.ratios import spread
from sqlstress.statistics.units import format_count


class MethodsShown(Shown):
    """The published matrices and summaries, and what goes further."""

    topics = (methods, partial_proofs)

    def what(self, group: Group) -> str:
        return "Rows are written and read one by one (1b1), in bulk (BLK), from JSON and inside SQLite (SPC)"

    def blocks(self, group: Group) -> Iterator[Block]:
        cells = Cells(group)
        if not cells.all:
            return
        fewest = cells.processes()[0]
        yield Paragraph(f"{'; '.join(_legend(group))}.")
        for driver in cells.drivers():
            for table in MATRICES:
                yield from _matrix(cells, table, fewest, driver)
        for driver in cells.drivers():
            yield Paragraph(
                f"The best of each method through {driver}, rows per second, and how many times those of "
                f"{BASE} in the same phase:"
            )
            yield summary_table(summary(cells, fewest, driver))
        if any(run.case.spec.as_published for run in group.runs):
            yield from _as_published(cells, fewest)
        yield from _binding(cells, fewest)
        yield from _contention(cells)

    def plots(self, group: Group) -> Iterator[Plot]:
        return plots.plots(group)

    def tracked(self, run: Run) -> Iterator[float | None]:
        return (trial.rows_per_s for trial in run.valid if trial.outcome == "done")

    def tracked_unit(self, case: Case) -> str:
        return "rows"

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Of each method the largest scale has a bar, phase by phase."""
        return case.spec.phase, (tricks_of(case), case.driver, case.concurrency)

    def bar_name(self, case: Case) -> str:
        return f"{tricks_of(case)}, {case.driver}, {whole(case.spec.scale)}"


def _legend(group: Group) -> Iterator[str]:
    yield "Rows per second and, in brackets, the time of all rows; the best of each column stands out"
    yield "WAL: journal mode WAL, else DELETE; TSC: all in one transaction"
    queried = next((run.case.spec for run in group.runs if _is_query(run.case)), None)
    if queried and queried.samples:
        rows = format_count(queried.samples * (queried.samples - 1) // 2)
        yield f"queried is a table of {rows} results: all pairs of {format_count(queried.samples)} samples"
    yield from _spread(group)
    yield "TIMEOUT: given up, and not tried at larger scales; LIMIT: SQLite takes no such statement"
    statuses = {run.verdict.status for run in group.runs if run.trials}
    if statuses & {"ok", "failed"}:
        yield "FAILED: the tables or the answers are not what they must be; all other cells were verified"
    if "skipped" in statuses:
        yield "not verified"


def _spread(group: Group) -> Iterator[str]:
    """Yield how far the typical figures may be off: in the tables there is no room for it."""
    found = [off for run in group.runs if (off := spread([*rates(run).values()])) is not None]
    if found:
        middle, most = (spread_cell(off).strip() for off in (median_low(found), max(found)))
        yield f"the typical rows per second may be off by {middle} in the middle cell, {most} in the noisiest"


def _is_query(case: Case) -> bool:
    return bool(case.spec.phase == "query")


def _matrix(cells: Cells, table: Matrix, fewest: int, driver: str) -> Iterator[Block]:
    titled = False
    for part in table.parts:
        series = [Series(fewest, driver, table.phase, tricks) for tricks in part]
        shown = matrix(cells, series, table.counted)
        if shown and not titled:
            yield Paragraph(f"{table.title} through {driver}, {processes(fewest)}:")
            titled = True
        if shown:
            yield shown


def _as_published(cells: Cells, fewest: int) -> Iterator[Block]:
    for driver in cells.drivers():
        yield Paragraph(
            f"The same through {driver} as published: 1b1 inserts samples, the others allocate results, and "
            "all are relative to the insertion of samples:"
        )
        yield summary_table(summary_as_published(cells, fewest, driver))


def _binding(cells: Cells, fewest: int) -> Iterator[Block]:
    found = list(costs(cells, fewest))
    if found:
        yield Paragraph(
            f"What {MAPPER} costs beside {BARE}, which lies below it with the same SQLite, at the largest "
            "scale that both have done; left out is what commits each row, as the disk decides there:"
        )
        yield binding_table(found)


def _contention(cells: Cells) -> Iterator[Block]:
    counts = cells.processes()
    if len(counts) < 2:
        return
    for driver in cells.drivers():
        yield Paragraph(
            f"Several processes at once through {driver}, each with a range of its own: how many times the "
            f"rows per second of {processes(counts[0])} all of them together had:"
        )
        yield contention_table(cells, driver)
