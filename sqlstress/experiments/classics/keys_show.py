"""Tables and legend of primary keys, as pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import size
from sqlstress.experiments.classics.keys_findings import (
    BYTES_IN_MB,
    KeysCell,
    KeysCells,
    cell_of,
    keys,
    ratio,
    space_figure,
)
from sqlstress.experiments.classics.spec import Picks
from sqlstress.report import Trial
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    NAME,
    PERCENTILES,
    VERIFIED,
    Block,
    Column,
    Legend,
    Value,
    count_cell,
    seconds_cell,
    share_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.plots import Plot
from sqlstress.show.shown import TIME, Presenter
from sqlstress.statistics.units import format_count


@dataclass(frozen=True, slots=True)
class KeyRow(case_table.Row):
    """A case, its typical trial, and the case that it is compared with."""

    cell: KeysCell | None
    """Figures of the case; None if they are not plausible."""
    base: KeysCell | None
    """Figures of the same case with uuid4; None if there is no such case."""


def rows_of(group: Group) -> list[KeyRow]:
    """Return the rows of a group, in the order of its runs."""
    cells = KeysCells(group)
    known = [(run, cell_of(run)) for run in group.runs]
    return [
        KeyRow(run, run.valid_median_trial(), cell, cells.twin(cell, id_type="uuid4") if cell else None)
        for run, cell in known
    ]


def _seconds(row: KeyRow) -> str | None:
    if row.trial is None:
        return case_table.FAILED
    # Each pass does the same work, so the error of its time is that of its rate.
    return case_table.marked_cell(row.run, seconds_cell(row.trial.seconds), row.run.rates())


def _retries(trial: Trial) -> str | None:
    counts = [count for count in (trial.busy, trial.busy_snapshot) if count is not None]
    return count_cell(sum(counts)) if counts else None


def _relative(figure: str) -> Callable[[KeyRow], str | None]:
    return lambda row: share_cell(ratio(row.cell, row.base, figure))


def _space_of(figure: str, trial: Trial) -> Value:
    value = space_figure(trial.space, figure)
    return int(value) if value is not None and value.is_integer() else value


def _space_column(name: str, csv: str, write: Callable[[float], str | None], **more: Any) -> Column[KeyRow]:
    """Return the column of a figure of SPACE, which has this name in the CSV."""

    def cell(row: KeyRow) -> str | None:
        value = row.cell.figure(csv) if row.cell else None
        return None if value is None else write(value)

    return Column(name, cell=cell, csv=csv, value=partial(_space_of, csv), **more)


def mb_cell(value: float) -> str | None:
    """Write bytes as MB, millions of bytes."""
    mb = value / BYTES_IN_MB
    return count_cell(mb) if mb >= 1000 else f"{mb:.2f}"


def percent_cell(share: float) -> str:
    """Write a share as a percentage with one decimal, as sqlite3_analyzer does."""
    return f"{100 * share:.1f}%" if share < 1000 else f"{100 * share:.0e}%"


def fan_out_cell(children: float) -> str:
    """Write an average fan-out, which is a whole number."""
    return whole_cell(round(children))


def _latency(percentile: str, leaves: int | None = None) -> Column[KeyRow]:
    cell = case_table.latency_cell("picks", lambda latency: getattr(latency, f"{percentile}_ns"))
    meaning = f"{PERCENTILES} of the transactions took at most this long"
    return Column(f"{percentile} ms", cell=cell, meaning=meaning, leaves=leaves)


_SCHEMA: Column[KeyRow] = Column("schema", ("", "schema"), "left", NAME, lambda row: row.run.case.spec.schema)
_ID_TYPE: Column[KeyRow] = Column(
    "id type", ("", "id type"), "left", NAME, lambda row: row.run.case.spec.id_type
)
TIME_COLUMNS: tuple[Column[KeyRow], ...] = (
    Column(
        "time s",
        cell=_seconds,
        meaning="time: from the start of the first transaction to the end of the last, including making ids",
    ),
    Column(
        "uuid4 = 1 (time)",
        ("uuid4", "= 1"),
        cell=_relative("time"),
        meaning="uuid4 = 1: relative to uuid4 in the same schema",
    ),
    replace(case_table.ROWS_PER_S, leaves=None),
    Column(
        "TPS",
        cell=case_table.trial_cell(lambda trial: count_cell(trial.tps)),
        meaning="TPS: transactions per second",
        leaves=10,
    ),
    _latency("p50", leaves=20),
    _latency("p99"),
    Column(
        "retries",
        ("", "retries"),
        cell=case_table.trial_cell(_retries),
        meaning="retries: BUSY results that SQLite's own waiting did not avoid",
        leaves=30,
    ),
)
SPACE_COLUMNS: tuple[Column[KeyRow], ...] = (
    _space_column(
        "file MB",
        "file_bytes",
        mb_cell,
        meaning="file: the whole database, including users and items",
    ),
    Column("uuid4 = 1 (file)", ("uuid4", "= 1"), cell=_relative("file_bytes")),
    _space_column(
        "bytes per row",
        "bytes_per_row",
        count_cell,
        heading=("bytes", "per row"),
        meaning="bytes per row: of the table and its indices",
        leaves=20,
    ),
    _space_column("table", "table_share", percent_cell, meaning="table: its share of the file", leaves=30),
    _space_column("indices", "indices_share", percent_cell, meaning="indices: their share of the file"),
    _space_column("table fan-out", "table_fan_out", fan_out_cell, leaves=10),
    _space_column(
        "indices fan-out",
        "indices_fan_out",
        fan_out_cell,
        meaning="fan-out: children of an internal page, on average; shares and fan-outs are from "
        "sqlite3_analyzer",
    ),
)


class KeysShown(Presenter):
    """Time and space of each type of id, schema by schema."""

    topics = (keys, partial_proofs, figure_limits)
    measures = (
        (case_table.ROWS_FIGURE, case_table.RATIO),
        (case_table.SPREAD,),
        (
            TIME,
            case_table.ComparisonFigure(
                "{letter} file",
                ("{letter}", "file"),
                "file: what the database takes",
                case_table.compared_trial_cell(
                    lambda trial: size(trial.space.file_bytes) if trial.space else None
                ),
            ),
        ),
    )

    def activity(self, group: Group) -> str:
        picks: Picks = group.case.spec
        return (
            f"{format_count(picks.users)} users pick about {format_count(picks.picks)} of "
            f"{format_count(picks.items)} items each; one transaction per user, BEGIN {picks.begin.upper()}"
        )

    def blocks(self, group: Group) -> Iterator[Block]:
        rows = rows_of(group)
        several = len({row.run.case.concurrency for row in rows}) > 1
        names = (_SCHEMA, _ID_TYPE, *((case_table.PROCESSES,) if several else ()))
        legend = [*case_table.spread_legend(group, "time"), *verified_legend(group)]
        times = table_of(rows, (*names, *TIME_COLUMNS, VERIFIED.explained(legend)))
        yield times
        yield Legend(times)
        if measured := [row for row in rows if row.cell and row.cell.space]:
            spaces = table_of(measured, (*names, *SPACE_COLUMNS))
            yield spaces
            yield Legend(spaces)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield no plots: the standard ones draw processes, in which these cases do not differ."""
        return iter(())

    def further_columns(self, group: Group) -> Sequence[Column[Any]]:
        """Return the columns of space if it was measured."""
        return SPACE_COLUMNS if any(trial.space for run in group.runs for trial in run.trials) else ()
