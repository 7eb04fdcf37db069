"""The table of the main job: a row per case, a column per figure, and what the columns mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from sqlstress.analysis.group import Group
from sqlstress.display.blocks import Column, Table
from sqlstress.display.case_table import (
    FAILED_SHARE,
    FAIRNESS,
    FILES,
    LONGEST_WAIT,
    PER_PROCESS,
    PROCESSES,
    TIME,
    TOTAL,
    Cell,
    Row,
    apart,
    of_latency,
    of_layouts,
    rows_of,
    spread_legend,
)
from sqlstress.display.figures import VERIFIED, Figure, count_cell, table_of, verified_legend
from sqlstress.experiment import face_of
from sqlstress.report import Latency, Trial


def build(group: Group) -> Table:
    """Return the table of a group's runs."""
    return table_of(rows_of(group), (*apart(group), *of_layouts(group, FIGURES)), _leaving(group))


def _leaving(group: Group) -> tuple[str, ...]:
    # A window's length stands in the heading, the time of a fixed count nowhere else.
    time = () if group.case.ops is not None or face_of(group.case).whole_script else ("time s",)
    return (*time, "TPS per process", "rows/s", *_LEAVING)


COMMITS, GETS = ("replace", "update"), ("get", "pair")


def _rate_of(kinds: tuple[str, ...]) -> Cell:
    """Return the cell of how many of these were done a second, where the load is mixed."""

    def cell(row: Row) -> str | None:
        trials = [trial for trial in row.run.valid if trial.seconds > 0]
        if face_of(row.run.case).whole_script or not all(_done(trials, one) for one in (COMMITS, GETS)):
            return None
        return count_cell(median(_done([trial], kinds) / trial.seconds for trial in trials))

    return cell


def _done(trials: Sequence[Trial], kinds: tuple[str, ...]) -> int:
    """Return how many operations of these kinds were done."""
    return sum(one.operations.get(kind, 0) for trial in trials for one in trial.workers for kind in kinds)


def _rows_per_s(row: Row) -> str | None:
    if row.trial is None or row.run.case.spec.batch == 1:
        return None
    return count_cell(row.trial.rows_per_s)


def _p50(latency: Latency) -> float | None:
    return latency.p50_ns


def _p99(latency: Latency) -> float | None:
    return latency.p99_ns


FIGURES: tuple[Figure[Row], ...] = (
    FILES,
    PROCESSES,
    TIME,
    PER_PROCESS,
    TOTAL,
    Figure(Column("commits/s", ("commits", "per s")), _rate_of(COMMITS)),
    Figure(Column("gets/s", ("gets", "per s")), _rate_of(GETS)),
    Figure(Column("rows/s", ("rows", "per s")), _rows_per_s),
    Figure(Column("replace p50 ms", ("replace", "p50 ms")), of_latency("replace", _p50)),
    Figure(Column("replace p99 ms", ("replace", "p99 ms")), of_latency("replace", _p99)),
    Figure(Column("update p99 ms", ("update", "p99 ms")), of_latency("update", _p99)),
    Figure(Column("get p99 ms", ("get", "p99 ms")), of_latency("get", _p99)),
    FAILED_SHARE,
    FAIRNESS,
    LONGEST_WAIT,
    VERIFIED,
)
_LEAVING = (
    "replace p50 ms",
    "update p99 ms",
    "get p99 ms",
    "replace p99 ms",
    "TPS per process",
    "longest wait ms",
    "time s",
    "fairness",
)


def legend(group: Group, table: Table) -> str:
    """Explain the columns that the table has, in their order."""
    return f"{'; '.join(_parts(group, table))}."


def _parts(group: Group, table: Table) -> Iterator[str]:
    if face_of(group.case).whole_script:
        yield "TPS: pairs a second, each a set and a get of the same key"
    else:
        yield "TPS: transactions a second, each a get or a commit"
    yield from spread_legend(group)
    headers = " ".join(table.headers)
    if "p50" in headers:
        yield "p50 and p99: half and 99% of the operations were as fast or faster"
    elif "p99" in headers:
        yield "p99: 99% of the operations were as fast or faster"
    if "failed %" in headers:
        yield "failed: operations given up for a busy database, in per cent"
    if "fairness" in headers:
        yield "fairness (Jain's index): 1 when all processes got an equal share"
    if "longest wait" in headers:
        yield "longest wait: the slowest operation, one still pending at the end included"
    yield from verified_legend(group)
