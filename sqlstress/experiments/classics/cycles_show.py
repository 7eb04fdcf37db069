"""How cycles are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log

from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.group import Group
from sqlstress.experiments.classics.cycles import Cycling, setting_of
from sqlstress.experiments.classics.cycles_findings import (
    LONGEST_NAME,
    Times,
    cycles,
    rates,
    setting_label,
    times_of,
    total_ns,
)
from sqlstress.report import Run
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    VERIFIED,
    Block,
    Column,
    Figure,
    Legend,
    Picture,
    Table,
    ms_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.plots import Plain, Plot, View, apart, axis, colour, line, name
from sqlstress.show.shown import Shown
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S, format_count, format_duration

LEAVING = ("median ms", "first ms", "closing checkpoint ms", "fairness")
"""What leaves first where the spread of the totals makes the table too wide."""


@dataclass(frozen=True, slots=True)
class Row(case_table.Row):
    """A run, the trial that stands for it, and what that spent."""

    times: Times | None


def rows_of(group: Group) -> list[Row]:
    """Return a row for each run of a group."""
    shown = [(run, run.shown()) for run in group.runs]
    return [Row(run, trial, times_of(run.case, trial) if trial else None) for run, trial in shown]


def _ms(figure: Callable[[Times], float | None]) -> Callable[[Row], str | None]:
    return lambda row: ms_cell(figure(row.times)) if row.times else None


def _done(row: Row) -> str | None:
    """Return how many cycles were done, of a run that was given up."""
    if row.trial is None or row.trial.outcome == "done":
        return None
    return whole_cell(min(len(process.cycles) for process in row.times.processes) if row.times else 0)


def _total(row: Row) -> str | None:
    if row.trial is None:
        return case_table.FAILED
    if row.trial.outcome != "done":
        return "TIMEOUT"
    return case_table.marked_cell(row.run, ms_cell(total_ns(row.run.case, row.trial)), rates(row.run))


def _slowest_ms(times: Times | None) -> str | None:
    return ms_cell(times.slowest[0]) if times and times.slowest else None


def _slowest_cycle(times: Times | None) -> str | None:
    return whole_cell(times.slowest[1]) if times and times.slowest else None


SETTING: Figure[Row] = Figure(
    Column("setting", align="left"), lambda row: setting_of(row.run.case)[:LONGEST_NAME]
)
FIGURES: tuple[Figure[Row], ...] = (
    Figure(Column("cycles done"), _done),
    Figure(Column("statements ms", ("statements", "ms")), _ms(lambda times: times.statements)),
    Figure(Column("BEGIN, COMMIT ms", ("BEGIN,", "COMMIT")), _ms(lambda times: times.bounds)),
    Figure(Column("total ms"), _total),
    Figure(Column("closing checkpoint ms", ("closing", "ckpt ms")), _ms(lambda times: times.closing)),
    Figure(Column("first ms"), _ms(lambda times: times.first)),
    Figure(Column("median ms"), _ms(lambda times: times.median)),
    Figure(Column("slowest ms", ("slowest", "ms")), lambda row: _slowest_ms(row.times)),
    Figure(Column("slowest cycle", ("in", "cycle")), lambda row: _slowest_cycle(row.times)),
    VERIFIED,
)
# A picture of series in characters: a line for each, a column for one cycle or a few.


WIDTH = 80
LEVELS = "▁▂▃▄▅▆▇█"
LEAST_RANGE = 10.0
"""The lowest level is a tenth of the highest, or less: small differences look small."""
MARK = "^"


Series = tuple[str, Sequence[int], Collection[int]]
"""Name; a time of each cycle, in ns, one or more; the cycles, from 1, in which a checkpoint was seen."""


def picture(lines: Sequence[Series]) -> Iterator[str]:
    """Yield each series as a line with its range in ms, its marks below it, and what all of it means."""
    ranges = [f"{ms_cell(min(values))}-{ms_cell(max(values))}" for _, values, _ in lines]
    names = max(len(label) for label, _, _ in lines)
    room = WIDTH - names - max(map(len, ranges)) - 4
    longest = max(len(values) for _, values, _ in lines)
    each = -(-longest // room)
    for (label, values, marked), shown in zip(lines, ranges, strict=True):
        starts = range(0, len(values), each)
        drawn = bars([max(values[start : start + each]) for start in starts])
        yield f"{label:<{names}}  {drawn:<{-(-longest // each)}}  {shown}"
        if marked:
            columns = {(cycle - 1) // each for cycle in marked}
            marks = "".join(MARK if column in columns else " " for column in range(len(starts)))
            yield f"{'':<{names}}  {marks}"
    yield ""
    column = "a cycle" if each == 1 else f"the slowest of {each:,} cycles"
    yield f"Column: {column}, in ms; each line has its own log scale."
    if any(marked for _, _, marked in lines):
        yield f"{MARK}: a checkpoint was seen."


def bars(values: Sequence[int]) -> str:
    """Return a character for each value: its height on a logarithmic scale of the series' own."""
    most = max(1, *values)
    least = min([value for value in values if value > 0] + [most / LEAST_RANGE])
    steps = [log(max(value, least) / least) / log(most / least) for value in values]
    return "".join(LEVELS[min(len(LEVELS) - 1, int(step * len(LEVELS)))] for step in steps)


def _compared(figure: Callable[[Times | None], str | None]) -> case_table.ComparedCell:
    return case_table.of_run(lambda run, trial: figure(times_of(run.case, trial)))


class CyclesShown(Shown):
    """Settings, each cycle, and the checkpoints among them."""

    topics = (cycles, partial_proofs)
    measures = (
        (
            case_table.Measure(
                "{letter} cycles/s",
                ("{letter} {system}", "cycles/s"),
                "cycles/s: cycles per second, all processes together, without the closing checkpoint",
                case_table.compared_rate,
            ),
            case_table.RATIO,
        ),
        (case_table.SPREAD,),
        (
            case_table.Measure(
                "{letter} total ms",
                ("{letter}", "total ms"),
                "total: time of all cycles",
                case_table.of_run(lambda run, trial: ms_cell(total_ns(run.case, trial))),
            ),
            case_table.Measure(
                "{letter} slowest ms",
                ("{letter}", "slowest ms"),
                "slowest: the slowest cycle except the first",
                _compared(_slowest_ms),
            ),
            case_table.Measure(
                "{letter} slowest cycle", ("{letter} in", "cycle"), "", _compared(_slowest_cycle)
            ),
        ),
    )

    def what(self, group: Group) -> str:
        work: Cycling = group.case.spec
        rows = format_count(work.rows)
        limits = [run.case.spec.timeout_s for run in group.runs if run.case.spec.timeout_s]
        limit = f"; given up after {format_duration(max(limits))}" if limits else ""
        return (
            f"{format_count(work.cycles)} cycles: insert {rows} rows one by one, delete all with one "
            f"statement, insert {rows}; each process uses its own table in one file{limit}"
        )

    def blocks(self, group: Group) -> Iterator[Block]:
        rows = rows_of(group)
        several = any(row.run.case.concurrency > 1 for row in rows)
        more = (case_table.PROCESSES, case_table.FAIRNESS) if several else ()
        table = table_of(rows, (SETTING, *more, *FIGURES), LEAVING)
        yield table
        yield Legend(table, partial(_legend, group))
        series = [
            (setting_label(row.run.case), row.times.pace, row.times.checkpoints) for row in rows if row.times
        ]
        if series:
            yield Picture(tuple(picture(series)))

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield the time of each cycle, a line for each setting, with its checkpoints marked."""
        data: list[Plain] = []
        for number, (run, trial) in enumerate(group.measured()):
            times, label = times_of(run.case, trial), name(setting_label(run.case))
            if times is None:
                continue
            pace = [ns / NS_PER_MS for ns in times.pace]
            hover = f"{label}, cycle %{{x}}: %{{y:.3g}} ms"
            trace = line(label, range(1, len(pace) + 1), pace, number, hover)
            data.append({**trace, "mode": "lines", "legendgroup": label})
            if marked := sorted(cycle for cycle in times.checkpoints if 1 <= cycle <= len(pace)):
                data.append(
                    {
                        "type": "scatter",
                        "mode": "markers",
                        "name": f"{label}: checkpoint",
                        "legendgroup": label,
                        "showlegend": False,
                        "x": marked,
                        "y": [pace[cycle - 1] for cycle in marked],
                        "marker": {"color": colour(number), "size": 10, "symbol": "diamond"},
                        "hovertemplate": f"{hover}, with a checkpoint",
                    }
                )
        if data:
            note = "The slowest process's time of each cycle. Diamonds: a checkpoint was seen in it."
            axes = {"xaxis": axis("cycle", whole=True), "yaxis": axis("ms", type="log")}
            yield Plot("Each cycle", note, (View("", data, {**axes, **apart(data)}),), wide=True)

    def rate(self, run: Run) -> float | None:
        trial = run.shown()
        total = total_ns(run.case, trial) if trial else 0
        return NS_PER_S * run.case.spec.cycles * run.case.concurrency / total if total > 0 else None


_NAMES = {
    "tx": "one transaction over the whole run",
    "cycle": "one transaction per cycle",
    "off": "no automatic checkpoints",
}
_MEANINGS = {
    "statements ms": "statements: the inserts and deletes of all cycles, including commits if each row has "
    "its own",
    "BEGIN, COMMIT ms": "BEGIN, COMMIT: time of these, counted separately",
    "total ms": "total: all of this, without the closing checkpoint",
    "slowest ms": "slowest: the slowest cycle except the first",
}
"""Column → what it is."""


def _legend(group: Group, table: Table) -> Iterator[str]:
    parts = {part for run in group.runs for part in setting_of(run.case).split("-")}
    yield from (f"{name}: {text}" for name, text in _NAMES.items() if name in parts)
    if any(part.isdecimal() for part in parts):
        yield "a number: WAL frames that trigger a checkpoint"
    yield from table.explained(_MEANINGS)
    if "cycle" in parts:
        yield "the time of a cycle includes its BEGIN and COMMIT"
    if any(run.case.concurrency > 1 for run in group.runs):
        yield "with several processes: means, but for first and slowest the slowest of all processes"
    yield from case_table.spread_legend(group, "total")
    yield from verified_legend(group, "each table holds what the last acknowledged commit left")
