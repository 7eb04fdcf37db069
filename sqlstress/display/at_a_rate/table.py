"""The table of cases at a rate: latencies count from the moment an operation was due."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from sqlstress.analysis.group import Group
from sqlstress.display.blocks import NAME, Block, Column, Paragraph, Table
from sqlstress.display.case_table import (
    FAILED_SHARE,
    FILES,
    LONGEST_WAIT,
    PROCESSES,
    TOTAL,
    Cell,
    Row,
    apart,
    of_layouts,
    rows_of,
    spread_legend,
)
from sqlstress.display.figures import (
    NOTHING_LOST,
    VERIFIED,
    Figure,
    count_cell,
    ms_cell,
    percent_cell,
    table_of,
    verified_legend,
)
from sqlstress.report import Latency, Run
from sqlstress.report.latency import merged


def from_due(run: Run) -> Latency | None:
    """Return the latencies of all operations of a run, of all valid trials together; None without any."""
    return merged([one for trial in run.valid if trial.arrived and (one := trial.arrived.whole)])


def service(run: Run) -> Latency | None:
    """Return the times from begin to end of all operations of a run; None without any."""
    kinds = dict.fromkeys(kind for trial in run.valid for kind in trial.latency)
    return merged([one for kind in kinds if (one := run.latency(kind)) and one.count])


def lateness(run: Run) -> Latency | None:
    """Return how much later than possible the harness began the operations of a run; None without any."""
    return merged([trial.arrived.lateness for trial in run.valid if trial.arrived and trial.arrived.lateness])


def _of(latency: Callable[[Run], Latency | None], figure: Callable[[Latency], float | None]) -> Cell:
    def cell(row: Row) -> str | None:
        found = latency(row.run) if row.trial else None
        return ms_cell(figure(found)) if found else None

    return cell


def _share(figure: str) -> Cell:
    """Return the cell of a count, in per cent of what was due; nothing where there was none of it."""

    def cell(row: Row) -> str | None:
        found = [trial.arrived for trial in row.run.valid if trial.arrived]
        count, due = sum(getattr(one, figure) for one in found), sum(one.due for one in found)
        return percent_cell(count / due) if count and due else None

    return cell


def _rate(row: Row) -> str | None:
    return count_cell(row.run.case.arrivals.rate) if row.run.case.arrivals else None


RATE: Figure[Row] = Figure(Column("due per s", ("due", "per s"), role=NAME), _rate)
FIGURES: tuple[Figure[Row], ...] = (
    FILES,
    PROCESSES,
    RATE,
    TOTAL,
    Figure(Column("p50 ms", ("p50", "ms")), _of(from_due, lambda one: one.p50_ns)),
    Figure(Column("p99 ms", ("p99", "ms")), _of(from_due, lambda one: one.p99_ns)),
    Figure(Column("p99.9 ms", ("p99.9", "ms")), _of(from_due, lambda one: one.p999_ns)),
    Figure(Column("service p99 ms", ("service", "p99 ms")), _of(service, lambda one: one.p99_ns)),
    Figure(Column("late p99 ms", ("late", "p99 ms")), _of(lateness, lambda one: one.p99_ns)),
    Figure(Column("queued %", ("queued", "%")), _share("queued")),
    Figure(Column("skipped %", ("skipped", "%")), _share("skipped")),
    FAILED_SHARE,
    LONGEST_WAIT,
    VERIFIED,
)
_LEAVING = ("p99.9 ms", "late p99 ms", "queued %", "p50 ms", "service p99 ms", "longest wait ms")
_MEANINGS = {
    "due per s": "due: operations that were to begin in a second",
    "TPS total": "TPS: {units} done in a second",
    "p50 ms": "p50 and p99: half and 99% were done so soon after they were due, those still queued at the "
    "end counted with what they had waited",
    "service p99 ms": "service: from their begin only, as a closed loop has it",
    "late p99 ms": "late: how much later than possible the harness began them",
    "queued %": "queued: not done when the window closed, in per cent of what was due",
    "skipped %": "skipped: too late when their turn came (--latency-limit), in per cent of what was due",
    "failed %": "failed: operations given up for a busy database, in per cent",
    "longest wait ms": "longest wait: the slowest operation, from when it was due, or still queued",
}


NOTHING: Mapping[str, str] = MappingProxyType({})


def blocks(group: Group, own: Mapping[str, str] = NOTHING, proved: str = NOTHING_LOST) -> Iterator[Block]:
    """Yield the table, and what it means: `own` are the columns that mean something else here.

    `proved` is what was proved where the data is right.
    """
    table = table_of(rows_of(group), (*apart(group), *of_layouts(group, FIGURES)), _LEAVING)
    yield table
    yield Paragraph(f"{'; '.join(_legend(group, table, {**_MEANINGS, **own}, proved))}.")


def _legend(group: Group, table: Table, meanings: Mapping[str, str], proved: str) -> Iterator[str]:
    for name, text in meanings.items():
        if name in table.headers:
            yield text.format(units=group.unit)
    yield from spread_legend(group)
    yield from verified_legend(group, proved)
