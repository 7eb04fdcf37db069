"""How the processes shared the work."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group, by_files
from sqlstress.analysis.wording import files, processes
from sqlstress.display.plot import Plain, Plot, View, axis, colour, counts_axis, level
from sqlstress.experiment import face_of
from sqlstress.report import Run, Trial

APART = 0.14
"""How far the layouts stand apart, in processes."""


def shares(group: Group) -> Iterator[Plot]:
    """Yield a mark for each process: its work over that of an average one."""
    measured = [(run, trial) for run, trial in group.measured() if trial.workers and trial.transactions > 0]
    if all(len(trial.workers) < 2 for _, trial in measured):
        return
    layouts = by_files(measured, lambda one: one[0].case.buckets)
    data = [_marks(layout, own, number, len(layouts)) for number, (layout, own) in enumerate(layouts.items())]
    axes = {
        "xaxis": counts_axis("processes", (run.case.concurrency for run, _ in measured)),
        "yaxis": axis("share, equal = 1", rangemode="tozero"),
        "shapes": [level(1.0, "--muted")],
    }
    note = "A mark is a process. At 1 it did as much as an average one; near 0 it starved."
    yield Plot("Who got how much", note, (View("", data, axes),))


def _marks(layout: int, measured: list[tuple[Run, Trial]], number: int, layouts: int) -> Plain:
    x, y, told = [], [], []
    for run, trial in measured:
        total = sum(worker.transactions for worker in trial.workers)
        for worker in trial.workers:
            x.append(run.case.concurrency + APART * (number - (layouts - 1) / 2))
            y.append(worker.transactions * len(trial.workers) / total if total else 0)
            told.append(
                f"process {worker.worker} of {processes(run.case.concurrency)} on {files(layout)}: "
                f"{worker.transactions:,} {face_of(run.case).units}"
            )
    return {
        "type": "scatter",
        "mode": "markers",
        "name": files(layout),
        "x": x,
        "y": y,
        "text": told,
        "marker": {"color": colour(number), "size": 9, "opacity": 0.6},
        "hovertemplate": "%{text}, %{y:.2f} of an equal share<extra></extra>",
    }
