"""The matrix of methods: how long each took, at each scale."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite, rounded
from sqlstress.case import Case
from sqlstress.render.page.plots.plot import Plain, Plot, View, axis, name
from sqlstress.report import Run

Matrix = dict[tuple[str, str], tuple[float | None, str]]
"""Row and column → seconds, and what is written there."""


def plots(group: Group) -> Iterator[Plot]:
    """Yield a matrix for each phase: a row for each method, a column for each scale."""
    phases = dict.fromkeys(run.case.method.phase for run in group.runs if run.case.method)
    views = [view for phase in phases if (view := _view(phase, group))]
    if views:
        note = "Seconds, by the rows of the job. The bluer, the longer, by the logarithm."
        yield Plot("Methods", note, tuple(views), wide=True)


def _view(phase: str, group: Group) -> View | None:
    runs = [run for run in group.runs if run.case.method and run.case.method.phase == phase]
    cells: Matrix = {(_row(run.case), _scale(run.case)): _cell(run) for run in runs}
    rows = list(dict.fromkeys(_row(run.case) for run in runs))
    sizes = {run.case.method.scale for run in runs if run.case.method}
    scales = [f"{scale:,}" for scale in sorted(sizes)]
    if not any(seconds for seconds, _ in cells.values()):
        return None
    found = [[cells.get((row, scale), (None, "")) for scale in scales] for row in rows]
    heat: Plain = {
        "type": "heatmap",
        "x": scales,
        "y": rows,
        "z": [[log10(seconds) if seconds else None for seconds, _ in line] for line in found],
        "text": [[told for _, told in line] for line in found],
        "texttemplate": "%{text}",
        "hovertemplate": "%{y}, %{x}: %{text} s<extra></extra>",
        "colorscale": [[0, "--cold-color"], [1, "--hot-color"]],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }
    layout = {
        "xaxis": axis("rows", type="category"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "height": 140 + 30 * len(rows),
    }
    return View(name(phase), [heat], layout)


def _row(case: Case) -> str:
    method = case.method
    assert method
    tricks = ["WAL"] * (case.settings.journal_mode == "wal") + ["TSC"] * method.transaction
    return name(f"{' + '.join([method.name, *tricks])}, {case.driver}")


def _scale(case: Case) -> str:
    assert case.method
    return f"{case.method.scale:,}"


def _cell(run: Run) -> tuple[float | None, str]:
    trial = run.typical()
    seconds = finite(trial.seconds) if trial and trial.error is None else None
    if trial is None or seconds is None or seconds <= 0:
        return None, "skipped" if run.skipped else "failed"
    return seconds, rounded(seconds) if trial.outcome == "done" else name(trial.outcome)
