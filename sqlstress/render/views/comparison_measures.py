"""The figures that a comparison shows of each experiment, table by table, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlstress.analysis.comparison import Compared, Part
from sqlstress.analysis.wording import size
from sqlstress.display.blocks import Column
from sqlstress.display.clean import shortened
from sqlstress.display.figures import count_cell, ms_cell, ratio_cell, seconds_cell, share_cell, whole_cell
from sqlstress.experiments.cycles.shown.times import times_of, total_ns
from sqlstress.report import Run, Trial

SYSTEMS = {"Darwin": "macOS"}
"""How a system is called that names itself otherwise."""
_OUTCOMES = {"timeout": "timeout", "limit": "limit"}

Cell = Callable[[Compared, int, int], str | None]
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
    cell: Cell

    def column(self, part: Part) -> Column:
        """Return the column of a part."""
        system = part.report.environment.host.system
        names = {"letter": part.letter, "system": shortened(SYSTEMS.get(system, system), 7)}
        first, second = (line.format(**names).strip() for line in self.heading)
        return Column(self.name.format(**names), (first, second))


def _rate(compared: Compared, row: int, place: int) -> str | None:
    run = compared.run(row, place)
    return None if run is None else count_cell(compared.rate(row, place)) or _instead(run)


def _instead(run: Run) -> str:
    """Return why a case has no rate, in a word."""
    if run.verdict.status == "failed":
        return "wrong"
    trial = run.typical()
    if trial is None or trial.error is not None:
        return "skipped" if run.skipped else "failed"
    return _OUTCOMES.get(trial.outcome, "failed")


def _ratio(compared: Compared, row: int, place: int) -> str | None:
    return ratio_cell(compared.ratio(row, place))


def _shape(compared: Compared, row: int, place: int) -> str | None:
    return ratio_cell(compared.shape(row, place))


def _of_run(figure: Callable[[Run, Trial], str | None]) -> Cell:
    def cell(compared: Compared, row: int, place: int) -> str | None:
        run, trial = compared.run(row, place), compared.trial(row, place)
        return None if run is None or trial is None else figure(run, trial)

    return cell


def _of_trial(figure: Callable[[Trial], str | None]) -> Cell:
    return _of_run(lambda _, trial: figure(trial))


def _slowest(run: Run, trial: Trial) -> tuple[float, int] | None:
    """Return the slowest cycle but for the first: its time in ns, and its number."""
    times = times_of(run.case, trial)
    return times.slowest[:2] if times and times.slowest else None


def _p99(kind: str) -> Cell:
    def cell(trial: Trial) -> str | None:
        latency = trial.latency.get(kind)
        return ms_cell(latency.p99_ns) if latency and latency.count else None

    return _of_trial(cell)


_RATIO = Measure("{letter}/A", ("{letter}/A", ""), "B/A: the ratio of B to A, and so on", _ratio)
_KEY_VALUE = (
    (
        Measure(
            "{letter} TPS",
            ("{letter} {system}", "TPS"),
            "TPS: {units} a second, all processes together",
            _rate,
        ),
        _RATIO,
    ),
    (
        Measure(
            "{letter} shape",
            ("{letter}", "shape"),
            "shape: TPS over that of 1 process, which can be compared where TPS can't",
            _shape,
        ),
        Measure(
            "{letter} fairness",
            ("{letter} fair-", "ness"),
            "fairness (Jain's index): 1 when all processes got an equal share",
            _of_trial(lambda trial: share_cell(trial.fairness)),
        ),
    ),
    (
        Measure(
            "{letter} replace p99 ms",
            ("{letter} repl.", "p99 ms"),
            "p99: 99% of the replaces or gets were as fast or faster",
            _p99("replace"),
        ),
        Measure("{letter} get p99 ms", ("{letter} get", "p99 ms"), "", _p99("get")),
    ),
)
_FIXED_WORK = (
    (
        Measure(
            "{letter} rows/s",
            ("{letter} {system}", "rows/s"),
            "rows/s: rows read or written a second, all processes together",
            _rate,
        ),
        _RATIO,
    ),
    (
        Measure(
            "{letter} time s",
            ("{letter}", "time s"),
            "time: how long the work took",
            _of_trial(lambda trial: seconds_cell(trial.seconds)),
        ),
        Measure(
            "{letter} file",
            ("{letter}", "file"),
            "file: what the database takes",
            _of_trial(lambda trial: size(trial.space.file_bytes) if trial.space else None),
        ),
    ),
)
_CYCLES = (
    (
        Measure(
            "{letter} cycles/s",
            ("{letter} {system}", "cycles/s"),
            "cycles/s: cycles a second, all processes together, without the closing checkpoint",
            _rate,
        ),
        _RATIO,
    ),
    (
        Measure(
            "{letter} total ms",
            ("{letter}", "total ms"),
            "total: what they took",
            _of_run(lambda run, trial: ms_cell(total_ns(run.case, trial))),
        ),
        Measure(
            "{letter} slowest ms",
            ("{letter} slow-", "est ms"),
            "slowest: the slowest cycle but for the first",
            _of_run(lambda run, trial: ms_cell(slowest[0]) if (slowest := _slowest(run, trial)) else None),
        ),
        Measure(
            "{letter} slowest cycle",
            ("{letter} in", "cycle"),
            "",
            _of_run(lambda run, trial: whole_cell(slowest[1]) if (slowest := _slowest(run, trial)) else None),
        ),
    ),
)
MEASURES: dict[str, tuple[tuple[Measure, ...], ...]] = {
    "kv": _KEY_VALUE,
    "methods": _FIXED_WORK,
    "keys": _FIXED_WORK,
    "cycles": _CYCLES,
}
"""Experiment → its figures, a tuple for each table."""
