"""How cases are shown whose operations were due at a rate: the same for every experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, ERROR, Group, noise
from sqlstress.analysis.scaling import KEPT_UP, RATE_UNKNOWN, SATURATED, achieved, saturation
from sqlstress.analysis.wording import (
    finite,
    on_files,
    processes,
    whole,
)
from sqlstress.report import Latency, Run, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import merged
from sqlstress.show.blocks import (
    NAME,
    NOTHING_LOST,
    VERIFIED,
    Block,
    Column,
    Figure,
    Legend,
    Table,
    count_cell,
    ms_cell,
    percent_cell,
    table_of,
    verified_legend,
)
from sqlstress.show.case_table import (
    FAILED_SHARE,
    FILES,
    LONGEST_WAIT,
    PROCESSES,
    TOTAL,
    Cell,
    Row,
    apart_columns,
    of_layouts,
    percentiles,
    rows_of,
    spread_legend,
)
from sqlstress.show.plots import Plain, Plot, View, axis, distributions, line
from sqlstress.statistics.units import NS_PER_MS

# The table of cases at a rate: latencies count from the moment an operation was due.


def from_due(run: Run) -> Latency | None:
    """Return the latencies of all operations of a run, of all valid trials together; None without any."""
    return merged([one for trial in run.valid if trial.arrived and (one := trial.arrived.whole)])


def service(run: Run) -> Latency | None:
    """Return the times from begin to end of all operations of a run; None without any."""
    kinds = dict.fromkeys(kind for trial in run.valid for kind in trial.latency)
    return merged([one for kind in kinds if (one := run.latency(kind)) and one.count])


def lateness(run: Run) -> Latency | None:
    """Return how much later than possible the harness began the operations of a run; None without any."""
    return merged([trial.arrived.lateness for trial in run.valid if trial.arrived and trial.arrived.lateness])


def _of(latency: Callable[[Run], Latency | None], figure: Callable[[Latency], float | None]) -> Cell:
    def cell(row: Row) -> str | None:
        found = latency(row.run) if row.trial else None
        return ms_cell(figure(found)) if found else None

    return cell


def _share(figure: str) -> Cell:
    """Return the cell of a count, in per cent of what was due; nothing where there was none of it."""

    def cell(row: Row) -> str | None:
        found = [trial.arrived for trial in row.run.valid if trial.arrived]
        count, due = sum(getattr(one, figure) for one in found), sum(one.due for one in found)
        return percent_cell(count / due) if count and due else None

    return cell


def _rate(row: Row) -> str | None:
    return count_cell(row.run.case.rate) if row.run.case.rate else None


RATE: Figure[Row] = Figure(Column("due per s", ("due", "per s"), role=NAME), _rate)
FIGURES: tuple[Figure[Row], ...] = (
    FILES,
    PROCESSES,
    RATE,
    TOTAL,
    Figure(Column("p50 ms", ("p50", "ms")), _of(from_due, lambda one: one.p50_ns)),
    Figure(Column("p99 ms", ("p99", "ms")), _of(from_due, lambda one: one.p99_ns)),
    Figure(Column("p99.9 ms", ("p99.9", "ms")), _of(from_due, lambda one: one.p999_ns)),
    Figure(Column("service p99 ms", ("service", "p99 ms")), _of(service, lambda one: one.p99_ns)),
    Figure(Column("late p99 ms", ("late", "p99 ms")), _of(lateness, lambda one: one.p99_ns)),
    Figure(Column("queued %", ("queued", "%")), _share("queued")),
    Figure(Column("skipped %", ("skipped", "%")), _share("skipped")),
    FAILED_SHARE,
    LONGEST_WAIT,
    VERIFIED,
)
_LEAVING = ("p99.9 ms", "late p99 ms", "queued %", "p50 ms", "service p99 ms", "longest wait ms")
_FROM_DUE = (
    "them were done so soon after they were due, those still queued at the end counted with what they had "
    "waited"
)
_MEANINGS = {
    "due per s": "due: operations that were to begin in a second",
    "TPS total": "TPS: {units} done in a second",
    "p99 ms": "",
    "service p99 ms": "service: from their begin only, as a closed loop has it",
    "late p99 ms": "late: how much later than possible the harness began them",
    "queued %": "queued: not done when the window closed, in per cent of what was due",
    "skipped %": "skipped: too late when their turn came (--latency-limit), in per cent of what was due",
    "failed %": "failed: operations given up for a busy database, in per cent",
    "longest wait ms": "longest wait: the slowest operation, from when it was due, or still queued",
}


NOTHING: Mapping[str, str] = MappingProxyType({})


def blocks(group: Group, own: Mapping[str, str] = NOTHING, proved: str = NOTHING_LOST) -> Iterator[Block]:
    """Yield the table, and what it means: `own` are the columns that mean something else here.

    `proved` is what was proved where the data is right.
    """
    table = table_of(rows_of(group), (*apart_columns(group), *of_layouts(group, FIGURES)), _LEAVING)
    yield table
    yield Legend(table, partial(_legend, group, {**_MEANINGS, **own}, proved))


def _legend(group: Group, meanings: Mapping[str, str], proved: str, table: Table) -> Iterator[str]:
    for name, text in meanings.items():
        if name == "p99 ms":
            yield from percentiles(table, _FROM_DUE)
        elif name in table.headers:
            yield text.format(units=group.unit)
    yield from spread_legend(group)
    yield from verified_legend(group, proved)


# What there is to say of cases at a rate: which kept up, where latency rises, and what the harness added.


NOTED_LATE = 0.10
"""A harness whose own lateness is this share of the latency is mentioned."""
NOTED_POLLING = 0.02
"""Polling that takes this share of the processes' time is mentioned."""


def at_a_rate(group: Group) -> Iterator[Finding]:
    """Yield what the runs of a group say; nothing of a closed loop."""
    if not group.case.rate:
        return
    yield from _kept_up(group)
    for curve in curves(group.runs).values():
        yield from _rising(group, curve)
    yield from harness(group)


def harness(group: Group) -> Iterator[Finding]:
    """Yield what the harness itself added to latencies, and took from the processors."""
    yield from _late(group)
    yield from _polling(group)


def curves(runs: Sequence[Run]) -> Mapping[tuple[int, int], list[Run]]:
    """Return the runs of each layout and number of processes, in ascending order of their rate."""
    found: dict[tuple[int, int], list[Run]] = {}
    for run in sorted((run for run in runs if run.case.rate), key=lambda run: run.case.rate):
        found.setdefault((run.case.buckets, run.case.concurrency), []).append(run)
    return found


def _kept_up(group: Group) -> Iterator[Finding]:
    """Yield which cases were saturated, and of which it can't be told."""
    measured = [run for run in group.runs if run.valid]
    error = ERROR / group.groups / max(1, len(measured))
    found: dict[str, list[Run]] = {KEPT_UP: [], SATURATED: [], RATE_UNKNOWN: []}
    for run in measured:
        found[saturation(run.valid, error)].append(run)
    if saturated := found[SATURATED]:
        shares = [share for run in saturated if (share := achieved(run.valid)) is not None]
        yield Finding(
            "saturated",
            where=group.places(run.case for run in saturated),
            share=min(shares),
            several=len(shares) > 1,
            skipped=all(run.case.arrivals and run.case.arrivals.latency_limit_s for run in saturated),
        )
    if untold := found[RATE_UNKNOWN]:
        where = group.places(run.case for run in untold)
        yield Finding("kept-up-unclear", where=where)


def _p99(trial: Trial) -> float:
    whole_latency = trial.arrived.whole if trial.arrived else None
    return (finite(whole_latency.p99_ns) if whole_latency else None) or 0.0


def _rising(group: Group, curve: Sequence[Run]) -> Iterator[Finding]:
    """Yield from which rate on p99 is higher than at the lowest one, beyond doubt."""
    runs = [run for run in curve if run.valid and run.by_pass(_p99)]
    if len(runs) < 2:
        return
    tested = group.tested(runs, lambda run: run.by_pass(_p99))
    if tested is None:
        return
    first, *others = runs
    rate = first.case.rate
    base: dict[str, Any] = {
        "where": group.place(first.case).replace(f" at {whole(rate)}/s", ""),
        "base_ns": tested.middle(first),
        "base_rate": rate,
    }
    higher = [run for run in others if (ratio := tested.ratio(first, run)) and ratio.is_above]
    if higher:
        yield Finding("p99-rises", **base, rate=higher[0].case.rate, ratio=tested.ratio(first, higher[0]))
        return
    last = others[-1].case.rate
    if all(tested.are_equal(run, first) for run in others):
        yield Finding("p99-level", **base, rate=last, share=EQUAL)
    else:
        yield Finding("p99-level", **base, unclear_rate=last, noise=noise(tested))


def _late(group: Group) -> Iterator[Finding]:
    """Yield where the harness itself was late, by much of what is shown as latency."""
    found: list[tuple[Case, float, float]] = []
    for run in group.runs:
        late, all_of_it = lateness(run), from_due(run)
        if late and all_of_it and (late.p99_ns or 0) > NOTED_LATE * (all_of_it.p99_ns or 0) > 0:
            found.append((run.case, late.p99_ns or 0.0, all_of_it.p99_ns or 0.0))
    if found:
        case, late_ns, p99_ns = max(found, key=lambda one: one[1] / one[2])
        yield Finding(
            "harness-late",
            where=group.places(case for case, _, _ in found),
            late_ns=late_ns,
            p99_ns=p99_ns,
            most=group.place(case) if len(found) > 1 else None,
        )


def _polling(group: Group) -> Iterator[Finding]:
    shares = [
        (trial.arrived.polled_share, run.case)
        for run, trial in group.measured()
        if trial.arrived and finite(trial.arrived.polled_share)
    ]
    share, case = max(shares, key=lambda one: one[0] * one[1].concurrency, default=(0.0, group.case))
    if share > NOTED_POLLING:
        yield Finding(
            "polling-cost", share=share, processors=share * case.concurrency, where=group.place(case)
        )


# Plots of cases at a rate: latency over rate, and where the time went.


PERCENTILES: dict[str, Callable[[Latency], float | None]] = {
    "p50": lambda latency: latency.p50_ns,
    "p99": lambda latency: latency.p99_ns,
    "p99.9": lambda latency: latency.p999_ns,
    "max": lambda latency: latency.max_ns,
}


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots for which a group has figures."""
    yield from over_rate(group)
    yield from _apart(group)


def over_rate(group: Group) -> Iterator[Plot]:
    """Yield the latencies over the rate, a view for each layout and number of processes."""
    views = []
    for part in group.parts or (group,):
        for (_, count), runs in curves(part.runs).items():
            data = list(_lines([run for run in runs if run.valid]))
            if data and len(data[0]["x"]) > 1:
                value = f"{group.value(part.case)}, " if group.setting else ""
                axes = {"xaxis": axis("due in a second"), "yaxis": axis("ms", type="log")}
                views.append(View(f"{value}{processes(count)}{on_files(runs[0].case)}", data, axes))
    if views:
        note = (
            "From the moment an operation was due. Dashed: from its begin only, which leaves the queue out."
        )
        yield Plot("Latency over rate", note, tuple(views), wide=True)


def _lines(runs: Sequence[Run]) -> Iterator[Plain]:
    for number, (percentile, figure) in enumerate(PERCENTILES.items()):
        yield from _line(percentile, [(run, from_due(run)) for run in runs], figure, number, "solid")
    yield from _line("service p99", [(run, service(run)) for run in runs], PERCENTILES["p99"], 1, "dash")


def _line(
    label: str,
    measured: Sequence[tuple[Run, Latency | None]],
    figure: Callable[[Latency], float | None],
    number: int,
    dash: str,
) -> Iterator[Plain]:
    known = [
        (run.case.rate, ns / NS_PER_MS)
        for run, one in measured
        if run.case.rate and one and (ns := finite(figure(one))) and ns > 0
    ]
    if known:
        rates, values = zip(*known, strict=True)
        yield line(label, rates, values, number, f"%{{x:,.0f}}/s: {label} %{{y:.3g}} ms", dash=dash)


def _apart(group: Group) -> Iterator[Plot]:
    """Yield the distributions of each case: from the moment an operation was due, and from its begin."""
    return distributions(
        "Latency and service time",
        (
            (run.case, (("from when it was due", from_due(run)), ("from its begin (service)", service(run))))
            for run in group.runs
        ),
    )
