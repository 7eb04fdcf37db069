"""Tables, plots and compared figures of methods, keys and cycles, as pure functions of a report.

A run is all trials of a case, and a row of a table. A group is the runs of a table. A cell of methods is a
run, not a field of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import size
from sqlstress.experiments.classics.findings import (
    BARE_DRIVER,
    BASE_METHOD,
    DONE,
    LIMIT,
    TIMEOUT,
    WRONG,
    CycleTimes,
    KeyRow,
    MethodsCell,
    MethodsCells,
    best,
    cycle_rates,
    cycles,
    key_rows,
    keys,
    methods,
    row_rates,
    space_figure,
    times_of,
    total_ns,
)
from sqlstress.experiments.classics.spec import Cycling, Picks, setting_of, tricks_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    NAME,
    PERCENTILES,
    VERIFIED,
    Block,
    Column,
    Legend,
    Table,
    Value,
    count_cell,
    ms_cell,
    seconds_cell,
    share_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.case_table import ComparisonFigure
from sqlstress.show.plots import Plain, Plot, View, axis, colour, line, name, small_multiples
from sqlstress.show.shown import TIME, Presenter
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S, digits, format_count, format_duration


class ClassicShown(Presenter):
    """Base class of presenters whose reports have one or two tables."""

    def tables(self, group: Group) -> Iterator[Table]:
        """Yield the tables of a group."""
        raise NotImplementedError

    def blocks(self, group: Group) -> Iterator[Block]:
        for table in self.tables(group):
            yield table
            yield Legend(table)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield no plots: the standard plots are over the number of processes, which seldom differs here."""
        return iter(())


# Methods: a row for each cell, a method at a scale (number of rows) by a driver.


_FAILURES = {TIMEOUT: "TIMEOUT", LIMIT: "LIMIT", WRONG: "FAILED"}


def _rate(cell: MethodsCell) -> str:
    """Return a cell's rows per second and their spread as text, or the reason why there is no rate."""
    if cell.outcome != DONE:
        return _FAILURES.get(cell.outcome, case_table.FAILED)
    return case_table.marked_cell(cell.run, count_cell(cell.rows_per_s), row_rates(cell.run))


def factor_cell(ratio: float) -> str:
    """Return a ratio as text of at most six characters: "1x", "1.2x", "90x", "17kx"."""
    if ratio < 0.095:
        return "<0.01x" if ratio < 0.01 else f"{ratio:.2f}x"
    if ratio < 9.95:
        return "1x" if ratio == 1 else f"{ratio:.1f}x"
    if ratio < 9999.5:
        return f"{ratio:.0f}x"
    return f"{ratio / 1000:.0f}kx" if ratio < 999_500 else f"{ratio:.0e}x"


def _relative(
    name: str, meaning: str, base_of: Callable[[MethodsCell], MethodsCell | None], leaves: int | None = None
) -> Column[MethodsCell]:
    """Return the column with a cell's rate relative to the rate of its base, which `base_of` returns.

    `name` and `meaning` describe the base.
    """

    def cell(shown: MethodsCell) -> str | None:
        base = base_of(shown)
        known = base and base.rows_per_s and shown.rows_per_s
        return factor_cell(shown.rows_per_s / base.rows_per_s) if base and known else None

    meaning = f"{name} = 1: relative to {meaning}"
    return Column(f"{name} = 1", (name, "= 1"), cell=cell, meaning=meaning, leaves=leaves)


def _method_columns(group: Group, cells: MethodsCells) -> Iterator[Column[MethodsCell]]:
    def base(cell: MethodsCell) -> MethodsCell | None:
        return best(cells.series(cell.method.phase, BASE_METHOD, cell.driver))

    def bare(cell: MethodsCell) -> MethodsCell | None:
        same = cells.series(cell.method.phase, cell.tricks, BARE_DRIVER)
        return next((other for other in same if other.method.scale == cell.method.scale), None)

    yield Column("phase", align="left", role=NAME, cell=lambda cell: cell.method.phase)
    yield Column(
        "method",
        align="left",
        role=NAME,
        cell=lambda cell: cell.tricks,
        meaning="WAL: journal mode WAL, otherwise DELETE; TSC: all in one transaction",
    )
    yield Column("rows", role=NAME, cell=lambda cell: format_count(cell.method.rows))
    if len(cells.drivers) > 1:
        yield Column("driver", align="left", role=NAME, cell=lambda cell: cell.driver)
    yield Column("rows/s", ("rows", "per s"), cell=_rate)
    yield _relative(BASE_METHOD, f"the best figure of {BASE_METHOD} in the same phase", base)
    if {BARE_DRIVER} < {*cells.drivers}:
        meaning = f"{BARE_DRIVER}, with the same method and as many rows"
        yield _relative(BARE_DRIVER, meaning, bare, leaves=20)
    yield Column("time s", cell=lambda cell: seconds_cell(cell.seconds) if cell.seconds else None, leaves=10)
    yield VERIFIED.explained(_method_legend(group))


def _method_legend(group: Group) -> Iterator[str]:
    """Yield clauses of the legend: the queried table, the spread, and the failed outcomes."""
    samples = next((run.case.spec.samples for run in group.runs if run.case.spec.phase == "query"), 0)
    if samples:
        rows = format_count(samples * (samples - 1) // 2)
        yield f"queries read a table of {rows} results: all pairs of {format_count(samples)} samples"
    yield from case_table.spread_legend(group, "figure")
    yield "TIMEOUT: over --timeout, and not tried at larger scales; LIMIT: SQLite rejects such a statement"
    yield from verified_legend(group, "the tables and the answers are right")


class MethodsShown(ClassicShown):
    """Presenter of methods: a table with a row for each method at each scale."""

    topics = (methods, partial_proofs)

    def activity(self, group: Group) -> str:
        return "Rows are written and read one by one (1b1), in bulk (BLK), from JSON and inside SQLite (SPC)"

    def tables(self, group: Group) -> Iterator[Table]:
        cells = MethodsCells(group)
        if cells.all:
            yield table_of(cells.by_work(), (*_method_columns(group, cells),))

    def tracked_rates(self, run: Run) -> Iterator[float | None]:
        return (trial.rows_per_s for trial in run.ended)

    def tracked_unit(self, case: Case) -> str:
        return "rows"

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Return the phase, and a key. Of cases with equal keys, the one with the largest scale has a bar."""
        return case.spec.phase, (tricks_of(case), case.driver, case.concurrency)

    def bar_name(self, case: Case) -> str:
        return f"{tricks_of(case)}, {case.driver}, {digits(case.spec.scale)}"


# Keys: tables of time and of space with a row for each type of id, schema by schema.


def _seconds(row: KeyRow) -> str | None:
    if row.trial is None:
        return case_table.FAILED
    # All passes do the same work. So the relative error of the rates is also that of the time.
    return case_table.marked_cell(row.run, seconds_cell(row.trial.seconds), row.run.rates())


def _retries(trial: Trial) -> str | None:
    counts = [count for count in (trial.busy, trial.busy_snapshot) if count is not None]
    return count_cell(sum(counts)) if counts else None


def _space_of(figure: str, trial: Trial) -> Value:
    value = space_figure(trial.space, figure)
    return int(value) if value is not None and value.is_integer() else value


def _space_column(name: str, csv: str, write: Callable[[float], str | None], **more: Any) -> Column[KeyRow]:
    """Return the column of a figure. `csv` is the name of the figure in SPACE and in the CSV."""

    def cell(row: KeyRow) -> str | None:
        value = row.figure(csv)
        return None if value is None else write(value)

    return Column(name, cell=cell, csv=csv, value=partial(_space_of, csv), **more)


def mb_cell(value: float) -> str | None:
    """Return a number of bytes as text in MB (millions of bytes)."""
    return count_cell(value / 1e6) if value >= 1e9 else f"{value / 1e6:.2f}"


def percent_cell(share: float) -> str:
    """Return a share as a percentage with one decimal, in the format of sqlite3_analyzer."""
    return f"{100 * share:.1f}%" if share < 1000 else f"{100 * share:.0e}%"


def fan_out_cell(children: float) -> str:
    """Return an average fan-out (children per internal page of a b-tree), rounded to a whole number."""
    return whole_cell(round(children))


_PICKS = case_table.kind_latency("picks")
_LATENCY = f"{PERCENTILES} of the transactions took at most this long"
_SCHEMA: Column[KeyRow] = Column("schema", ("", "schema"), "left", NAME, lambda row: row.picks.schema)
_ID_TYPE: Column[KeyRow] = Column("id type", ("", "id type"), "left", NAME, lambda row: row.picks.id_type)
TIME_COLUMNS: tuple[Column[KeyRow], ...] = (
    Column(
        "time s",
        cell=_seconds,
        meaning="time: from the start of the first transaction to the end of the last, including making ids",
    ),
    Column(
        "uuid4 = 1 (time)",
        ("uuid4", "= 1"),
        cell=lambda row: share_cell(row.ratio("time")),
        meaning="uuid4 = 1: relative to uuid4 in the same schema",
    ),
    replace(case_table.ROWS_PER_S, leaves=None),
    Column(
        "TPS",
        cell=case_table.trial_cell(lambda trial: count_cell(trial.tps)),
        meaning="TPS: transactions per second",
        leaves=10,
    ),
    case_table.percentile_column("p50", _PICKS, meaning=_LATENCY, leaves=20),
    case_table.percentile_column("p99", _PICKS, meaning=_LATENCY),
    Column(
        "retries",
        cell=case_table.trial_cell(_retries),
        meaning="retries: BUSY results that SQLite's own waiting did not avoid",
        leaves=30,
    ),
)
SPACE_COLUMNS: tuple[Column[KeyRow], ...] = (
    _space_column(
        "file MB", "file_bytes", mb_cell, meaning="file: the whole database, including users and items"
    ),
    Column("uuid4 = 1 (file)", ("uuid4", "= 1"), cell=lambda row: share_cell(row.ratio("file_bytes"))),
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


class KeysShown(ClassicShown):
    """Presenter of keys: tables of the time and space of each type of id, schema by schema."""

    topics = (keys, partial_proofs, figure_limits)
    measures = (
        (case_table.ROWS_FIGURE, case_table.RATIO),
        (case_table.SPREAD,),
        (
            TIME,
            ComparisonFigure(
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

    def tables(self, group: Group) -> Iterator[Table]:
        rows = key_rows(group)
        several = len({row.run.case.concurrency for row in rows}) > 1
        names = (_SCHEMA, _ID_TYPE, *((case_table.PROCESSES,) if several else ()))
        legend = [*case_table.spread_legend(group, "time"), *verified_legend(group)]
        yield table_of(rows, (*names, *TIME_COLUMNS, VERIFIED.explained(legend)))
        if measured := [row for row in rows if row.figure("time") and row.trial and row.trial.space]:
            yield table_of(measured, (*names, *SPACE_COLUMNS))

    def further_columns(self, group: Group) -> Sequence[Column[Any]]:
        """Return the columns of file space; none if the space was not measured."""
        return SPACE_COLUMNS if any(trial.space for run in group.runs for trial in run.trials) else ()


# Cycles: a row for each setting (journal mode, extent of a transaction, and frames before a checkpoint).


def _ms(figure: Callable[[CycleTimes], float | None]) -> case_table.Cell:
    """Return a function that shows a time of the trial with the median rate in ms; `figure` is in ns."""
    return lambda row: ms_cell(figure(times)) if (times := _times(row)) else None


def _times(row: case_table.Row) -> CycleTimes | None:
    return times_of(row.trial) if row.trial else None


def _done(row: case_table.Row) -> str | None:
    """Return the number of completed cycles of a run that was stopped by the time-out; else None."""
    if row.trial is None or row.trial.outcome == DONE:
        return None
    return whole_cell(len(times.cycles) if (times := _times(row)) else 0)


def _total(row: case_table.Row) -> str | None:
    if row.trial is None:
        return case_table.FAILED
    if row.trial.outcome != DONE:
        return "TIMEOUT"
    return case_table.marked_cell(row.run, ms_cell(total_ns(row.trial)), cycle_rates(row.run))


def _slowest_cycle(row: case_table.Row) -> str | None:
    times = _times(row)
    return whole_cell(times.slowest) if times and times.slowest else None


SETTING: Column[case_table.Row] = Column("setting", align="left", cell=lambda row: setting_of(row.run.case))
SLOWEST: tuple[Column[case_table.Row], ...] = (
    Column(
        "slowest ms",
        cell=_ms(lambda times: times.slowest_ns),
        meaning="slowest: the slowest cycle except the first",
    ),
    Column("slowest cycle", ("in", "cycle"), cell=_slowest_cycle),
)
CYCLE_COLUMNS: tuple[Column[case_table.Row], ...] = (
    Column("cycles done", cell=_done),
    Column(
        "statements ms",
        cell=_ms(lambda times: sum(times.cycles)),
        meaning="statements: the inserts and deletes of all cycles, including commits if each row has "
        "its own",
    ),
    Column(
        "BEGIN, COMMIT ms",
        ("BEGIN,", "COMMIT"),
        cell=_ms(lambda times: sum(times.bounds) if times.bounds else None),
        meaning="BEGIN, COMMIT: time of these, counted separately",
    ),
    Column("total ms", cell=_total, meaning="total: all of this, without the closing checkpoint"),
    Column("closing checkpoint ms", ("closing", "ckpt ms"), cell=_ms(lambda times: times.closing), leaves=30),
    Column("first ms", cell=_ms(lambda times: times.cycles[0]), leaves=20),
    Column("median ms", cell=_ms(lambda times: median(times.cycles)), leaves=10),
    *SLOWEST,
)
_SETTINGS = {
    "tx": "one transaction over the whole run",
    "off": "no automatic checkpoints",
}
"""Meanings of the words in the name of a setting."""


def _setting_legend(group: Group) -> Iterator[str]:
    parts = {part for run in group.runs for part in setting_of(run.case).split("-")}
    yield from (f"{part}: {text}" for part, text in _SETTINGS.items() if part in parts)
    if any(part.isdecimal() for part in parts):
        yield "a number: WAL frames that trigger a checkpoint"


def _cycle_legend(group: Group) -> Iterator[str]:
    """Yield clauses of the legend: what times include, the spread, and the check of the data."""
    yield from case_table.spread_legend(group, "total")
    yield from verified_legend(group, "the table holds what the last acknowledged commit left")


class CyclesShown(ClassicShown):
    """Presenter of cycles: a table row per setting, and a plot of each cycle with the checkpoints."""

    topics = (cycles, partial_proofs)
    measures = (
        (
            ComparisonFigure(
                "{letter} cycles/s",
                ("{letter} {system}", "cycles/s"),
                "cycles/s: cycles per second, without the closing checkpoint",
                case_table.compared_rate_cell,
            ),
            case_table.RATIO,
        ),
        (case_table.SPREAD,),
        (
            ComparisonFigure(
                "{letter} total ms",
                ("{letter}", "total ms"),
                "total: time of all cycles",
                case_table.run_cell(lambda run, trial: ms_cell(total_ns(trial))),
            ),
            *map(case_table.comparison_figure, SLOWEST),
        ),
    )

    def activity(self, group: Group) -> str:
        work: Cycling = group.case.spec
        rows = format_count(work.rows)
        limits = [run.case.spec.timeout_s for run in group.runs if run.case.spec.timeout_s]
        limit = f"; given up after {format_duration(max(limits))}" if limits else ""
        return (
            f"{format_count(work.cycles)} cycles: insert {rows} rows one by one, delete all with one "
            f"statement, insert {rows}{limit}"
        )

    def tables(self, group: Group) -> Iterator[Table]:
        setting = SETTING.explained(_setting_legend(group))
        verified = VERIFIED.explained(_cycle_legend(group))
        yield table_of(case_table.rows_of(group), (setting, *CYCLE_COLUMNS, verified))

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield a plot with the time of each cycle: a line for each setting, with its checkpoints marked."""
        data: list[Plain] = []
        for number, (run, trial) in enumerate(group.measured()):
            if times := times_of(trial):
                data += _traces(name(setting_of(run.case)), times, number)
        if data:
            note = "The time of each cycle. Diamonds: a checkpoint was seen in it."
            axes = {"xaxis": axis("cycle", whole=True), "yaxis": axis("ms", type="log")}
            yield Plot("Each cycle", note, (View("", data, {**axes, **small_multiples(data)}),), wide=True)

    def rate(self, run: Run) -> float | None:
        trial = run.valid_median_trial()
        total = total_ns(trial) if trial else 0
        return NS_PER_S * run.case.spec.cycles / total if total > 0 else None


def _traces(label: str, times: CycleTimes, number: int) -> Iterator[Plain]:
    """Yield the line of a setting in the plot, and the marks of its checkpoints.

    `label` is the name of the setting, and `number` selects the colour.
    """
    ms = [ns / NS_PER_MS for ns in times.cycles]
    hover = f"{label}, cycle %{{x}}: %{{y:.3g}} ms"
    trace = line(label, range(1, len(ms) + 1), ms, number, hover)
    yield {**trace, "mode": "lines", "legendgroup": label}
    if marked := [cycle for cycle in times.checkpoints if cycle <= len(ms)]:
        yield {
            "type": "scatter",
            "mode": "markers",
            "name": f"{label}: checkpoint",
            "legendgroup": label,
            "showlegend": False,
            "x": marked,
            "y": [ms[cycle - 1] for cycle in marked],
            "marker": {"color": colour(number), "size": 10, "symbol": "diamond"},
            "hovertemplate": f"{hover}, with a checkpoint",
        }
