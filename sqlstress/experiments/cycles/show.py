"""How cycles are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log

from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.comparison import Compared, Part
from sqlstress.analysis.group import Group
from sqlstress.analysis.scaling import disturbed
from sqlstress.experiments.cycles.cycle_findings import Times, called, cycles, rates, times_of, total_ns
from sqlstress.experiments.cycles.experiment import Cycling, setting_of
from sqlstress.report import Run, Trial
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    MISSING,
    VERIFIED,
    Block,
    Column,
    Figure,
    Legend,
    Picture,
    Table,
    ms_cell,
    spread_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.case_table import (
    FAILED,
    FAIRNESS,
    PROCESSES,
    RATIO,
    SPREAD,
    Measure,
    compared_rate,
    of_run,
    spread_legend,
)
from sqlstress.show.plots import Plain, Plot, View, apart, axis, bar_name, colour, line, name
from sqlstress.show.shown import Shown
from sqlstress.statistics.compare import spread
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S, format_count, format_duration

# The tables of the experiment with cycles: a row for each setting, and one for its processes.


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


# A picture of series in characters: a line for each, a column for one cycle or a few.


WIDTH = 80
LEVELS = "▁▂▃▄▅▆▇█"
LEAST_RANGE = 10.0
"""The lowest level is a tenth of the highest, or less: small differences look small."""
MARK = "^"


@dataclass(frozen=True, slots=True)
class Line:
    """One series."""

    name: str
    values: tuple[int, ...]
    """One a cycle, in ns; one or more."""
    marked: frozenset[int] = frozenset()
    """Cycles, counted from 1, in which a checkpoint was seen."""


def picture(lines: Sequence[Line]) -> Iterator[str]:
    """Yield each series as a line with its range in ms, its marks below it, and what all of it means."""
    ranges = [f"{ms_cell(min(line.values))}-{ms_cell(max(line.values))}" for line in lines]
    names = max(len(line.name) for line in lines)
    room = WIDTH - names - max(map(len, ranges)) - 4
    longest = max(len(line.values) for line in lines)
    each = -(-longest // room)
    for one, shown in zip(lines, ranges, strict=True):
        drawn = bars([max(part) for part in _parts(one.values, each)])
        yield f"{one.name:<{names}}  {drawn:<{-(-longest // each)}}  {shown}"
        if one.marked:
            yield f"{'':<{names}}  {_marks(one, each)}"
    yield ""
    yield from _explained(each, any(line.marked for line in lines))


def bars(values: Sequence[int]) -> str:
    """Return a character for each value: its height on a logarithmic scale of the series' own."""
    most = max(1, *values)
    least = min([value for value in values if value > 0] + [most / LEAST_RANGE])
    steps = [log(max(value, least) / least) / log(most / least) for value in values]
    return "".join(LEVELS[min(len(LEVELS) - 1, int(step * len(LEVELS)))] for step in steps)


def _parts(values: Sequence[int], each: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(values), each):
        yield values[start : start + each]


def _marks(line: Line, each: int) -> str:
    columns = {(cycle - 1) // each for cycle in line.marked}
    return "".join(MARK if column in columns else " " for column in range(-(-len(line.values) // each)))


def _explained(each: int, marked: bool) -> Iterator[str]:
    column = "a cycle" if each == 1 else f"the slowest of {each:,} cycles"
    yield f"A column: {column}, in ms; a logarithmic scale for each line."
    if marked:
        yield f"{MARK}: a checkpoint was seen."


# Plots of the cycles: the time of each, in one report or several, and where a checkpoint was seen.


TIME_AXES = {"xaxis": axis("cycle", whole=True), "yaxis": axis("ms", type="log")}
"""Of the time of each cycle."""


def plots(group: Group) -> Iterator[Plot]:
    """Yield the time of each cycle, a line for each setting, with its checkpoints marked."""
    data: list[Plain] = []
    for number, (run, trial) in enumerate(group.measured()):
        times = times_of(run.case, trial)
        if not times:
            continue
        label, pace = name(called(run.case)), [ns / NS_PER_MS for ns in times.pace]
        hover = f"{label}, cycle %{{x}}: %{{y:.3g}} ms"
        trace = line(label, list(range(1, len(pace) + 1)), pace, number, hover)
        data.append({**trace, "mode": "lines", "line": {**trace["line"], "width": 1.6}, "legendgroup": label})
        seen = {cycle for process in times.processes for cycle in process.checkpoints}
        marked = sorted(cycle for cycle in seen if 1 <= cycle <= len(pace))
        if marked:
            data.append(_mark_line(label, marked, pace, number))
    if data:
        note = "The slowest process's time of each cycle. Diamonds: a checkpoint was seen in it."
        yield Plot("Each cycle", note, (View("", data, {**TIME_AXES, **apart(data)}),), wide=True)


def _mark_line(label: str, cycles: list[int], pace: list[float], number: int) -> Plain:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{label}: checkpoint",
        "legendgroup": label,
        "showlegend": False,
        "x": cycles,
        "y": [pace[cycle - 1] for cycle in cycles],
        "marker": {"color": colour(number), "size": 10, "symbol": "diamond"},
        "hovertemplate": f"{label}, cycle %{{x}}: %{{y:.3g}} ms, with a checkpoint",
    }


def each_cycle(compared: Compared, names: Sequence[str], bars: Shown) -> Iterator[Plot]:
    """Yield the time of each cycle, setting by setting, of the reports that know it."""
    views = []
    for row in range(len(compared.table.keys)):
        data = [
            trace
            for place, part in enumerate(compared.table.parts)
            if (trace := _cycles(compared, part, row, place, names[place]))
        ]
        if data:
            views.append(View(name(bar_name(compared, row, bars)), data, {**TIME_AXES, **apart(data)}))
    if views:
        note = "The slowest process's time of each cycle, of the reports that have it."
        yield Plot("Each cycle", note, tuple(views), wide=True)


def _cycles(compared: Compared, part: Part, row: int, place: int, shown: str) -> Plain | None:
    trial, run = compared.trial(row, place), part.runs[row]
    times = times_of(run.case, trial) if run and trial else None
    if times is None:
        return None
    pace = [ns / NS_PER_MS for ns in times.pace]
    hover = f"{shown}, cycle %{{x}}: %{{y:.3g}} ms"
    trace = line(shown, list(range(1, len(pace) + 1)), pace, place, hover)
    return {**trace, "mode": "lines", "line": {**trace["line"], "width": 1.6}}


def _slowest_trial(run: Run, trial: Trial) -> tuple[float, int] | None:
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
                compared_rate,
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
                of_run(
                    lambda run, trial: (
                        ms_cell(slowest[0]) if (slowest := _slowest_trial(run, trial)) else None
                    )
                ),
            ),
            Measure(
                "{letter} slowest cycle",
                ("{letter} in", "cycle"),
                "",
                of_run(
                    lambda run, trial: (
                        whole_cell(slowest[1]) if (slowest := _slowest_trial(run, trial)) else None
                    )
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
        yield Legend(table, partial(_legend, group))
        if several := [row for row in rows if row.run.case.concurrency > 1 and row.times]:
            yield processes_table(several)
        if lines := [_line(row) for row in rows if row.times]:
            yield Picture(tuple(picture(lines)))

    def plots(self, group: Group) -> Iterator[Plot]:
        return plots(group)

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
