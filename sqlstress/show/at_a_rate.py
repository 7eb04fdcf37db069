"""Table, findings and plots of an open loop, in which operations are due at a fixed rate.

In an open loop, the latency of an operation begins when the operation is due, so it includes the time in the
queue. In a closed loop, each process starts its next operation when the last is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import ERROR, Group
from sqlstress.analysis.scaling import KEPT_UP, RATE_UNKNOWN, SATURATED, achieved_share, saturation
from sqlstress.analysis.wording import layout_suffix, processes
from sqlstress.report import Arrived, Latency, Run
from sqlstress.report.case import Case
from sqlstress.report.results import merged
from sqlstress.show.blocks import (
    DUE_PER_S,
    PERCENTILES,
    VERIFIED,
    Block,
    Column,
    Legend,
    count_cell,
    percent_cell,
    table_of,
    verified_legend,
)
from sqlstress.show.case_table import (
    BUCKETS,
    LONGEST_WAIT,
    PROCESSES,
    TOTAL,
    Row,
    percentile_column,
    rows_of,
    setting_columns,
    spread_legend,
)
from sqlstress.show.plots import Plain, Plot, View, axis, distributions, latency_lines


def from_due(run: Run) -> Latency | None:
    """Return the latencies of a run, from the due time of each operation; None without operations."""
    return merged([latency for trial in run.valid if trial.arrived and (latency := trial.arrived.all_kinds)])


def service(run: Run) -> Latency | None:
    """Return the latencies of a run, from the start of each operation; None without operations."""
    kinds = dict.fromkeys(kind for trial in run.valid for kind in trial.latency)
    return merged([latency for kind in kinds if (latency := run.latency(kind)) and latency.count])


def lateness(run: Run) -> Latency | None:
    """Return the delays of operations that sqlstress itself caused; None without operations."""
    return merged([trial.arrived.lateness for trial in run.valid if trial.arrived and trial.arrived.lateness])


def _latency_column(
    name: str, latency_of: Callable[[Run], Latency | None], meaning: str, leaves: int | None = None
) -> Column[Row]:
    return percentile_column(
        name, lambda row: latency_of(row.run) if row.trial else None, meaning=meaning, leaves=leaves
    )


def _share_column(
    what: str, count: Callable[[Arrived], int], meaning: str, leaves: int | None = None
) -> Column[Row]:
    """Return a column with the result of `count` as a percentage of the due operations; empty for 0."""

    def cell(row: Row) -> str | None:
        arrived = [trial.arrived for trial in row.run.valid if trial.arrived]
        counted, due = sum(map(count, arrived)), sum(each.due for each in arrived)
        return percent_cell(counted / due) if counted and due else None

    return Column(f"{what} %", (what, "%"), cell=cell, meaning=meaning, leaves=leaves)


RATE: Column[Row] = replace(
    DUE_PER_S,
    cell=lambda row: count_cell(row.run.case.rate) if row.run.case.rate else None,
    meaning="due: operations due per second",
)
_FROM_DUE = (
    f"{PERCENTILES} of operations finished within this time of their due time; those still queued at the end "
    "count with the time they had waited"
)


def columns(group: Group, failed_column: Column[Row], proof_clause: str) -> tuple[Column[Row], ...]:
    """Return the columns of a table of cases at fixed rates. `blocks` has the same arguments."""
    return (
        *setting_columns(group),
        BUCKETS,
        PROCESSES,
        RATE,
        TOTAL.explained([f"TPS: {group.unit} done per second"]),
        _latency_column("p50", from_due, _FROM_DUE, leaves=40),
        _latency_column("p99", from_due, _FROM_DUE),
        _latency_column("p99.9", from_due, _FROM_DUE, leaves=10),
        _latency_column(
            "service p99", service, "service: from the start of the operation, as in a closed loop", leaves=50
        ),
        _latency_column("late p99", lateness, "late: delay added by the harness", leaves=20),
        _share_column(
            "queued",
            lambda arrived: arrived.queued,
            "queued: not done when the window closed, as a percentage of those due",
            leaves=30,
        ),
        _share_column(
            "skipped",
            lambda arrived: arrived.skipped,
            "skipped: too late at their turn (--latency-limit), as a percentage of those due",
        ),
        failed_column,
        LONGEST_WAIT.explained(
            ["longest wait: the slowest operation, from its due time, including one still queued"]
        ),
        VERIFIED.explained([*spread_legend(group), *verified_legend(group, proof_clause)]),
    )


def blocks(group: Group, failed_column: Column[Row], proof_clause: str) -> Iterator[Block]:
    """Yield a table of cases at fixed rates, and its legend.

    `failed_column` has the share of failed operations. `proof_clause`, for the legend, says what the checks
    of the data prove, such as "no acknowledged write was lost".
    """
    table = table_of(rows_of(group), columns(group, failed_column, proof_clause))
    yield table
    yield Legend(table)


MAX_LATE_SHARE = 0.10
"""Delay added by sqlstress itself, as a share of the p99 latency. A larger delay yields a finding."""


def rate_findings(group: Group) -> Iterator[Finding]:
    """Yield the findings on a group's cases at fixed rates; nothing for a closed loop."""
    if not group.case.rate:
        return
    yield from _saturation_findings(group)
    yield from late_findings(group)


def runs_by_curve(runs: Sequence[Run]) -> Mapping[tuple[int, int], list[Run]]:
    """Group the runs at fixed rates by (number of buckets, number of processes), each list sorted by rate."""
    found: dict[tuple[int, int], list[Run]] = {}
    for run in sorted((run for run in runs if run.case.rate), key=lambda run: run.case.rate):
        found.setdefault((run.case.buckets, run.case.concurrency), []).append(run)
    return found


def _saturation_findings(group: Group) -> Iterator[Finding]:
    measured = [run for run in group.runs if run.valid]
    error = ERROR / group.groups / max(1, len(measured))
    by_answer: dict[str, list[Run]] = {KEPT_UP: [], SATURATED: [], RATE_UNKNOWN: []}
    for run in measured:
        by_answer[saturation(run.valid, error)].append(run)
    if saturated := by_answer[SATURATED]:
        shares = [share for run in saturated if (share := achieved_share(run.valid)) is not None]
        yield Finding(
            sentences.saturated,
            where=group.places(run.case for run in saturated),
            share=min(shares),
            several=len(shares) > 1,
            skipped=all(run.case.arrivals and run.case.arrivals.latency_limit_s for run in saturated),
        )
    if unclear := by_answer[RATE_UNKNOWN]:
        yield Finding(sentences.kept_up_unclear, where=group.places(run.case for run in unclear))


def late_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on cases in which sqlstress itself caused a large share of the latency."""
    late: list[tuple[float, float, Case]] = []
    for run in group.runs:
        late_ns, p99_ns = (
            (found.p99_ns or 0.0) if found else 0.0 for found in (lateness(run), from_due(run))
        )
        if late_ns > MAX_LATE_SHARE * p99_ns > 0:
            late.append((late_ns, p99_ns, run.case))
    if late:
        late_ns, p99_ns, case = max(late, key=lambda each: each[0] / each[1])
        yield Finding(
            sentences.harness_late,
            where=group.places(case for _, _, case in late),
            late_ns=late_ns,
            p99_ns=p99_ns,
            most=group.place(case) if len(late) > 1 else None,
        )


def plots(group: Group) -> Iterator[Plot]:
    """Yield a plot of latency by rate, if there are several rates, and a plot of latency histograms."""
    views = []
    for part in group.parts or (group,):
        for (_, count), runs in runs_by_curve(part.runs).items():
            due = [(run.case.rate, from_due(run)) for run in runs if run.valid]
            begun = [(run.case.rate, service(run)) for run in runs if run.valid]
            hover = "%{{x:,.0f}}/s: {} %{{y:.3g}} ms".format
            data: list[Plain] = []
            for number, percentile in enumerate(("p50", "p99", "p99.9", "max")):
                data += latency_lines(percentile, due, percentile, number, hover(percentile))
            data += latency_lines("service p99", begun, "p99", 1, hover("service p99"), "dash")
            if data and len(data[0]["x"]) > 1:
                value = f"{group.value(part.case)}, " if group.setting else ""
                axes = {"xaxis": axis("due per second"), "yaxis": axis("ms", type="log")}
                views.append(View(f"{value}{processes(count)}{layout_suffix(runs[0].case)}", data, axes))
    if views:
        note = "From the due time of an operation. Dashed: from its start, without the time in the queue."
        yield Plot("Latency by rate", note, tuple(views), wide=True)
    yield from distributions(
        "Latency and service time",
        (
            (run.case, (("from its due time", from_due(run)), ("from its start (service)", service(run))))
            for run in group.runs
        ),
    )
