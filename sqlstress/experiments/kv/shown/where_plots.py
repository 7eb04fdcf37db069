"""Plots of where the time went: a bar for each case, and its slowest operation as it went on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import duration, place
from sqlstress.display.plot import Plain, Plot, View, axis, colour, name
from sqlstress.experiments.kv.shown.where import NAMES, process_name, shares, told
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.report.where import CHECKPOINT, COMMIT, PARTS, READ, SYNC, Moment
from sqlstress.statistics.units import NS_PER_MS

_SPANS = {
    "wait": "waits for the lock",
    COMMIT: "commits",
    READ: "reads",
    CHECKPOINT: "checkpoints",
    SYNC: "syncs",
}
"""What is drawn, what lies above the others last."""
_WIDTHS = {"wait": 4}
_WIDTH = 11


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group that was told where its time goes."""
    runs = [run for run in group.runs if told(run)]
    if runs:
        yield _split(group, runs)
        views = [view for run in runs for view in _moments(group, run)]
        if views:
            note = (
                "What each process did meanwhile on the file of the slowest operation. Thin: waiting for its "
                "lock. Thick: holding it."
            )
            yield Plot("The slowest operation", note, tuple(views), len(views) - 1, wide=True)


def _split(group: Group, runs: Sequence[Run]) -> Plot:
    names = [name(group.place(run.case)) for run in runs]
    found = [shares(run) for run in runs]
    data: list[Plain] = [
        {
            "type": "bar",
            "name": NAMES[part],
            "orientation": "h",
            "marker": {"color": colour(number) if number < 8 else "--muted"},
            "hovertemplate": f"%{{y}}: {NAMES[part]} %{{x:.1f}}%",
            "x": [100 * own.get(part, 0.0) for own in found],
            "y": names,
        }
        for number, part in enumerate(PARTS)
        if any(part in own for own in found)
    ]
    layout = {
        "xaxis": axis("% of the time", rangemode="tozero"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "barmode": "stack",
        "height": 150 + 26 * len(runs),
    }
    note = "How the time of the processes divides, all passes together. The words: below the table."
    return Plot("Where the time goes", note, (View("", data, layout),), wide=True)


def _moments(group: Group, run: Run) -> Iterator[View]:
    found = [one.moment for one in told(run) if one.moment]
    if not found:
        return
    worst = max(found, key=lambda one: one.length_ns)
    label = f"{place(run.case)}: {duration(worst.length_ns)}"
    rows = {process: row for row, process in enumerate(_processes(worst))}
    data = [trace for number, what in enumerate(_SPANS) if (trace := _trace(worst, what, rows, number))]
    layout = {
        "xaxis": axis("ms"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "height": 130 + 26 * len(rows),
        "hovermode": "closest",
    }
    yield View(label, [_frame(worst, run.case, rows), *_named(data, run.case, rows)], layout)


def _processes(moment: Moment) -> list[int]:
    """Return whose rows are drawn: first whose operation it was."""
    others = sorted({process for process, *_ in moment.spans} - {moment.process})
    return [moment.process, *others]


def _trace(moment: Moment, what: str, rows: dict[int, int], number: int) -> Plain | None:
    own = [(process, begin, end) for process, did, begin, end in moment.spans if did == what]
    if not own:
        return None
    ends: list[tuple[float | None, int | None]] = []
    for process, begin, end in own:
        ends += [(begin / NS_PER_MS, process), (end / NS_PER_MS, process), (None, None)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": _SPANS[what],
        "x": [at for at, _ in ends],
        "y": [process for _, process in ends],
        "line": {"color": colour(number), "width": _WIDTHS.get(what, _WIDTH)},
        "hovertemplate": f"%{{y}} {_SPANS[what]}: %{{x:.3f}} ms",
    }


def _frame(moment: Moment, case: Case, rows: dict[int, int]) -> Plain:
    """Return what gives every process its row, in their order, and the axis its whole length."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [0.0 if not row else None for row in rows.values()] + [moment.length_ns / NS_PER_MS],
        "y": [_name(case, process) for process in rows] + [_name(case, moment.process)],
        "line": {"color": "transparent", "width": 1},
    }


def _named(data: Sequence[Plain], case: Case, rows: dict[int, int]) -> list[Plain]:
    return [
        {**trace, "y": [None if process is None else _name(case, process) for process in trace["y"]]}
        for trace in data
    ]


def _name(case: Case, process: int) -> str:
    return name(process_name(case, process))
