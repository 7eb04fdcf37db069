"""The columns that a table of cases has whatever the experiment: a row for each run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from sqlstress.analysis.answers import (
    NO_DIFFERENCE,
    TOLD_APART,
    Lead,
    Place,
    Side,
    at,
    by_worth,
    leads,
    sides_of,
)
from sqlstress.analysis.comparison import Compared, Part, logarithms, said_of
from sqlstress.analysis.group import Group, longest_wait_ns
from sqlstress.analysis.scaling import disturbed
from sqlstress.analysis.wording import duration, finite, listing, percent
from sqlstress.experiment import face_of
from sqlstress.report import Latency, Run, Trial
from sqlstress.show.blocks import (
    DETAIL,
    NAME,
    VERIFIED,
    Block,
    Column,
    Figure,
    Paragraph,
    Table,
    clean,
    count_cell,
    layout_column,
    ms_cell,
    percent_cell,
    rate_cell,
    ratio_cell,
    seconds_cell,
    share_cell,
    shortened,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.statistics.compare import DIFFERENT, spread
from sqlstress.target import apart, bare_call

FAILED = "failed"
_LONGEST_CASE = 30
_PERCENTILE = re.compile(r"\bp[0-9.]+")
_BROKEN = {"synchronous": ("synchro-", "nous"), "checkpointer": ("check-", "pointer")}


@dataclass(frozen=True, slots=True)
class Row:
    """A case and the trial that stands for it. Of a table of its own an experiment may know more."""

    run: Run
    trial: Trial | None
    """The typical one of the valid trials; None when the case could not be measured."""


Cell = Callable[[Row], str | None]
"""What a column says of a row; None when it has no figure."""


def rows_of(group: Group) -> list[Row]:
    """Return a row for each run of a group."""
    return [Row(run, run.shown()) for run in group.runs]


def of_trial(figure: Callable[[Trial], str | None]) -> Cell:
    """Return the cell of a figure of the trial that stands for a case."""
    return lambda row: None if row.trial is None else figure(row.trial)


def of_latency(kind: str, figure: Callable[[Latency], float | None]) -> Cell:
    """Return the cell of a figure, in ms, of the latencies of a kind of operation in all trials."""

    def cell(row: Row) -> str | None:
        latency = row.run.latency(kind) if row.trial else None
        return None if latency is None or not latency.count else ms_cell(figure(latency))

    return cell


def apart_columns(group: Group) -> tuple[Figure[Row], ...]:
    """Return the column of the option in which the parts of a group differ; none of one without parts."""
    if not group.setting:
        return ()
    name = group.setting.replace("-", " ")
    return (Figure(Column(name, _two_lines(name), "left", NAME), lambda row: group.value(row.run.case)),)


def _two_lines(name: str) -> tuple[str, str]:
    """Return a heading on two lines: broken at its last space, or where a long word can be."""
    before, _, after = name.rpartition(" ")
    return _BROKEN.get(name, (before, after))


def _case(row: Row) -> str:
    return shortened(face_of(row.run.case).words.work_of(row.run.case), _LONGEST_CASE)


def _files(row: Row) -> str | None:
    case = row.run.case
    return whole_cell(case.buckets) if face_of(case).behaviour.many_files else None


def _total_cell(row: Row) -> str | None:
    if row.trial is None:
        return FAILED
    return rate_cell(row.run.median_tps(), spread([*row.run.rates().values()]), disturbed=disturbed(row.run))


def _failed(row: Row) -> str | None:
    share = row.run.failed_share()
    return percent_cell(share) if share else None


def _per_process(row: Row) -> str | None:
    total = finite(row.run.median_tps())
    return (
        None if row.trial is None or total is None else count_cell(total / max(1, row.run.case.concurrency))
    )


def _longest_wait(row: Row) -> str | None:
    if row.trial is None or row.trial.longest_wait_ns is None:
        return None
    return ms_cell(longest_wait_ns(row.run))


CASE: Figure[Row] = Figure(Column("case", ("", "case"), "left", NAME), _case)
FILES: Figure[Row] = Figure(Column("files", ("", "files"), role=NAME), _files)


def of_layouts(group: Group, figures: Sequence[Figure[Row]]) -> tuple[Figure[Row], ...]:
    """Return columns, in which FILES is called what the buckets of a group are."""
    column = layout_column(run.case for run in group.runs)
    return tuple(replace(one, column=column) if one is FILES else one for one in figures)


PROCESSES: Figure[Row] = Figure(
    Column("processes", ("proc-", "esses"), role=NAME), lambda row: whole_cell(row.run.case.concurrency)
)
TIME: Figure[Row] = Figure(
    Column("time s", ("time", "s"), role=DETAIL), of_trial(lambda trial: seconds_cell(trial.seconds))
)
PER_PROCESS: Figure[Row] = Figure(
    Column("TPS per process", ("TPS per", "process"), role=DETAIL), _per_process
)
TOTAL: Figure[Row] = Figure(Column("TPS total", ("TPS", "total")), _total_cell)
ROWS_PER_S: Figure[Row] = Figure(
    Column("rows/s", ("rows", "per s")), of_trial(lambda trial: count_cell(trial.rows_per_s))
)
FAILED_SHARE: Figure[Row] = Figure(Column("failed %", ("failed", "%")), _failed)
FAIRNESS: Figure[Row] = Figure(
    Column("fairness", ("fair-", "ness")), of_trial(lambda trial: share_cell(trial.fairness))
)
LONGEST_WAIT: Figure[Row] = Figure(Column("longest wait ms", ("longest", "wait ms")), _longest_wait)

COMMON = (PROCESSES, TIME, TOTAL, ROWS_PER_S, FAILED_SHARE, FAIRNESS, LONGEST_WAIT, VERIFIED)
"""What can be said of every case, beside what it is."""
_MEANINGS = {
    "failed %": "failed: operations given up, in per cent",
    "TPS total": "TPS: {units} a second",
    "fairness": "fairness (Jain's index): 1 when all processes got an equal share",
    "longest wait ms": "longest wait: the slowest operation",
}


def common_table(group: Group) -> Table:
    """Return the table of what can be said of every case."""
    first = FILES if face_of(group.case).behaviour.sweeps else CASE
    return table_of(
        rows_of(group),
        (*apart_columns(group), *of_layouts(group, (first,)), *COMMON),
        ("longest wait ms", "fairness", "rows/s"),
    )


def common_legend(group: Group, table: Table) -> list[str]:
    """Return what its columns mean."""
    units = face_of(group.case).units
    told = [text.format(units=units) for name, text in _MEANINGS.items() if name in table.headers]
    return [*told, *spread_legend(group), *verified_legend(group)]


def percentiles(table: Table, what: str) -> list[str]:
    """Return what the percentiles mean that a table has: of them so many of `what` were as fast."""
    found = (_PERCENTILE.search(name) for name in table.headers)
    names = list(dict.fromkeys(one[0] for one in found if one))
    shares = ["half" if name == "p50" else f"{name[1:]}%" for name in names]
    return [f"{listing(names)}: {listing(shares)} of {what}"] if names else []


def spread_legend(group: Group, figure: str = "TPS") -> list[str]:
    """Return what the marks beside a figure mean, where there are any."""
    found = []
    if any(spread([*run.rates().values()]) is not None for run in group.runs):
        found.append(f"±: 95% interval of the typical {figure}")
    if any(disturbed(run) for run in group.runs):
        found.append("~: other programs took processor time")
    return found


# The figures that a comparison shows of each report, and those that many experiments have.


SYSTEMS = {"Darwin": "macOS"}
"""How a system is called that names itself otherwise."""
_OUTCOMES = {"timeout": "timeout", "limit": "limit"}

ComparedCell = Callable[[Compared, int, int], str | None]
"""What a figure is of a row and a part; None where there is none."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of every part, each in a column of its own."""

    name: str
    """The column's name: {letter} is the report's."""
    heading: tuple[str, str]
    """The same on two short lines; {system} is the report's, in a word."""
    meaning: str
    """What it is, for the legend; {units} are what is counted."""
    cell: ComparedCell

    def column(self, part: Part) -> Column:
        """Return the column of a part."""
        system = part.report.environment.host.system
        names = {"letter": part.letter, "system": shortened(SYSTEMS.get(system, system), 7)}
        first, second = (line.format(**names).strip() for line in self.heading)
        return Column(self.name.format(**names), (first, second))


Measures = tuple[tuple[Measure, ...], ...]
"""A tuple for each table."""


def compared_rate(compared: Compared, row: int, place: int) -> str | None:
    """Return the rate of a case, or why it has none, in a word."""
    run = compared.run(row, place)
    return None if run is None else count_cell(compared.rate(row, place)) or _instead(run)


def _instead(run: Run) -> str:
    if run.verdict.status == "failed":
        return "wrong"
    trial = run.typical()
    if trial is None or trial.error is not None:
        return "skipped" if run.skipped else "failed"
    return _OUTCOMES.get(trial.outcome, "failed")


def of_run(figure: Callable[[Run, Trial], str | None]) -> ComparedCell:
    """Return the cell of a figure of a run and the trial that stands for it."""

    def cell(compared: Compared, row: int, place: int) -> str | None:
        run, trial = compared.run(row, place), compared.trial(row, place)
        return None if run is None or trial is None else figure(run, trial)

    return cell


def compared_trial(figure: Callable[[Trial], str | None]) -> ComparedCell:
    """Return the cell of a figure of the trial that stands for a run."""
    return of_run(lambda _, trial: figure(trial))


def p99(kind: str) -> ComparedCell:
    """Return the cell of the 99th percentile of a kind of operation."""

    def cell(trial: Trial) -> str | None:
        latency = trial.latency.get(kind)
        return ms_cell(latency.p99_ns) if latency and latency.count else None

    return compared_trial(cell)


def shape_cell(compared: Compared, row: int, place: int) -> str | None:
    """Return a case's rate over its own with one process."""
    return ratio_cell(compared.shape(row, place))


def _ratio_cell(compared: Compared, row: int, place: int) -> str | None:
    """Return a ratio, marked where its trials do not tell it from 1."""
    found = compared.estimate(row, place) if compared.shows_ratio(place) else None
    cell = ratio_cell(found.estimate) if found else None
    return cell if found is None or cell is None or said_of(found) == DIFFERENT else f"~{cell}"


def _spread_cell(compared: Compared, row: int, place: int) -> str | None:
    """Return half the range of a case's trials, as a share of their median; None of one trial."""
    rates = [math.exp(one) for one in logarithms(compared.run(row, place))]
    return f"±{percent((max(rates) - min(rates)) / 2 / median(rates))}" if len(rates) > 1 else None


RATIO = Measure(
    "{letter}/A",
    ("{letter}/A", ""),
    "B/A: the ratio of B to A, and so on; ~: it may be chance, since its interval holds 1 or the trials "
    "are too few for one",
    _ratio_cell,
)
"""What every comparison is for."""
SPREAD = Measure("{letter} ±", ("", "{letter} ±"), "±: half the range of the trials", _spread_cell)
"""How far the trials of a case differ, where there are several."""
TPS = Measure(
    "{letter} TPS",
    ("{letter} {system}", "TPS"),
    "TPS: {units} a second, all processes together",
    compared_rate,
)
ROWS_MEASURE = Measure(
    "{letter} rows/s",
    ("{letter} {system}", "rows/s"),
    "rows/s: rows read or written a second, all processes together",
    compared_rate,
)
SCALING = (
    Measure(
        "{letter} shape",
        ("{letter}", "shape"),
        "shape: TPS over that of 1 process, which can be compared where TPS can't",
        shape_cell,
    ),
    Measure(
        "{letter} fairness",
        ("{letter} fair-", "ness"),
        "fairness (Jain's index): 1 when all processes got an equal share",
        compared_trial(lambda trial: share_cell(trial.fairness)),
    ),
)
"""What more processes gained, and whether all of them did."""


# Several targets side by side: a column each, by the number of processes, and who leads.


INCOMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class _Line:
    """A place, with what each side has there."""

    place: Place
    runs: dict[str, Run]
    leads: tuple[Lead, ...]
    comparable: bool
    """Whether a commit is worth the same with all sides; then a place without a lead lacks figures."""


def blocks(group: Group) -> Iterator[Block]:
    """Yield the table of the targets of a group, and what its columns mean; nothing of a single target."""
    sides = sides_of(group)
    if not sides or group.case.rate:
        return
    yield _table(group, sides)
    units = face_of(group.case).units
    legend = [f"TPS: {units} a second of all processes together", *spread_legend(group)]
    if len(by_worth(sides)) == 1:
        legend.append("leads: which is faster, beyond its noise")
    else:
        legend.append(f"{INCOMPARABLE}: a commit is not worth the same, as is said above")
    yield Paragraph(f"{'; '.join(legend)}.")
    yield from (Paragraph(f"{words}.") for side in sides if (words := apart(side.driver)))
    yield from _bindings(sides)


def _bindings(sides: Sequence[Side]) -> Iterator[Block]:
    """Yield what of the figures is the bindings' doing, where that was measured."""
    told = [
        f"{clean(side.driver)} {duration(ns)}{_what(side.driver)}"
        for side in sides
        if (ns := side.bare_call_ns) is not None
    ]
    if told:
        yield Paragraph(
            f"One call through the binding, with nothing asked of the data: {'; '.join(told)}. "
            "Every call of an operation costs at least that much, whatever the store does: what is faster "
            "by no more than these differ by may owe it to its binding."
        )


def _what(driver: str) -> str:
    return f" ({words})" if (words := bare_call(driver)) else ""


def _table(group: Group, sides: tuple[Side, ...]) -> Table:
    found = leads(group)
    runs = {side.name: {at(run.case): run for run in side.runs} for side in sides}
    every = sorted({place for own in runs.values() for place in own})
    lines = [
        _Line(
            place,
            {name: own[place] for name, own in runs.items() if place in own},
            tuple(one for one in found if at(one.case) == place),
            len(by_worth(sides)) == 1,
        )
        for place in every
    ]
    several = len({place[0] for place in every}) > 1
    column = layout_column(run.case for run in group.runs)
    files: Figure[_Line] = Figure(column, lambda line: whole_cell(line.place[0]))
    return table_of(lines, (*[files] * several, _PROCESSES, *map(_total_plot, sides), _LEADS))


def _total_plot(side: Side) -> Figure[_Line]:
    def cell(line: _Line) -> str | None:
        run = line.runs.get(side.name)
        return TOTAL.cell(Row(run, run.shown())) if run else None

    return Figure(Column(f"{side.name} TPS", (side.name, "TPS")), cell)


def _leads(line: _Line) -> str | None:
    return ", ".join(map(_told, line.leads)) or (None if line.comparable else INCOMPARABLE)


def _told(lead: Lead) -> str:
    if lead.verdict == TOLD_APART:
        return lead.ahead[0]
    if lead.verdict == NO_DIFFERENCE and len(lead.ahead) < len(lead.names):
        return " = ".join(lead.ahead)
    return lead.verdict


_PROCESSES: Figure[_Line] = Figure(
    Column("processes", ("proc-", "esses"), role=NAME), lambda line: whole_cell(line.place[1])
)
_LEADS: Figure[_Line] = Figure(Column("leads", ("", "leads"), "left"), _leads)
