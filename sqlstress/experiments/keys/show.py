"""How primary keys are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.group import Group
from sqlstress.analysis.scaling import disturbed
from sqlstress.analysis.wording import processes, size
from sqlstress.experiments.keys.experiment import Picks
from sqlstress.experiments.keys.key_findings import (
    SOURCE,
    Beside,
    Cell,
    Cells,
    Published,
    beside_published,
    cell_of,
    keys,
    ratio,
    space_figure,
)
from sqlstress.report import Run, Trial
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    MISSING,
    NAME,
    VERIFIED,
    Block,
    Column,
    Figure,
    Legend,
    Paragraph,
    Table,
    count_cell,
    seconds_cell,
    share_cell,
    spread_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.case_table import (
    FAILED,
    PROCESSES,
    RATIO,
    ROWS_MEASURE,
    ROWS_PER_S,
    SPREAD,
    Measure,
    compared_trial,
    of_latency,
    of_trial,
    percentiles,
    spread_legend,
)
from sqlstress.show.plots import Plain, Plot, View, axis, colour, name
from sqlstress.show.shown import TIME, Shown, Value
from sqlstress.statistics.compare import spread
from sqlstress.statistics.units import format_count

# The tables of primary keys: time, space, and the published figures beside those of the report.


BASE = "uuid4"
KIND = "picks"
_BYTES_IN_MB = 1e6


@dataclass(frozen=True, slots=True)
class Row(case_table.Row):
    """A case, the trial that stands for it, and what it is compared with."""

    picks: Picks
    cell: Cell | None
    """Its figures; None where they can't be believed."""
    base: Cell | None
    """The figures of the same case with uuid4."""


def rows_of(group: Group) -> list[Row]:
    """Return the rows of a group, in the order of its runs."""
    cells = Cells(group)
    return [_row(run, run.case.spec, cells) for run in group.runs if run.case.spec]


def _row(run: Run, picks: Picks, cells: Cells) -> Row:
    cell = cell_of(run)
    return Row(run, run.shown(), picks, cell, cells.twin(cell, id_type=BASE) if cell else None)


def time_table(rows: list[Row]) -> Table:
    """Return the table of times."""
    return table_of(rows, (*_case(rows), *TIME_COLUMNS), ("TPS", "p50 ms", "retries"))


def space_table(rows: list[Row]) -> Table:
    """Return the table of what the databases take; without rows where none was measured."""
    measured = [row for row in rows if row.cell and row.cell.space]
    return table_of(measured, (*_case(rows), *SPACE_COLUMNS), ("table fan-out", "bytes per row", "table"))


def published_table(compared: Iterable[Beside]) -> Table:
    """Return the published figures beside the same ones here."""
    return table_of(list(compared), PUBLISHED)


def _case(rows: list[Row]) -> tuple[Figure[Row], ...]:
    """Return the columns that say which case it is: only those in which the rows differ, and the type."""
    makers = {row.picks.made_by for row in rows}
    sizes = {row.run.case.concurrency for row in rows}
    return (
        Figure(Column("schema", ("", "schema"), "left", NAME), lambda row: row.picks.schema),
        Figure(Column("id type", ("", "id type"), "left", NAME), lambda row: row.picks.id_type),
        *[Figure(Column("made by", ("made", "by"), "left", NAME), _made_by)] * (len(makers) > 1),
        *[PROCESSES] * (len(sizes) > 1),
    )


def _made_by(row: Row) -> str | None:
    return row.picks.made_by if row.picks.own_id else None


def _seconds(row: Row) -> str | None:
    if row.trial is None:
        return FAILED
    # The work is the same in every pass: its time is as far off as its rate.
    off = spread_cell(spread([*row.run.rates().values()]))
    return f"{'~' * disturbed(row.run)}{seconds_cell(row.trial.seconds) or MISSING}{off}"


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
    mb = value / _BYTES_IN_MB
    return count_cell(mb) if mb >= 1000 else f"{mb:.2f}"


def percent_cell(share: float) -> str:
    """Write a share as a percentage with one decimal, as sqlite3_analyzer does."""
    return f"{100 * share:.1f}%" if share < 1000 else f"{100 * share:.0e}%"


def fan_out_cell(children: float) -> str:
    """Write an average fan-out, which is a whole number."""
    return whole_cell(round(children))


TIME_COLUMNS: tuple[Figure[Row], ...] = (
    Figure(Column("time s", ("time", "s")), _seconds),
    Figure(Column("uuid4 = 1 (time)", ("uuid4", "= 1")), _beside("time")),
    ROWS_PER_S,
    Figure(Column("TPS", ("", "TPS")), of_trial(lambda trial: count_cell(trial.tps))),
    Figure(Column("p50 ms", ("p50", "ms")), of_latency(KIND, lambda latency: latency.p50_ns)),
    Figure(Column("p99 ms", ("p99", "ms")), of_latency(KIND, lambda latency: latency.p99_ns)),
    Figure(Column("retries", ("re-", "tries")), of_trial(_retries)),
    VERIFIED,
)
SPACE_COLUMNS: tuple[Figure[Row], ...] = (
    Figure(Column("file MB", ("file", "MB")), _space("file", mb_cell)),
    Figure(Column("uuid4 = 1 (file)", ("uuid4", "= 1")), _beside("file")),
    Figure(Column("bytes per row", ("bytes", "per row")), _space("bytes per row", count_cell)),
    Figure(Column("table", ("", "table")), _space("table's share", percent_cell)),
    Figure(Column("indices", ("", "indices")), _space("indices' share", percent_cell)),
    Figure(Column("table fan-out", ("table", "fan-out")), _space("table's fan-out", fan_out_cell)),
    Figure(Column("indices fan-out", ("indices", "fan-out")), _space("indices' fan-out", fan_out_cell)),
)

_WRITTEN: dict[str, tuple[str, Callable[[float], str | None]]] = {
    "time": ("time, s", seconds_cell),
    "file": ("file, MB", mb_cell),
    "indices' share": ("indices' share", percent_cell),
    "indices' fan-out": ("indices' fan-out", fan_out_cell),
    "rows/s": ("rows/s", count_cell),
}
"""Figure → what it is called with its unit, and how it is written."""


def _figure(published: Published) -> str:
    if published.beside is None:
        return _WRITTEN[published.figure][0]
    schema, id_type = published.beside
    return f"{published.figure}, {id_type if schema == published.schema else schema} = 1"


def _written(published: Published, value: float) -> str | None:
    return (share_cell if published.beside else _WRITTEN[published.figure][1])(value)


PUBLISHED: tuple[Figure[Beside], ...] = (
    Figure(Column("schema", ("", "schema"), "left", NAME), lambda one: one.published.schema),
    Figure(Column("id type", ("", "id type"), "left", NAME), lambda one: one.published.id_type),
    Figure(Column("figure", ("", "figure"), "left"), lambda one: _figure(one.published)),
    Figure(Column("published", ("pub-", "lished")), lambda one: _written(one.published, one.published.value)),
    Figure(Column("here", ("", "here")), lambda one: _written(one.published, one.here)),
)


_SPACE = {
    "file_bytes": "file",
    "bytes_per_row": "bytes per row",
    "table_share": "table's share",
    "indices_share": "indices' share",
    "table_fan_out": "table's fan-out",
    "indices_fan_out": "indices' fan-out",
}
"""Column of the CSV → what it has of the space that a database takes."""


class KeysShown(Shown):
    """Time and space of each type of identifier, schema by schema."""

    topics = (keys, partial_proofs, trust)
    measures = (
        (ROWS_MEASURE, RATIO),
        (SPREAD,),
        (
            TIME,
            Measure(
                "{letter} file",
                ("{letter}", "file"),
                "file: what the database takes",
                compared_trial(lambda trial: size(trial.space.file_bytes) if trial.space else None),
            ),
        ),
    )

    def what(self, group: Group) -> str:
        picks = group.case.spec
        if picks is None:
            return "Users pick items"
        return (
            f"{format_count(picks.users)} users pick about {format_count(picks.picks)} of "
            f"{format_count(picks.items)} items each, in a transaction each, BEGIN {picks.begin.upper()}"
        )

    def blocks(self, group: Group) -> Iterator[Block]:
        rows = rows_of(group)
        times, spaces = time_table(rows), space_table(rows)
        yield times
        yield Legend(times, partial(_times, group))
        if spaces.rows:
            yield spaces
            yield Legend(spaces, _spaces)
        compared = tuple(beside_published(group))
        if compared:
            yield Paragraph(f"Beside the published figures ({SOURCE}), of another machine:")
            yield published_table(compared)

    def plots(self, group: Group) -> Iterator[Plot]:
        return plots(group)

    def trial_columns(self, trials: Sequence[Trial]) -> Mapping[str, Callable[[Trial], Value]]:
        return (
            {name: _space_of_trial(figure) for name, figure in _SPACE.items()}
            if any(one.space for one in trials)
            else {}
        )


def _space_of_trial(name: str) -> Callable[[Trial], Value]:
    def value(trial: Trial) -> Value:
        figure = space_figure(trial.space, name)
        return int(figure) if figure is not None and figure.is_integer() else figure

    return value


_PAGES = {
    "table": "table: its share of the file",
    "indices": "indices: their share of the file",
    "bytes per row": "bytes per row: of the table and its indices",
    "indices fan-out": "fan-out: children of an internal page, on average",
}
"""Column → what it is."""


def _spaces(table: Table) -> Iterator[str]:
    yield "file: the whole database, with users and items"
    yield from (text for name, text in _PAGES.items() if name in table.headers)
    if "indices" in table.headers:
        yield "sqlite3_analyzer computed the shares and fan-outs"


def _times(group: Group, table: Table) -> Iterator[str]:
    yield "time: from the first transaction's begin to the last one's end, ids made on the way"
    if any(name.startswith("uuid4") for name in table.headers):
        yield "uuid4 = 1: relative to uuid4 in the same schema"
    if "TPS" in table.headers:
        yield "TPS: transactions a second"
    yield from percentiles(table, "them were as fast or faster")
    if "retries" in table.headers:
        yield "retries: answers BUSY that SQLite's own waiting did not spare a process"
    yield from spread_legend(group, "time")
    yield from verified_legend(group)


# Plots of primary keys: time, and what the table and its indices take.


SPACE_PARTS: tuple[tuple[str, Callable[[Cell], float | None]], ...] = (
    ("table", lambda cell: _part(cell, "table's share")),
    ("indices", lambda cell: _part(cell, "indices' share")),
    ("the rest of the file", lambda cell: _rest(cell)),
    ("the whole file", lambda cell: None if _is_known(cell) else cell.figure("file")),
)


def plots(group: Group) -> Iterator[Plot]:
    """Yield time and space of each type of id, schema by schema."""
    cells = Cells(group).all
    timed = [
        View(
            processes(count) if count else "",
            _time_bars([cell for cell in cells if cell.processes == count]),
            {"xaxis": axis("", type="category"), "yaxis": axis("s", rangemode="tozero"), "barmode": "group"},
        )
        for count in sorted({cell.processes for cell in cells})
    ]
    if timed:
        note = "From the first transaction's begin to the last one's end."
        yield Plot("Time", note, tuple(timed), len(timed) - 1, wide=True)
    sized = _one_each([cell for cell in cells if cell.figure("file")])
    if sized:
        layout = {
            "xaxis": axis("MB", rangemode="tozero"),
            "yaxis": axis("", type="multicategory", autorange="reversed"),
            "barmode": "stack",
            "height": 150 + 20 * len(sized),
        }
        note = "What the table of picks and its indices have of the file."
        yield Plot("Space", note, (View("", _space_bars(sized), layout),), wide=True)


def _id(cell: Cell) -> str:
    return name(f"{cell.picks.id_type}{' by SQLite' * (cell.picks.made_by == 'sqlite')}")


def _time_bars(cells: list[Cell]) -> list[Plain]:
    """Return bars for each type, side by side in each schema."""
    found: list[Plain] = []
    for number, id_type in enumerate(dict.fromkeys(map(_id, cells))):
        own = [cell for cell in cells if _id(cell) == id_type]
        found.append(
            {
                **_bars(id_type, number, f"%{{x}}, {id_type}: %{{y:.2f}} s"),
                "x": [name(cell.picks.schema) for cell in own],
                "y": [cell.seconds for cell in own],
            }
        )
    return found


def _space_bars(cells: list[Cell]) -> list[Plain]:
    """Return bars that lie, one for each schema and type: their names are long, and there are many."""
    where = [[name(cell.picks.schema) for cell in cells], [_id(cell) for cell in cells]]
    return [
        {
            **_bars(part, number, f"%{{y}}, {part}: %{{x:.2f}} MB"),
            "orientation": "h",
            "x": [(size(cell) or 0.0) / 1e6 for cell in cells],
            "y": where,
        }
        for number, (part, size) in enumerate(SPACE_PARTS)
        if any(size(cell) is not None for cell in cells)
    ]


def _bars(label: str, number: int, hover: str) -> Plain:
    return {"type": "bar", "name": label, "marker": {"color": colour(number)}, "hovertemplate": hover}


def _one_each(cells: list[Cell]) -> list[Cell]:
    """Return a cell for each schema and type: the number of processes changes no space worth a bar."""
    return list({(cell.picks.schema, _id(cell)): cell for cell in cells}.values())


def _part(cell: Cell, share: str) -> float | None:
    file, of_it = cell.figure("file"), cell.figure(share)
    return None if file is None or of_it is None else file * of_it


def _is_known(cell: Cell) -> bool:
    """Return whether it is known what has which part of the file."""
    return cell.figure("table's share") is not None


def _rest(cell: Cell) -> float | None:
    if not _is_known(cell):
        return None
    file = cell.figure("file") or 0.0
    return max(0.0, file - sum(_part(cell, share) or 0.0 for share in ("table's share", "indices' share")))
