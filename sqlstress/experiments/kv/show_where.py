"""Presentation of the times recorded by --where: the share of each activity, and plots.

An account has the recorded times of one trial. A span is a period in which a process did one activity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import duration, place
from sqlstress.experiments.kv.load_findings import process_name, shares, time_accounts
from sqlstress.report import Run, results
from sqlstress.report.case import Case
from sqlstress.show.blocks import Block, Column, Legend, Note, Paragraph, count_cell, percent_cell, table_of
from sqlstress.show.case_table import BUCKETS, PROCESSES, Cell, Row, rows_of, setting_columns
from sqlstress.show.plots import Plain, Plot, View, axis, colour, name
from sqlstress.statistics.units import NS_PER_MS

NS_PER_US = 1000

_PARTS: dict[str, tuple[tuple[str, str], str]] = {
    results.HELD: (("lock", "held"), "waiting for a lock held by another process"),
    results.FREE: (("asleep,", "free"), "asleep although the lock was free"),
    results.CHECKPOINT: (("", "ckpt"), "its own checkpoints"),
    results.SYNC: (("", "sync"), "syncs outside checkpoints"),
    results.WRITE: (("", "write"), "writes outside checkpoints"),
    results.PROCESSOR: (("CPU", "wait"), "waiting for a processor, not counted in the other columns"),
    results.SQLITE: (("", "SQLite"), "SQLite's own work and reads"),
    results.BINDING: (("", "binding"), "the driver's binding (the rest)"),
    results.HARNESS: (("", "harness"), "drawing keys, counting, proving"),
}
"""Heading (two lines) and meaning of the column of each activity."""
_NAMES = {part: f"{first} {second}".strip() for part, ((first, second), _) in _PARTS.items()}
_NAMES |= {results.CHECKPOINT: "checkpoint", results.PROCESSOR: "processor"}


def blocks(group: Group) -> Iterator[Block]:
    """Yield the table with each activity's share of the operations' time, if --where recorded it."""
    if not any(time_accounts(run) for run in group.runs):
        if any(getattr(run.case.spec, "where", False) and run.valid for run in group.runs):
            yield Paragraph(
                "Cannot tell where the time goes: the records of the processes contradict each other."
            )
        return
    yield Paragraph("Where the time of an operation goes, in percent, all passes together:")
    buckets = BUCKETS.explained(())
    table = table_of(rows_of(group), (*setting_columns(group), buckets, PROCESSES, _EACH, *_SHARES))
    yield table
    yield Note(Legend(table).text)
    if limits := _limits(group):
        yield Paragraph(limits)


def _limits(group: Group) -> str:
    accounts = [account for run in group.runs for account in time_accounts(run)]
    remarks = []
    if any(run.case.rate for run in group.runs if time_accounts(run)):
        remarks.append("At a rate, the rest is mostly idle time: no operation is due yet.")
    if any(results.PROCESSOR not in account.parts for account in accounts):
        remarks.append("Waits for a processor cannot be measured here; the other columns include them.")
    least = min(account.told for account in accounts)
    if least < 0.995:
        remarks.append(
            f"The holders of locks are known for at least the last {percent_cell(least)}% of a window."
        )
    return " ".join(remarks)


def _mean_us(row: Row) -> str | None:
    counted = [(trial.where.time_ns, trial.transactions) for trial in row.run.valid if trial.where]
    done = sum(count for _, count in counted)
    return count_cell(sum(ns for ns, _ in counted) / done / NS_PER_US) if done else None


def _share(part: str) -> Cell:
    def cell(row: Row) -> str | None:
        share = shares(row.run).get(part)
        return None if share is None else percent_cell(share)

    return cell


_EACH: Column[Row] = Column("mean us", ("mean", "µs"), cell=_mean_us)
_OPTIONAL_PARTS = (results.HARNESS, results.WRITE, results.BINDING)
_SHARES = tuple(
    Column(
        _NAMES[part],
        heading,
        cell=_share(part),
        meaning=f"{_NAMES[part]}: {text}",
        leaves=_OPTIONAL_PARTS.index(part) if part in _OPTIONAL_PARTS else None,
    )
    for part, (heading, text) in _PARTS.items()
)

_SPANS = {
    "wait": ("waits for the lock", 4),
    results.COMMIT: ("commits", 11),
    results.READ: ("reads", 11),
    results.CHECKPOINT: ("checkpoints", 11),
    results.SYNC: ("syncs", 11),
}
"""Label and line width for each activity of a timeline. Later activities are drawn on top."""


def plots(group: Group) -> Iterator[Plot]:
    """Yield plots of the times that --where recorded: shares, and the slowest operation."""
    runs = [run for run in group.runs if time_accounts(run)]
    if runs:
        yield _split(group, runs)
        views = [
            _moment(run.case, moments)
            for run in runs
            if (moments := [account.moment for account in time_accounts(run) if account.moment])
        ]
        if views:
            note = (
                "What each process did meanwhile on the file of the slowest operation. Thin: waiting for its "
                "lock. Thick: holding it."
            )
            yield Plot("The slowest operation", note, tuple(views), len(views) - 1, wide=True)


def _split(group: Group, runs: Sequence[Run]) -> Plot:
    names, shares_by_run = [name(group.place(run.case)) for run in runs], [shares(run) for run in runs]
    data: list[Plain] = [
        {
            "type": "bar",
            "name": _NAMES[part],
            "orientation": "h",
            "marker": {"color": colour(number) if number < 8 else "--muted"},
            "hovertemplate": f"%{{y}}: {_NAMES[part]} %{{x:.1f}}%",
            "x": [100 * run_shares.get(part, 0.0) for run_shares in shares_by_run],
            "y": names,
        }
        for number, part in enumerate(results.TIME_PARTS)
        if any(part in run_shares for run_shares in shares_by_run)
    ]
    layout = {
        "xaxis": axis("% of the time", rangemode="tozero"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "barmode": "stack",
        "height": 150 + 26 * len(runs),
    }
    note = "How the processes spent their time, all passes together. The terms are explained below the table."
    return Plot("Where the time goes", note, (View("", data, layout),), wide=True)


def _moment(case: Case, moments: Sequence[results.Moment]) -> View:
    """Return the timeline of the longest operation: a row per process, first the process that ran it."""
    worst = max(moments, key=lambda moment: moment.length_ns)
    other_processes = sorted({process for process, *_ in worst.spans} - {worst.process})
    names = {process: name(process_name(case, process)) for process in (worst.process, *other_processes)}
    layout = {
        "xaxis": axis("ms"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "height": 130 + 26 * len(names),
        "hovermode": "closest",
    }
    # An invisible line gives every process its row, in order, and makes the axis as long as the operation.
    frame: Plain = {
        "type": "scatter",
        "mode": "lines",
        "name": "",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [0.0, *[None] * len(other_processes), worst.length_ns / NS_PER_MS],
        "y": [*names.values(), names[worst.process]],
        "line": {"color": "transparent", "width": 1},
    }
    return View(f"{place(case)}: {duration(worst.length_ns)}", [frame, *_spans(worst, names)], layout)


def _spans(moment: results.Moment, names: Mapping[int, str]) -> Iterator[Plain]:
    for number, (kind, (label, width)) in enumerate(_SPANS.items()):
        x: list[float | None] = []
        y: list[str | None] = []
        for process, span_kind, begin, end in moment.spans:
            if span_kind == kind:
                x += [begin / NS_PER_MS, end / NS_PER_MS, None]
                y += [names[process], names[process], None]
        if x:
            yield {
                "type": "scatter",
                "mode": "lines",
                "name": label,
                "x": x,
                "y": y,
                "line": {"color": colour(number), "width": width},
                "hovertemplate": f"%{{y}} {label}: %{{x:.3f}} ms",
            }
