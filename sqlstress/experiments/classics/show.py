"""Tables, findings (sentences) and plots in reports of `sqlstress methods`, `keys` and `cycles`.

A case is a combination of option values, and a row of a table. It is measured in several trials, which make
up a run. A group has the runs of a table's cases.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import size
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS, sentences
from sqlstress.experiments.classics.compared import DONE, LIMIT, Ranking, Write
from sqlstress.experiments.classics.spec import PHASES, Cycling, Method, Picks, setting_of, tricks_of
from sqlstress.report import Run, Space, Trial
from sqlstress.report.case import Case
from sqlstress.show import blocks, case_table
from sqlstress.show.blocks import NAME, VERIFIED, Block, Column, Legend, Table, table_of, verified_legend
from sqlstress.show.case_table import ComparisonFigure, Row
from sqlstress.show.plots import Plain, Plot, View, axis, colour, line, marks, name, small_multiples
from sqlstress.show.shown import TIME, Presenter
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S, digits, finite, format_count, format_duration


class ClassicShown(Presenter):
    """Base class of the presenters, which make the tables, findings and plots of a report."""

    def tables(self, group: Group) -> Iterator[Table]:
        raise NotImplementedError

    def blocks(self, group: Group) -> Iterator[Block]:
        for table in self.tables(group):
            yield table
            yield Legend(table)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield no plots. `Presenter` plots figures by number of processes, which seldom varies here."""
        return iter(())


# `sqlstress methods`: a row for each driver, number of rows, and method, such as 1b1 (one row per statement).


METHODS = Ranking(
    tricks_of,
    base="1b1",
    figure=lambda trial: trial.rows_per_s,
    part=lambda case: f"{case.spec.phase} with {case.driver}",
    special="SPC",
)
DRIVERS = Ranking(
    lambda case: case.driver,
    base="sqlite3",
    figure=METHODS.figure,
    part=lambda case: f"{case.spec.phase} {tricks_of(case)} {case.spec.scale}",
)
"""Rule to compare drivers in equal work. Their rates (rows per s) are divided by the rate of sqlite3."""


def _method_rows(group: Group) -> list[Row]:
    drivers = [run.case.driver for run in group.runs]

    def work(row: Row) -> tuple[int, int, int]:
        case = row.run.case
        return PHASES.index(case.spec.phase), drivers.index(case.driver), case.spec.rows

    known = (row for row in case_table.rows_of(group) if row.run.case.spec.phase in PHASES)
    return sorted(known, key=work)


def _method_columns(group: Group, rows: Sequence[Row]) -> Iterator[Column[Row]]:
    drivers = {row.run.case.driver for row in rows}
    yield Column("phase", align="left", role=NAME, cell=lambda row: row.run.case.spec.phase)
    yield Column(
        "method",
        align="left",
        role=NAME,
        cell=lambda row: tricks_of(row.run.case),
        meaning="WAL: journal mode WAL, otherwise DELETE; TSC: all in one transaction",
    )
    yield Column("rows", role=NAME, cell=lambda row: format_count(row.run.case.spec.rows))
    if len(drivers) > 1:
        yield Column("driver", align="left", role=NAME, cell=lambda row: row.run.case.driver)
    yield Column("rows/s", ("rows", "per s"), cell=METHODS.main_cell(blocks.count_cell))
    meaning = "1b1 = 1: relative to the best figure of 1b1 in the same phase"
    yield METHODS.relative_column("1b1 = 1", rows, blocks.count_cell, meaning=meaning)
    if {DRIVERS.base} < drivers:
        meaning = "sqlite3 = 1: relative to sqlite3, with the same method and as many rows"
        yield DRIVERS.relative_column("sqlite3 = 1", rows, blocks.count_cell, meaning=meaning, leaves=20)
    meanings = [
        *case_table.spread_legend(group, "figure"),
        "TIMEOUT: over --timeout, and not tried at larger scales; LIMIT: SQLite rejects such a statement",
        *verified_legend(group, "the tables and the answers are right"),
    ]
    yield VERIFIED.explained(meanings)


def limits(group: Group) -> Iterator[Finding]:
    """Yield a finding for each method that met a limit of SQLite, such as BLK (a statement for all rows)."""
    refused: dict[tuple[str, str, str], list[Run]] = {}
    for run in group.runs:
        method: Method = run.case.spec
        for note in dict.fromkeys(trial.note for trial in run.valid if trial.outcome == LIMIT):
            refused.setdefault((method.phase, method.name, note), []).append(run)
    for (phase, method_name, note), runs in refused.items():
        yield Finding(
            sentences.method_limit,
            phase=phase,
            rows=runs[0].case.spec.rows,
            method=method_name,
            drivers=tuple(dict.fromkeys(run.case.driver for run in runs)),
            reason=note,
            instead="JSON" if phase == "query" else "BLK/n or JSON",
        )


class MethodsShown(ClassicShown):
    """Presenter of `sqlstress methods`: a table with a row for each method, number of rows and driver."""

    topics = (METHODS.findings, limits, partial_proofs)

    def activity(self, group: Group) -> str:
        return "Rows are written and read one by one (1b1), in bulk (BLK), from JSON and inside SQLite (SPC)"

    def tables(self, group: Group) -> Iterator[Table]:
        if rows := _method_rows(group):
            yield table_of(rows, (*_method_columns(group, rows),))

    def tracked_rates(self, run: Run) -> Iterator[float | None]:
        return (trial.rows_per_s for trial in run.ended)

    def tracked_unit(self, case: Case) -> str:
        return "rows"

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Return the title of the bar plot of a case, and a key. Cases with equal keys share one bar.

        Cases with 100 and 10,000 rows, otherwise equal, have equal keys. Only the last of them is shown.
        """
        return case.spec.phase, (tricks_of(case), case.driver, case.concurrency)

    def bar_name(self, case: Case) -> str:
        return f"{tricks_of(case)}, {case.driver}, {digits(case.spec.scale)}"


# `sqlstress keys`: a table of times and a table of sizes, with a row for each schema and type of id.


KEYS = Ranking(
    lambda case: str(case.spec.id_type),
    base="uuid4",
    figure=lambda trial: trial.seconds,
    is_time=True,
    part=lambda case: str(case.spec.schema),
    special="int",
)
TABLE = "picks"
SPACE: Mapping[str, Callable[[Space], float | None]] = {
    "file_bytes": lambda space: space.file_bytes,
    "bytes_per_row": lambda space: space.bytes_per_row(TABLE),
    "table_share": lambda space: space.table_alone(TABLE).share,
    "indices_share": lambda space: space.indices_of(TABLE).share,
    "table_fan_out": lambda space: space.table_alone(TABLE).fan_out,
    "indices_fan_out": lambda space: space.indices_of(TABLE).fan_out,
}
"""Functions that compute a number from the sizes of the file and its b-trees, by name of the CSV column."""


def _space_column(name: str, csv: str, write: Write, **more: Any) -> Column[Row]:
    """Return a column of sizes. `csv` names the CSV column, such as "file_bytes". `write` formats a size."""

    def value(trial: Trial) -> float | None:
        try:
            known = finite(SPACE[csv](trial.space)) if trial.space else None
        except (KeyError, ZeroDivisionError):  # An edited report may have contradictory figures.
            return None
        return int(known) if known is not None and known.is_integer() else known

    def cell(known: float | None) -> str | None:
        return None if known is None else write(known)

    return case_table.trial_column(name, csv, value, cell, **more)


def _mb_cell(size_bytes: float) -> str | None:
    return blocks.count_cell(size_bytes / 1e6) if size_bytes >= 1e9 else f"{size_bytes / 1e6:.2f}"


def _percent_cell(share: float) -> str:
    return f"{100 * share:.1f}%" if share < 1000 else f"{100 * share:.0e}%"


_PICKS = case_table.kind_latency("picks")
_LATENCY = f"{blocks.PERCENTILES} of the transactions took at most this long"


def _key_names(rows: Sequence[Row]) -> Iterator[Column[Row]]:
    yield Column("schema", ("", "schema"), "left", NAME, lambda row: row.run.case.spec.schema)
    yield Column("id type", ("", "id type"), "left", NAME, lambda row: row.run.case.spec.id_type)
    if len({row.run.case.concurrency for row in rows}) > 1:
        yield case_table.PROCESSES


def _time_columns(rows: Sequence[Row]) -> Iterator[Column[Row]]:
    yield Column(
        "time s",
        cell=KEYS.main_cell(blocks.seconds_cell),
        meaning="time: from the start of the first transaction to the end of the last, including making ids",
    )
    meaning = "uuid4 = 1: relative to uuid4 in the same schema"
    yield KEYS.relative_column("uuid4 = 1 (time)", rows, blocks.share_cell, meaning=meaning)
    yield replace(case_table.ROWS_PER_S, leaves=None)
    yield case_table.percentile_column("p50", _PICKS, meaning=_LATENCY, leaves=20)
    yield case_table.percentile_column("p99", _PICKS, meaning=_LATENCY)


SPACE_COLUMNS: tuple[Column[Row], ...] = (
    _space_column(
        "file MB", "file_bytes", _mb_cell, meaning="file: the whole database, including users and items"
    ),
    _space_column(
        "bytes per row",
        "bytes_per_row",
        blocks.count_cell,
        heading=("bytes", "per row"),
        meaning="bytes per row: of the table and its indices",
        leaves=20,
    ),
    _space_column("table", "table_share", _percent_cell, meaning="table: its share of the file", leaves=30),
    _space_column("indices", "indices_share", _percent_cell, meaning="indices: their share of the file"),
    _space_column("table fan-out", "table_fan_out", blocks.count_cell, leaves=10),
    _space_column(
        "indices fan-out",
        "indices_fan_out",
        blocks.count_cell,
        meaning="fan-out: children of an internal page, on average; shares and fan-outs are from "
        "sqlite3_analyzer",
    ),
)
FILE: Column[Row] = Column(
    "file",
    cell=case_table.trial_cell(lambda trial: size(trial.space.file_bytes) if trial.space else None),
    meaning="file: what the database takes",
)


def _file_bytes(trial: Trial) -> float | None:
    return finite(trial.space.file_bytes) if trial.space else None


def unsplit_space(group: Group) -> Iterator[Finding]:
    """Yield a finding if only the size of the whole file is known, because SQLite lacked the table dbstat."""
    # A report of published sizes, which came from an article, has no page counts: SQLite did not measure it.
    spaces = [trial.space for run in group.runs for trial in run.trials if trial.space]
    if any(space.page_count and not space.trees for space in spaces):
        yield Finding(sentences.space_unsplit)


class KeysShown(ClassicShown):
    """Presenter of `sqlstress keys`: tables of times and of sizes, a row for each schema and type of id."""

    topics = (KEYS.findings, unsplit_space, partial_proofs, figure_limits)
    measures = (
        (case_table.ROWS_FIGURE, case_table.RATIO),
        (case_table.SPREAD,),
        (TIME, case_table.comparison_figure(FILE)),
    )

    def activity(self, group: Group) -> str:
        picks: Picks = group.case.spec
        return (
            f"{format_count(picks.users)} users pick about {format_count(picks.picks)} of "
            f"{format_count(picks.items)} items each; one transaction per user, BEGIN {picks.begin.upper()}"
        )

    def tables(self, group: Group) -> Iterator[Table]:
        rows = case_table.rows_of(group)
        legend = [*case_table.spread_legend(group, "time"), *verified_legend(group)]
        yield table_of(rows, (*_key_names(rows), *_time_columns(rows), VERIFIED.explained(legend)))
        if measured := [row for row in rows if row.trial and row.trial.space]:
            relative = KEYS.relative_column("uuid4 = 1 (file)", rows, blocks.share_cell, _file_bytes)
            yield table_of(measured, (*_key_names(rows), SPACE_COLUMNS[0], relative, *SPACE_COLUMNS[1:]))

    def further_columns(self, group: Group) -> Sequence[Column[Any]]:
        return SPACE_COLUMNS if any(trial.space for run in group.runs for trial in run.trials) else ()


# `sqlstress cycles`: a row for each setting, such as "wal-tx" (journal mode WAL, one transaction).


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """Times of a trial's cycles, in ns. A cycle inserts rows, deletes all rows and inserts rows again."""

    cycles: tuple[int, ...]
    """Time of the inserts and deletes of each cycle, without BEGIN and COMMIT."""
    bounds: tuple[int, ...]
    """Time of BEGIN and COMMIT in each cycle; empty if each statement commits by itself.

    For one transaction over four cycles: (20, 0, 0, 90), with BEGIN in the first and COMMIT in the last.
    """
    checkpoints: tuple[int, ...]
    """Numbers, from 1, of the cycles in which a checkpoint ran."""
    closing: int | None
    """Time of the checkpoint that is run after the last cycle; None if no such checkpoint was run."""

    @property
    def slowest(self) -> tuple[int, int] | None:
        """Number and time of the slowest cycle except the first: (2, 900 ns); None if there is only one."""
        numbers = range(2, len(self.cycles) + 1)
        number = max(numbers, key=lambda number: self.cycles[number - 1], default=None)
        return (number, self.cycles[number - 1]) if number else None


def times_of(trial: Trial) -> CycleTimes | None:
    """Return the times of a trial's cycles (insert, delete all, insert again); None if none was completed."""
    known = {series.name: series.values for series in trial.series}
    cycles = known.get(STATEMENTS, ())
    if not cycles:
        return None
    wal = [known.get(figure, ()) for figure in (WAL_FRAMES, CHECKPOINTED_FRAMES, WAL_RESTARTS)]
    closing = trial.latency.get("checkpoint")
    return CycleTimes(
        cycles,
        known.get(BEGIN_AND_COMMIT, ()),
        tuple(checkpoints_in(*wal)),
        closing.max_ns if closing and closing.count else None,
    )


def checkpoints_in(
    frames: Sequence[int], checkpointed: Sequence[int], restarts: Sequence[int]
) -> Iterator[int]:
    """Yield the numbers, from 1, of the cycles in which a checkpoint ran.

    The parameters have a number for each cycle, read after it: frames in the WAL, checkpointed frames, and
    restarts of the WAL so far. Each of these shows a checkpoint in a cycle:
    - no restart, but more checkpointed frames than after the cycle before
    - a restart, although some frames were not checkpointed before the cycle: a restart needs all checkpointed
    - a restart, and checkpointed frames after the cycle: a restart sets their number to 0
    """
    before = (0, 0, 0)
    for cycle, now in enumerate(zip(frames, checkpointed, restarts, strict=False), 1):
        anew, all_done = now[2] > before[2], before[1] >= before[0]
        if (anew and (now[1] > 0 or not all_done)) or (not anew and now[1] > before[1]):
            yield cycle
        before = now


def total_ns(trial: Trial) -> float:
    """Return the time of all cycles, in ns, without the final checkpoint; if unknown, the trial's time."""
    times = times_of(trial)
    return sum(times.cycles) + sum(times.bounds) if times else trial.seconds * NS_PER_S


CYCLES = Ranking(setting_of, base="delete", figure=total_ns, is_time=True)


def checkpoints(group: Group) -> Iterator[Finding]:
    """Yield a finding on the cycles with a checkpoint, for each case (row of the table) in WAL mode.

    Cases with one transaction for all cycles have no finding: no checkpoint is possible before the COMMIT.
    """
    for run, trial in group.measured():
        times = times_of(trial)
        is_known = any(series.name == WAL_FRAMES for series in trial.series)
        if not is_known or run.case.spec.transaction == "run" or not times or not times.slowest:
            continue
        yield Finding(
            sentences.checkpoint,
            where=setting_of(run.case),
            cycles=times.checkpoints,
            slowest=times.slowest[0],
            slowest_ns=times.slowest[1],
            median_ns=median(times.cycles),
        )


def _ms(time_ns: Callable[[CycleTimes], float | None]) -> case_table.Cell:
    return _cell(lambda times: blocks.ms_cell(time_ns(times)))


def _cell(text: Callable[[CycleTimes], str | None]) -> case_table.Cell:
    return case_table.trial_cell(lambda trial: text(times) if (times := times_of(trial)) else None)


def _done(trial: Trial) -> str | None:
    """Return the number of completed cycles if the trial ended early, for example at its time limit."""
    times = times_of(trial)
    return None if trial.outcome == DONE else blocks.whole_cell(len(times.cycles) if times else 0)


SETTING: Column[Row] = Column(
    "setting",
    align="left",
    cell=lambda row: setting_of(row.run.case),
    meaning="tx: one transaction over the whole run; off: no automatic checkpoints; a number: WAL frames "
    "that trigger a checkpoint",
)
SLOWEST: tuple[Column[Row], ...] = (
    Column(
        "slowest ms",
        cell=_ms(lambda times: times.slowest[1] if times.slowest else None),
        meaning="slowest: the slowest cycle except the first",
    ),
    Column(
        "slowest cycle",
        ("in", "cycle"),
        cell=_cell(lambda times: blocks.whole_cell(times.slowest[0]) if times.slowest else None),
    ),
)
TOTAL: Column[Row] = Column(
    "total ms",
    ("", "total ms"),
    cell=case_table.trial_cell(lambda trial: blocks.ms_cell(total_ns(trial))),
    meaning="total: time of all cycles",
)
CYCLE_COLUMNS: tuple[Column[Row], ...] = (
    Column("cycles done", cell=case_table.trial_cell(_done)),
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
    Column(
        "total ms",
        cell=CYCLES.main_cell(blocks.ms_cell),
        meaning="total: all of this, without the closing checkpoint",
    ),
    Column("closing checkpoint ms", ("closing", "ckpt ms"), cell=_ms(lambda times: times.closing), leaves=30),
    Column("first ms", cell=_ms(lambda times: times.cycles[0]), leaves=20),
    Column("median ms", cell=_ms(lambda times: median(times.cycles)), leaves=10),
    *SLOWEST,
)


class CyclesShown(ClassicShown):
    """Presenter of `sqlstress cycles`: a table with a row for each setting, such as "wal", and a plot."""

    topics = (CYCLES.findings, checkpoints, partial_proofs)
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
        tuple(map(case_table.comparison_figure, (TOTAL, *SLOWEST))),
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
        proved = verified_legend(group, "the table holds what the last acknowledged commit left")
        verified = VERIFIED.explained([*case_table.spread_legend(group, "total"), *proved])
        rows = case_table.rows_of(group)
        speeds = CYCLES.relative_column(
            "delete = 1",
            rows,
            blocks.count_cell,
            lambda trial: 1 / total if (total := total_ns(trial)) else None,
            meaning="delete = 1: speed relative to delete, from the totals",
            leaves=40,
        )
        yield table_of(rows, (SETTING, *CYCLE_COLUMNS, speeds, verified))

    def plots(self, group: Group) -> Iterator[Plot]:
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
    """Yield a line with the time of each cycle, and marks at checkpoints. `number` selects the colour."""
    ms = [ns / NS_PER_MS for ns in times.cycles]
    hover = f"{label}, cycle %{{x}}: %{{y:.3g}} ms"
    trace = line(label, range(1, len(ms) + 1), ms, number, hover)
    yield {**trace, "mode": "lines", "legendgroup": label}
    if marked := [cycle for cycle in times.checkpoints if cycle <= len(ms)]:
        times_ms = [ms[cycle - 1] for cycle in marked]
        text = f"{hover}, with a checkpoint"
        diamonds = marks(
            f"{label}: checkpoint", marked, times_ms, text, color=colour(number), size=10, symbol="diamond"
        )
        yield {**diamonds, "legendgroup": label, "showlegend": False}


PRESENTERS = {"methods": MethodsShown, "keys": KeysShown, "cycles": CyclesShown}
