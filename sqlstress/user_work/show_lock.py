"""Who held the write lock of the trials' databases: a row for each program, all passes together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.lock_samples import LONG_S, length, share, share_error
from sqlstress.analysis.wording import percent, plural
from sqlstress.report import Run
from sqlstress.report.lock_holds import Holder, Holds, WriteLock
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    NAME,
    Block,
    Column,
    Figure,
    Note,
    Paragraph,
    ms_cell,
    percent_cell,
    shortened,
    table_of,
)
from sqlstress.statistics.units import NS_PER_S, format_duration
from sqlstress.user_work import OURS, UNKNOWN

MOST_ROWS = 5
"""Programs of a case that are shown; the JSON report has them all."""
_WIDTH = 40
_UNKNOWN = "(ended, or not visible here)"


@dataclass(frozen=True, slots=True)
class HolderRow(case_table.Row):
    """A program, and how it held the write lock in all passes of a run."""

    holder: Holder
    share: float
    """Of all samples."""
    rate: int
    """Samples per second."""


def lock_blocks(group: Group, ours: str) -> Iterator[Block]:
    """Yield who held the lock; nothing where nobody asked. `ours` is what sqlstress's own processes do."""
    rows = [
        HolderRow(run, trial, holder, share(holder.held.samples, _samples(run)), locks[0].rate)
        for run, trial in group.measured()
        if (locks := locks_of(run))
        for holder in holders_of(run)[:MOST_ROWS]
    ]
    if not rows:
        return
    yield Paragraph("Who held the write lock, in percent of the time, all passes together:")
    name = Figure[HolderRow](
        Column("program", ("", "program"), "left", NAME),
        lambda row: shortened(_called(row.holder, ours), _WIDTH),
    )
    yield table_of(rows, (*case_table.apart_columns(group), case_table.PROCESSES, name, *_FIGURES))
    samples = min(_samples(row.run) for row in rows)
    yield Note(
        f"Shares may be wrong by up to {percent(share_error(samples))} of the time (95%, "
        f"{plural(samples, 'sample')} from outside); holds shorter than {format_duration(1 / rows[0].rate)} "
        "can be missed. longest: seen without a break and without a commit."
    )


def _called(holder: Holder, ours: str) -> str:
    return {OURS: ours, UNKNOWN: _UNKNOWN}.get(holder.program, holder.program)


_FIGURES: tuple[Figure[HolderRow], ...] = (
    Figure(Column("write lock %", ("write", "lock %")), lambda row: percent_cell(row.share)),
    Figure(Column("longest ms", ("longest", "ms")), lambda row: _longest(row.holder.held, row.rate)),
)


def _longest(held: Holds, rate: int) -> str:
    finding = length(held, rate)
    return f"{'<' if finding.code == 'held-below' else ''}{ms_cell(finding.facts['ns'])}"


def locks_of(run: Run) -> list[WriteLock]:
    """Return what was seen in the valid trials of a run."""
    return [trial.write_lock for trial in run.valid if trial.write_lock]


def _samples(run: Run) -> int:
    return sum(lock.samples for lock in locks_of(run))


def holders_of(run: Run) -> list[Holder]:
    """Return who held the lock in all valid trials of a run, first who was seen most often."""
    found: dict[str, Holder] = {}
    for lock in locks_of(run):
        for one in lock.holders:
            known = found.get(one.program)
            found[one.program] = _together(known, one) if known else one
    return sorted(found.values(), key=lambda one: -one.held.samples)


def _together(one: Holder, other: Holder) -> Holder:
    longer = max(one.held, other.held, key=lambda held: (held.longest_s, held.most_s))
    held = replace(
        longer,
        samples=one.held.samples + other.held.samples,
        times=one.held.times + other.held.times,
    )
    return replace(one, processes=one.processes + other.processes, held=held)


def lock_findings(group: Group, ours: str) -> Iterator[Finding]:
    """Yield who kept others from writing for long, and where nobody was seen, or not to the end."""
    for run in group.runs:
        locks, where = locks_of(run), group.place(run.case)
        if reason := next((lock.error for lock in locks if lock.error), ""):
            yield Finding("lock-watch-ended", where=where, reason=reason.removesuffix("."))
        if locks and not any(lock.held.samples for lock in locks):
            yield Finding("lock-not-seen", where=where, samples=_samples(run))
    holders = [(one, run) for run in group.runs for one in holders_of(run) if one.program != UNKNOWN]
    for one, run in sorted(holders, key=lambda pair: -pair[0].held.longest_s)[:1]:
        if one.held.longest_s >= LONG_S:
            process = Finding("lock-holder", where=group.place(run.case), program=_called(one, ours))
            longest_ns = one.held.longest_s * NS_PER_S
            yield Finding("long-write", process=process, longest_ns=longest_ns, lasts=False)
