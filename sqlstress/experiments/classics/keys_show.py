"""How primary keys are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import processes, size
from sqlstress.experiments.classics.bars import bar_view
from sqlstress.experiments.classics.keys import Picks
from sqlstress.experiments.classics.keys_findings import (
    BYTES_IN_MB,
    SPACE,
    Cell,
    Cells,
    cell_of,
    keys,
    ratio,
    space_figure,
)
from sqlstress.report import Trial
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    NAME,
    VERIFIED,
    Block,
    Column,
    Figure,
    Legend,
    Table,
    count_cell,
    seconds_cell,
    share_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.plots import Plot, axis, name
from sqlstress.show.shown import TIME, Shown, Value
from sqlstress.statistics.units import format_count

KIND = "picks"
SCHEMA, ID_TYPE = (Column(word, ("", word), "left", NAME) for word in ("schema", "id type"))


@dataclass(frozen=True, slots=True)
class Row(case_table.Row):
    """A case, the trial that stands for it, and what it is compared with."""

    cell: Cell | None
    """Its figures; None where they can't be believed."""
    base: Cell | None
    """The figures of the same case with uuid4."""


def rows_of(group: Group) -> list[Row]:
    """Return the rows of a group, in the order of its runs."""
    cells = Cells(group)
    known = [(run, cell_of(run)) for run in group.runs]
    return [
        Row(run, run.shown(), cell, cells.twin(cell, id_type="uuid4") if cell else None)
        for run, cell in known
    ]


def _case(rows: list[Row]) -> tuple[Figure[Row], ...]:
    """Return the columns that say which case it is: only those in which the rows differ, and the type."""
    makers = {row.run.case.spec.made_by for row in rows}
    counts = {row.run.case.concurrency for row in rows}
    return (
        Figure(SCHEMA, lambda row: row.run.case.spec.schema),
        Figure(ID_TYPE, lambda row: row.run.case.spec.id_type),
        *[Figure(Column("made by", align="left", role=NAME), _made_by)] * (len(makers) > 1),
        *[case_table.PROCESSES] * (len(counts) > 1),
    )


def _made_by(row: Row) -> str | None:
    picks: Picks = row.run.case.spec
    return picks.made_by if picks.own_id else None


def _seconds(row: Row) -> str | None:
    if row.trial is None:
        return case_table.FAILED
    # The work is the same in every pass: its time is as far off as its rate.
    return case_table.marked_cell(row.run, seconds_cell(row.trial.seconds), row.run.rates())


def _retries(trial: Trial) -> str | None:
    counts = [count for count in (trial.busy, trial.busy_snapshot) if count is not None]
    return count_cell(sum(counts)) if counts else None


def _beside(figure: str) -> Callable[[Row], str | None]:
    return lambda row: share_cell(ratio(row.cell, row.base, figure))


def _space(figure: str, written: Callable[[float], str | None]) -> Callable[[Row], str | None]:
    def cell(row: Row) -> str | None:
        value = row.cell.figure(figure) if row.cell else None
        return None if value is None else written(value)

    return cell


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


TIME_COLUMNS: tuple[Figure[Row], ...] = (
    Figure(Column("time s"), _seconds),
    Figure(Column("uuid4 = 1 (time)", ("uuid4", "= 1")), _beside("time")),
    case_table.ROWS_PER_S,
    Figure(Column("TPS"), case_table.of_trial(lambda trial: count_cell(trial.tps))),
    Figure(Column("p50 ms"), case_table.of_latency(KIND, lambda latency: latency.p50_ns)),
    Figure(Column("p99 ms"), case_table.of_latency(KIND, lambda latency: latency.p99_ns)),
    Figure(Column("retries", ("", "retries")), case_table.of_trial(_retries)),
    VERIFIED,
)
SPACE_COLUMNS: tuple[Figure[Row], ...] = (
    Figure(Column("file MB"), _space("file_bytes", mb_cell)),
    Figure(Column("uuid4 = 1 (file)", ("uuid4", "= 1")), _beside("file_bytes")),
    Figure(Column("bytes per row", ("bytes", "per row")), _space("bytes_per_row", count_cell)),
    Figure(Column("table"), _space("table_share", percent_cell)),
    Figure(Column("indices"), _space("indices_share", percent_cell)),
    Figure(Column("table fan-out"), _space("table_fan_out", fan_out_cell)),
    Figure(Column("indices fan-out"), _space("indices_fan_out", fan_out_cell)),
)


class KeysShown(Shown):
    """Time and space of each type of identifier, schema by schema."""

    topics = (keys, partial_proofs, trust)
    measures = (
        (case_table.ROWS_MEASURE, case_table.RATIO),
        (case_table.SPREAD,),
        (
            TIME,
            case_table.Measure(
                "{letter} file",
                ("{letter}", "file"),
                "file: what the database takes",
                case_table.compared_trial(
                    lambda trial: size(trial.space.file_bytes) if trial.space else None
                ),
            ),
        ),
    )

    def what(self, group: Group) -> str:
        picks: Picks = group.case.spec
        return (
            f"{format_count(picks.users)} users pick about {format_count(picks.picks)} of "
            f"{format_count(picks.items)} items each; one transaction per user, BEGIN {picks.begin.upper()}"
        )

    def blocks(self, group: Group) -> Iterator[Block]:
        rows = rows_of(group)
        times = table_of(rows, (*_case(rows), *TIME_COLUMNS), ("TPS", "p50 ms", "retries"))
        yield times
        yield Legend(times, partial(_times, group))
        if measured := [row for row in rows if row.cell and row.cell.space]:
            leaving = ("table fan-out", "bytes per row", "table")
            spaces = table_of(measured, (*_case(rows), *SPACE_COLUMNS), leaving)
            yield spaces
            yield Legend(spaces, _spaces)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield the time of each type of id, schema by schema."""
        views = []
        for count in sorted({cell.processes for cell in Cells(group).all}):
            bars: dict[str, list[tuple[str, float]]] = {}
            for cell in Cells(group).all:
                if cell.processes == count:
                    bars.setdefault(_id(cell), []).append((name(cell.picks.schema), cell.seconds))
            views.append(bar_view(processes(count) if count else "", axis("s", rangemode="tozero"), bars))
        if views:
            note = "From the start of the first transaction to the end of the last one."
            yield Plot("Time", note, tuple(views), len(views) - 1, wide=True)

    def trial_columns(self, trials: Sequence[Trial]) -> Mapping[str, Callable[[Trial], Value]]:
        measured = any(trial.space for trial in trials)
        return {name: partial(_space_of, name) for name in SPACE} if measured else {}


def _space_of(name: str, trial: Trial) -> Value:
    figure = space_figure(trial.space, name)
    return int(figure) if figure is not None and figure.is_integer() else figure


_PAGES = {
    "table": "table: its share of the file",
    "indices": "indices: their share of the file",
    "bytes per row": "bytes per row: of the table and its indices",
    "indices fan-out": "fan-out: children of an internal page, on average",
}
"""Column → what it is."""


def _spaces(table: Table) -> Iterator[str]:
    yield "file: the whole database, including users and items"
    yield from table.explained(_PAGES)
    if "indices" in table.headers:
        yield "shares and fan-outs are from sqlite3_analyzer"


def _times(group: Group, table: Table) -> Iterator[str]:
    yield "time: from the start of the first transaction to the end of the last, including making ids"
    if any(name.startswith("uuid4") for name in table.headers):
        yield "uuid4 = 1: relative to uuid4 in the same schema"
    if "TPS" in table.headers:
        yield "TPS: transactions per second"
    yield from case_table.percentiles(table, "the transactions took at most this long")
    if "retries" in table.headers:
        yield "retries: BUSY results that SQLite's own waiting did not avoid"
    yield from case_table.spread_legend(group, "time")
    yield from verified_legend(group)


def _id(cell: Cell) -> str:
    return name(f"{cell.picks.id_type}{' by SQLite' * (cell.picks.made_by == 'sqlite')}")
