"""Tables, legend and plot of cycles, as pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.group import Group
from sqlstress.experiments.classics.cycles_findings import (
    LONGEST_NAME,
    CycleTimes,
    cycles,
    rates,
    setting_label,
    times_of,
    total_ns,
)
from sqlstress.experiments.classics.spec import Cycling, setting_of
from sqlstress.report import Run
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    VERIFIED,
    Block,
    Column,
    Legend,
    ms_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.plots import Plain, Plot, View, axis, colour, line, name, small_multiples
from sqlstress.show.shown import Presenter
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S, format_count, format_duration


@dataclass(frozen=True, slots=True)
class CycleRow(case_table.Row):
    """A case, its typical trial, and the times of that trial."""

    times: CycleTimes | None


def rows_of(group: Group) -> list[CycleRow]:
    """Return a row for each run of a group."""
    shown = [(run, run.valid_median_trial()) for run in group.runs]
    return [CycleRow(run, trial, times_of(run.case, trial) if trial else None) for run, trial in shown]


def _ms(figure: Callable[[CycleTimes], float | None]) -> Callable[[CycleRow], str | None]:
    return lambda row: ms_cell(figure(row.times)) if row.times else None


def _done(row: CycleRow) -> str | None:
    """Return the number of completed cycles of a run that met its time-out."""
    if row.trial is None or row.trial.outcome == "done":
        return None
    return whole_cell(min(len(process.cycles) for process in row.times.processes) if row.times else 0)


def _total(row: CycleRow) -> str | None:
    if row.trial is None:
        return case_table.FAILED
    if row.trial.outcome != "done":
        return "TIMEOUT"
    return case_table.marked_cell(row.run, ms_cell(total_ns(row.run.case, row.trial)), rates(row.run))


def _slowest_ms(times: CycleTimes | None) -> str | None:
    return ms_cell(times.slowest[0]) if times and times.slowest else None


def _slowest_cycle(times: CycleTimes | None) -> str | None:
    return whole_cell(times.slowest[1]) if times and times.slowest else None


SETTING: Column[CycleRow] = Column(
    "setting", align="left", cell=lambda row: setting_of(row.run.case)[:LONGEST_NAME]
)
FIGURES: tuple[Column[CycleRow], ...] = (
    Column("cycles done", cell=_done),
    Column(
        "statements ms",
        ("statements", "ms"),
        cell=_ms(lambda times: times.statements),
        meaning="statements: the inserts and deletes of all cycles, including commits if each row has "
        "its own",
    ),
    Column(
        "BEGIN, COMMIT ms",
        ("BEGIN,", "COMMIT"),
        cell=_ms(lambda times: times.bounds),
        meaning="BEGIN, COMMIT: time of these, counted separately",
    ),
    Column("total ms", cell=_total, meaning="total: all of this, without the closing checkpoint"),
    Column(
        "closing checkpoint ms",
        ("closing", "ckpt ms"),
        cell=_ms(lambda times: times.closing),
        leaves=30,
    ),
    Column("first ms", cell=_ms(lambda times: times.first), leaves=20),
    Column("median ms", cell=_ms(lambda times: times.median), leaves=10),
    Column(
        "slowest ms",
        ("slowest", "ms"),
        cell=lambda row: _slowest_ms(row.times),
        meaning="slowest: the slowest cycle except the first",
    ),
    Column("slowest cycle", ("in", "cycle"), cell=lambda row: _slowest_cycle(row.times)),
)
_SETTINGS = {
    "tx": "one transaction over the whole run",
    "cycle": "one transaction per cycle",
    "off": "no automatic checkpoints",
}
"""Meanings of the parts of a setting's name."""


def _setting_legend(group: Group) -> Iterator[str]:
    parts = {part for run in group.runs for part in setting_of(run.case).split("-")}
    yield from (f"{part}: {text}" for part, text in _SETTINGS.items() if part in parts)
    if any(part.isdecimal() for part in parts):
        yield "a number: WAL frames that trigger a checkpoint"


def _legend(group: Group) -> Iterator[str]:
    """Yield the clauses of the legend that concern several columns."""
    if any(run.case.spec.transaction == "cycle" for run in group.runs):
        yield "the time of a cycle includes its BEGIN and COMMIT"
    if any(run.case.concurrency > 1 for run in group.runs):
        yield "with several processes: means, but for first and slowest the slowest of all processes"
    yield from case_table.spread_legend(group, "total")
    yield from verified_legend(group, "each table holds what the last acknowledged commit left")


def _trial_cell(figure: Callable[[CycleTimes | None], str | None]) -> case_table.ComparedCell:
    return case_table.run_cell(lambda run, trial: figure(times_of(run.case, trial)))


class CyclesShown(Presenter):
    """Settings, each cycle, and the checkpoints among them."""

    topics = (cycles, partial_proofs)
    measures = (
        (
            case_table.ComparisonFigure(
                "{letter} cycles/s",
                ("{letter} {system}", "cycles/s"),
                "cycles/s: cycles per second, all processes together, without the closing checkpoint",
                case_table.compared_rate_cell,
            ),
            case_table.RATIO,
        ),
        (case_table.SPREAD,),
        (
            case_table.ComparisonFigure(
                "{letter} total ms",
                ("{letter}", "total ms"),
                "total: time of all cycles",
                case_table.run_cell(lambda run, trial: ms_cell(total_ns(run.case, trial))),
            ),
            case_table.ComparisonFigure(
                "{letter} slowest ms",
                ("{letter}", "slowest ms"),
                "slowest: the slowest cycle except the first",
                _trial_cell(_slowest_ms),
            ),
            case_table.ComparisonFigure(
                "{letter} slowest cycle", ("{letter} in", "cycle"), "", _trial_cell(_slowest_cycle)
            ),
        ),
    )

    def activity(self, group: Group) -> str:
        work: Cycling = group.case.spec
        rows = format_count(work.rows)
        limits = [run.case.spec.timeout_s for run in group.runs if run.case.spec.timeout_s]
        limit = f"; given up after {format_duration(max(limits))}" if limits else ""
        return (
            f"{format_count(work.cycles)} cycles: insert {rows} rows one by one, delete all with one "
            f"statement, insert {rows}; each process uses its own table in one file{limit}"
        )

    def blocks(self, group: Group) -> Iterator[Block]:
        several = any(run.case.concurrency > 1 for run in group.runs)
        columns = (
            SETTING.explained(_setting_legend(group)),
            *((case_table.PROCESSES, case_table.FAIRNESS) if several else ()),
            *FIGURES,
            VERIFIED.explained(_legend(group)),
        )
        table = table_of(rows_of(group), columns)
        yield table
        yield Legend(table)

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
            yield Plot("Each cycle", note, (View("", data, {**axes, **small_multiples(data)}),), wide=True)

    def rate(self, run: Run) -> float | None:
        trial = run.valid_median_trial()
        total = total_ns(run.case, trial) if trial else 0
        return NS_PER_S * run.case.spec.cycles * run.case.concurrency / total if total > 0 else None
