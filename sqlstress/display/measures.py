"""The figures that a comparison shows of each report, and those that many experiments have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from sqlstress.analysis.comparison import Compared, Part
from sqlstress.analysis.comparison.estimates import DIFFERENT, logarithms
from sqlstress.analysis.wording import percent
from sqlstress.display.blocks import Column
from sqlstress.display.clean import shortened
from sqlstress.display.figures import count_cell, ms_cell, ratio_cell, share_cell
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


Measures = tuple[tuple[Measure, ...], ...]
"""A tuple for each table."""


def rate_cell(compared: Compared, row: int, place: int) -> str | None:
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


def of_run(figure: Callable[[Run, Trial], str | None]) -> Cell:
    """Return the cell of a figure of a run and the trial that stands for it."""

    def cell(compared: Compared, row: int, place: int) -> str | None:
        run, trial = compared.run(row, place), compared.trial(row, place)
        return None if run is None or trial is None else figure(run, trial)

    return cell


def of_trial(figure: Callable[[Trial], str | None]) -> Cell:
    """Return the cell of a figure of the trial that stands for a run."""
    return of_run(lambda _, trial: figure(trial))


def p99(kind: str) -> Cell:
    """Return the cell of the 99th percentile of a kind of operation."""

    def cell(trial: Trial) -> str | None:
        latency = trial.latency.get(kind)
        return ms_cell(latency.p99_ns) if latency and latency.count else None

    return of_trial(cell)


def shape_cell(compared: Compared, row: int, place: int) -> str | None:
    """Return a case's rate over its own with one process."""
    return ratio_cell(compared.shape(row, place))


def _ratio_cell(compared: Compared, row: int, place: int) -> str | None:
    """Return a ratio, marked where its trials do not tell it from 1."""
    found = compared.estimate(row, place) if compared.shows_ratio(place) else None
    cell = ratio_cell(found.ratio) if found else None
    return cell if found is None or cell is None or found.verdict == DIFFERENT else f"~{cell}"


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
    "{letter} TPS", ("{letter} {system}", "TPS"), "TPS: {units} a second, all processes together", rate_cell
)
ROWS_PER_S = Measure(
    "{letter} rows/s",
    ("{letter} {system}", "rows/s"),
    "rows/s: rows read or written a second, all processes together",
    rate_cell,
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
        of_trial(lambda trial: share_cell(trial.fairness)),
    ),
)
"""What more processes gained, and whether all of them did."""
