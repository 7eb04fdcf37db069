"""How cycles are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.comparison import Compared
from sqlstress.analysis.group import Group
from sqlstress.display.blocks import Block, Paragraph, Picture, Table
from sqlstress.display.case_table import spread_legend
from sqlstress.display.figures import ms_cell, verified_legend, whole_cell
from sqlstress.display.measures import RATIO, SPREAD, Measure, of_run, rate_cell
from sqlstress.display.plot import Plot
from sqlstress.display.shown import Shown
from sqlstress.experiments.cycles.face import setting_of
from sqlstress.experiments.cycles.shown import plots
from sqlstress.experiments.cycles.shown.findings import called, cycles
from sqlstress.experiments.cycles.shown.picture import Line, picture
from sqlstress.experiments.cycles.shown.plots import each_cycle
from sqlstress.experiments.cycles.shown.table import Row, processes_table, settings_table
from sqlstress.experiments.cycles.shown.times import times_of, total_ns
from sqlstress.experiments.cycles.spec import Cycling
from sqlstress.report import Run, Trial
from sqlstress.statistics.units import NS_PER_S, format_count, format_duration


def _slowest(run: Run, trial: Trial) -> tuple[float, int] | None:
    """Return the slowest cycle but for the first: its time in ns, and its number."""
    times = times_of(run.case, trial)
    return times.slowest[:2] if times and times.slowest else None


class CyclesShown(Shown):
    """Settings, each cycle, and the checkpoints among them."""

    topics = (cycles, partial_proofs)
    measures = (
        (
            Measure(
                "{letter} cycles/s",
                ("{letter} {system}", "cycles/s"),
                "cycles/s: cycles a second, all processes together, without the closing checkpoint",
                rate_cell,
            ),
            RATIO,
        ),
        (SPREAD,),
        (
            Measure(
                "{letter} total ms",
                ("{letter}", "total ms"),
                "total: what they took",
                of_run(lambda run, trial: ms_cell(total_ns(run.case, trial))),
            ),
            Measure(
                "{letter} slowest ms",
                ("{letter} slow-", "est ms"),
                "slowest: the slowest cycle but for the first",
                of_run(lambda run, trial: ms_cell(slowest[0]) if (slowest := _slowest(run, trial)) else None),
            ),
            Measure(
                "{letter} slowest cycle",
                ("{letter} in", "cycle"),
                "",
                of_run(
                    lambda run, trial: whole_cell(slowest[1]) if (slowest := _slowest(run, trial)) else None
                ),
            ),
        ),
    )

    def what(self, group: Group) -> str:
        works = dict.fromkeys(run.case.spec or Cycling() for run in group.runs)
        limits = [work.timeout_s for work in works if work.timeout_s]
        limit = [f"given up after {format_duration(max(limits))}"] if limits else []
        told = dict.fromkeys(map(_work, works))
        return "; ".join((*told, "each process in its own table of one file", *limit))

    def blocks(self, group: Group) -> Iterator[Block]:
        rows = [_row(run) for run in group.runs]
        table = settings_table(rows)
        yield table
        yield Paragraph(f"{'; '.join(_legend(group, table))}.")
        if several := [row for row in rows if row.run.case.concurrency > 1 and row.times]:
            yield processes_table(several)
        if lines := [_line(row) for row in rows if row.times]:
            yield Picture(tuple(picture(lines)))

    def plots(self, group: Group) -> Iterator[Plot]:
        return plots.plots(group)

    def compared_plots(self, compared: Compared, names: Sequence[str]) -> Iterator[Plot]:
        yield from super().compared_plots(compared, names)
        yield from each_cycle(compared, names, self)

    def rate(self, run: Run) -> float | None:
        trial = run.shown()
        total = total_ns(run.case, trial) if trial else 0
        return NS_PER_S * run.case.spec.cycles * run.case.concurrency / total if total > 0 else None


_NAMES = {
    "tx": "one transaction over the whole run",
    "cycle": "one transaction a cycle",
    "off": "no automatic checkpoints",
}
_MEANINGS = {
    "statements ms": "statements: the inserts and deletes of all cycles, row by row with the commits inside "
    "them",
    "BEGIN, COMMIT ms": "BEGIN, COMMIT: those of the transactions, apart",
    "total ms": "total: all of it, without the closing checkpoint",
    "slowest ms": "slowest: but for the first",
}
"""Column → what it is."""


def _work(work: Cycling) -> str:
    rows, times = format_count(work.rows), format_count(work.cycles)
    return f"{times} cycles: insert {rows} rows one by one, delete all with one statement, insert {rows}"


def _row(run: Run) -> Row:
    trial = run.shown()
    return Row(run, trial, times_of(run.case, trial) if trial else None)


def _line(row: Row) -> Line:
    assert row.times
    checkpoints = [cycle for process in row.times.processes for cycle in process.checkpoints]
    return Line(called(row.run.case), row.times.pace, frozenset(checkpoints))


def _legend(group: Group, table: Table) -> Iterator[str]:
    parts = {part for run in group.runs for part in setting_of(run.case).split("-")}
    yield from (f"{name}: {text}" for name, text in _NAMES.items() if name in parts)
    if any(part.isdecimal() for part in parts):
        yield "a number: the frames after which a commit checkpoints"
    yield from (text for name, text in _MEANINGS.items() if name in table.headers)
    if "cycle" in parts:
        yield "a cycle's time: with the BEGIN and COMMIT of its own"
    if any(run.case.concurrency > 1 for run in group.runs):
        yield "of several processes the means, the slowest first cycle, the slowest cycle of all"
    yield from spread_legend(group, "total")
    yield from verified_legend(group, "each table holds what the last acknowledged commit left")
