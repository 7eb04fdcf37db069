"""Report of the lock watch (--where): a table of the programs that held the write lock, and findings.

The lock watch samples, many times per second, which process holds the write lock of a trial's database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.lock_samples import MIN_LONG_HOLD_S, length, share, share_error
from sqlstress.analysis.wording import percent
from sqlstress.report import Run
from sqlstress.report.results import Holder, Holds, WriteLock
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    NAME,
    Block,
    Column,
    Note,
    Paragraph,
    ms_cell,
    percent_cell,
    shortened,
    table_of,
)
from sqlstress.statistics.units import NS_PER_S, format_duration, plural
from sqlstress.user_work import OURS, UNKNOWN

MAX_PROGRAMS = 5
"""Maximum number of programs per case in the table; the JSON report has all programs."""
_PROGRAM_WIDTH = 40
_UNKNOWN_LABEL = "(ended, or not visible here)"


@dataclass(frozen=True, slots=True)
class HolderRow(case_table.Row):
    """Row of the table: a program that held the write lock in a case."""

    holder: Holder
    share: float
    """Share of the case's samples in which the program held the lock, from 0 to 1."""
    rate: int
    """Number of samples per second."""


def lock_holder_blocks(group: Group, ours: str) -> Iterator[Block]:
    """Yield the table of programs that held the write lock, with heading and note; nothing without --where.

    `ours` is the label of the processes that sqlstress started.
    """
    rows = [
        HolderRow(run, trial, holder, share(holder.held.samples, _samples(run)), locks[0].rate)
        for run, trial in group.measured()
        if (locks := write_locks(run))
        for holder in merged_holders(run)[:MAX_PROGRAMS]
    ]
    if not rows:
        return
    yield Paragraph("Who held the write lock, in percent of the time, all passes together:")
    name = Column[HolderRow](
        "program",
        align="left",
        role=NAME,
        cell=lambda row: shortened(_program_label(row.holder, ours), _PROGRAM_WIDTH),
    )
    yield table_of(rows, (*case_table.setting_columns(group), case_table.PROCESSES, name, *_LOCK_COLUMNS))
    samples = min(_samples(row.run) for row in rows)
    yield Note(
        f"Shares may be wrong by up to {percent(share_error(samples))} of the time (95%, "
        f"{plural(samples, 'sample')} from outside); holds shorter than {format_duration(1 / rows[0].rate)} "
        "can be missed. longest: seen without a break and without a commit."
    )


def _program_label(holder: Holder, ours: str) -> str:
    return {OURS: ours, UNKNOWN: _UNKNOWN_LABEL}.get(holder.program, holder.program)


_LOCK_COLUMNS: tuple[Column[HolderRow], ...] = (
    Column("write lock %", ("write", "lock %"), cell=lambda row: percent_cell(row.share)),
    Column("longest ms", cell=lambda row: _longest(row.holder.held, row.rate)),
)


def _longest(held: Holds, rate: int) -> str:
    longest = length(held, rate)
    return f"{'<' if longest.is_bound else ''}{ms_cell(longest.ns)}"


def write_locks(run: Run) -> list[WriteLock]:
    """Return the results of the lock watch (--where) in a run's valid trials."""
    return [trial.write_lock for trial in run.valid if trial.write_lock]


def _samples(run: Run) -> int:
    return sum(lock.samples for lock in write_locks(run))


def merged_holders(run: Run) -> list[Holder]:
    """Return the programs that held the write lock in a run's valid trials, most samples first."""
    holders: dict[str, Holder] = {}
    for lock in write_locks(run):
        for holder in lock.holders:
            previous = holders.get(holder.program)
            holders[holder.program] = _merge(previous, holder) if previous else holder
    return sorted(holders.values(), key=lambda holder: -holder.held.samples)


def _merge(first: Holder, second: Holder) -> Holder:
    longer = max(first.held, second.held, key=lambda held: (held.longest_s, held.most_s))
    held = replace(
        longer,
        samples=first.held.samples + second.held.samples,
        times=first.held.times + second.held.times,
    )
    return replace(first, processes=first.processes + second.processes, held=held)


def lock_findings(group: Group, ours: str) -> Iterator[Finding]:
    """Yield a finding for each run whose lock watch ended early or never saw the lock held.

    Also yield a finding on the longest hold of the group, if it was long.

    `ours` is the label of the processes that sqlstress started.
    """
    for run in group.runs:
        locks, where = write_locks(run), group.place(run.case)
        if reason := next((lock.error for lock in locks if lock.error), ""):
            yield Finding(sentences.lock_watch_ended, where=where, reason=reason.removesuffix("."))
        if locks and not any(lock.held.samples for lock in locks):
            yield Finding(sentences.lock_not_seen, where=where, samples=_samples(run))
    holders = [
        (holder, run) for run in group.runs for holder in merged_holders(run) if holder.program != UNKNOWN
    ]
    for holder, run in sorted(holders, key=lambda pair: -pair[0].held.longest_s)[:1]:
        if holder.held.longest_s >= MIN_LONG_HOLD_S:
            text = f"at {group.place(run.case)}, {_program_label(holder, ours)}"
            yield Finding(sentences.long_write, holder=text, longest_ns=holder.held.longest_s * NS_PER_S)
