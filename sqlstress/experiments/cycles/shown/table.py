"""The tables of the experiment with cycles: a row for each setting, and one for its processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlstress.analysis.disturbance import disturbed
from sqlstress.display import case_table
from sqlstress.display.blocks import Column, Table
from sqlstress.display.case_table import FAILED, FAIRNESS, PROCESSES
from sqlstress.display.figures import MISSING, VERIFIED, Figure, ms_cell, spread_cell, table_of, whole_cell
from sqlstress.experiments.cycles.face import setting_of
from sqlstress.experiments.cycles.shown.times import Times, rates, total_ns
from sqlstress.statistics.ratios import spread

TIMEOUT = "TIMEOUT"
LEAVING = ("median ms", "first ms", "closing checkpoint ms")
"""What leaves first where the spread of the totals makes the table too wide."""


@dataclass(frozen=True, slots=True)
class Row(case_table.Row):
    """A run, the trial that stands for it, and what that spent."""

    times: Times | None


def settings_table(rows: Sequence[Row]) -> Table:
    """Return the table of the settings."""
    several = any(row.run.case.concurrency > 1 for row in rows)
    return table_of(rows, FIGURES if several else FIGURES[:1] + FIGURES[2:], LEAVING)


def processes_table(rows: Sequence[Row]) -> Table:
    """Return how even the processes were, of runs with several."""
    return table_of(rows, OF_PROCESSES)


def _ms(figure: Callable[[Times], float | None]) -> Callable[[Row], str | None]:
    return lambda row: ms_cell(figure(row.times)) if row.times else None


def _done(row: Row) -> str | None:
    """Return how many cycles were done, of a run that was given up."""
    if row.trial is None or row.trial.outcome == "done":
        return None
    return whole_cell(min(len(one.cycles) for one in row.times.processes) if row.times else 0)


def _total(row: Row) -> str | None:
    if row.trial is None:
        return FAILED
    if row.trial.outcome != "done":
        return TIMEOUT
    total = ms_cell(total_ns(row.run.case, row.trial))
    off = spread_cell(spread([*rates(row.run).values()]))
    return f"{'~' * disturbed(row.run)}{total or MISSING}{off}"


def _slowest(times: Times) -> float | None:
    return times.slowest[0] if times.slowest else None


def _which(row: Row) -> str | None:
    return whole_cell(row.times.slowest[1]) if row.times and row.times.slowest else None


FIGURES: tuple[Figure[Row], ...] = (
    Figure(Column("setting", ("", "setting"), align="left"), lambda row: setting_of(row.run.case)[:24]),
    PROCESSES,
    Figure(Column("cycles done", ("cycles", "done")), _done),
    Figure(Column("statements ms", ("state-", "ments ms")), _ms(lambda times: times.statements)),
    Figure(Column("BEGIN, COMMIT ms", ("BEGIN,", "COMMIT")), _ms(lambda times: times.bounds)),
    Figure(Column("total ms", ("total", "ms")), _total),
    Figure(Column("closing checkpoint ms", ("closing", "ckpt ms")), _ms(lambda times: times.closing)),
    Figure(Column("first ms", ("first", "ms")), _ms(lambda times: times.first)),
    Figure(Column("median ms", ("median", "ms")), _ms(lambda times: times.median)),
    Figure(Column("slowest ms", ("slow-", "est ms")), _ms(_slowest)),
    Figure(Column("slowest cycle", ("in", "cycle")), _which),
    VERIFIED,
)


def _of_each(choose: Callable[[Sequence[int]], int]) -> Callable[[Row], str | None]:
    return _ms(lambda times: choose([one.total for one in times.processes]))


OF_PROCESSES: tuple[Figure[Row], ...] = (
    FIGURES[0],
    FIGURES[1],
    Figure(Column("fastest process's total ms", ("fastest pro-", "cess total ms")), _of_each(min)),
    Figure(Column("slowest process's total ms", ("slowest pro-", "cess total ms")), _of_each(max)),
    FAIRNESS,
)
