"""The matrix of methods: how long each took, at each scale."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite, processes, rounded
from sqlstress.display.plot import Plain, Plot, View, axis, name
from sqlstress.experiments.methods.face import tricks_of
from sqlstress.report import Run
from sqlstress.report.case import Case

Matrix = dict[tuple[str, str], tuple[float | None, str]]
"""Row and column → seconds, and what is written there."""

SCALES = {"query": "pairs"}
"""Phase → what its scales count; samples in the others."""

DIGITS = 4


def plots(group: Group) -> Iterator[Plot]:
    """Yield a matrix for each phase and driver: a row for each method, a column for each scale."""
    parts: dict[str, list[Run]] = {}
    differing = len({run.case.concurrency for run in group.runs}) > 1
    for run in group.runs:
        if run.case.spec:
            parts.setdefault(f"{run.case.spec.phase}, {_by(run.case, differing)}", []).append(run)
    views = [view for part, runs in parts.items() if (view := _view(part, runs))]
    if views:
        note = "Seconds, by the scale of the job. The bluer, the longer, by the logarithm. Empty: not tried."
        yield Plot("Methods", note, tuple(views), wide=True)


def _by(case: Case, differing: bool) -> str:
    """Return the driver; and how many processes, where they differ."""
    return f"{case.driver}, {processes(case.concurrency)}" if differing else case.driver


def _view(label: str, runs: list[Run]) -> View | None:
    cells: Matrix = {(_row(run.case), _scale(run.case)): _cell(run) for run in runs}
    rows = list(dict.fromkeys(_row(run.case) for run in runs))
    sizes = {run.case.spec.scale for run in runs if run.case.spec}
    scales = [f"{scale:,}" for scale in sorted(sizes)]
    if not any(seconds for seconds, _ in cells.values()):
        return None
    found = [[cells.get((row, scale), (None, "")) for scale in scales] for row in rows]
    heat: Plain = {
        "type": "heatmap",
        "x": scales,
        "y": rows,
        "z": [[_shade(seconds) for seconds, _ in line] for line in found],
        "text": [[told for _, told in line] for line in found],
        "hovertemplate": "%{y}, %{x}: %{text} s",
    }
    layout = {
        "xaxis": axis(SCALES.get(label.partition(",")[0], "samples"), type="category"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "height": 140 + 30 * len(rows),
    }
    return View(name(label), [heat], layout)


def _shade(seconds: float | None) -> float | None:
    """Return what a cell is coloured by. The last digits of a logarithm differ from system to system."""
    return round(log10(seconds), DIGITS) if seconds else None


def _row(case: Case) -> str:
    return name(tricks_of(case))


def _scale(case: Case) -> str:
    return f"{case.spec.scale:,}"


def _cell(run: Run) -> tuple[float | None, str]:
    trial = run.typical()
    seconds = finite(trial.seconds) if trial and trial.error is None else None
    if trial is None or seconds is None or seconds <= 0:
        return None, "" if run.skipped else "failed"
    return seconds, rounded(seconds) if trial.outcome == "done" else name(trial.outcome)
