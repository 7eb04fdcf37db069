"""What ran beside the load, and what a trial says of its WAL and of the checkpoints: in words, in a table of
its own, and in a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import files, places, processes, size
from sqlstress.experiment import has_window
from sqlstress.experiments.kv.experiment import Checkpointing
from sqlstress.report import Trial
from sqlstress.report.case import Case
from sqlstress.show.blocks import (
    MISSING,
    Block,
    Column,
    Figure,
    Paragraph,
    Picture,
    count_cell,
    ms_cell,
    share_cell,
    table_of,
)
from sqlstress.show.case_table import FILES, PROCESSES, Cell, Row, apart_columns, rows_of
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
    WAL_SIZE,
    Series,
)
from sqlstress.statistics.units import NS_PER_S, format_duration

AUTOCHECKPOINT = 1000
"""Frames at which SQLite checkpoints by itself, unless it is told otherwise."""
PAGE_SIZE = 4096
LARGE = 4
"""A WAL of more than so many times the pages at which a checkpoint is due has got out of hand."""


@dataclass(frozen=True, slots=True)
class Wal:
    """The figures of a trial; None where there is no such figure."""

    checkpoints: int | None
    """Checkpoints within the window, one for each file."""
    busy: int | None
    """How many of them answered busy."""
    stuck: int | None
    """The most in a row, on one file, that left frames and got no further."""
    share: float | None
    """Share of the window that went to them."""
    longest_ns: int | None
    """The longest of them."""
    largest_bytes: int | None
    """The largest WAL that was seen."""
    limit_bytes: int
    """A larger one has got out of hand."""

    @property
    def is_large(self) -> bool:
        """Whether a WAL has got out of hand."""
        return self.largest_bytes is not None and self.largest_bytes > self.limit_bytes


def wal_of(case: Case, trial: Trial) -> Wal | None:
    """Return the figures of a trial; None if nothing ran beside its load."""
    if case.spec.checkpointing is None:
        return None
    time_ns = total(trial, CHECKPOINT_TIME)
    return Wal(
        checkpoints=total(trial, CHECKPOINTS),
        busy=total(trial, BUSY_CHECKPOINTS),
        stuck=most(trial, STUCK_CHECKPOINTS),
        share=None if time_ns is None or trial.seconds <= 0 else time_ns / NS_PER_S / trial.seconds,
        longest_ns=most(trial, LONGEST_CHECKPOINT),
        largest_bytes=most(trial, LARGEST_WAL),
        limit_bytes=LARGE * autocheckpoint(case) * _page_size(trial),
    )


def autocheckpoint(case: Case) -> int:
    """Return the frames at which a checkpoint would be due, if nobody else saw to it."""
    return case.settings.wal_autocheckpoint or AUTOCHECKPOINT


def _page_size(trial: Trial) -> int:
    answer = trial.effective.get("page_size", "")
    return int(answer) if answer.isdecimal() and len(answer) < 9 else PAGE_SIZE


def total(trial: Trial, name: str) -> int | None:
    """Return the sum of a series of that name; None when there is none."""
    found = series_of(trial, name)
    return None if found is None else sum(found.values)


def most(trial: Trial, name: str) -> int | None:
    """Return the largest value of a series of that name; None when there is none."""
    found = series_of(trial, name)
    return None if found is None else max(found.values, default=None)


def series_of(trial: Trial, name: str) -> Series | None:
    """Return what was observed of the databases under a name; None when it was not."""
    return next((one for one in trial.series if one.name == name and one.worker is None), None)


def _name(group: Group, case: Case) -> str:
    """Return what stands before a picture; where a value says which case it is, nothing else."""
    return group.place(case) if group.parts else f"{files(case.buckets)}, {processes(case.concurrency)}"


LEVELS = " ▁▂▃▄▅▆▇█"
WIDTH = 32
"""Characters over which the window is drawn."""


def picture(group: Group) -> Iterator[str]:
    """Yield a line for each run of which the size of the WALs was seen as the window went on."""
    seen = ((run.case, series_of(trial, WAL_SIZE)) for run, trial in group.measured())
    lines = [(case, series) for case, series in seen if series and series.values]
    names = [_name(group, case) for case, _ in lines]
    width = max(map(len, names), default=0)
    if lines:
        yield "Size of the WALs over the window, all files together, up to:"
    for name, (case, series) in zip(names, lines, strict=True):
        window_ns = int(case.duration_s * NS_PER_S) if has_window(case) else 0
        yield f"{name:<{width}} |{bars(series, window_ns)}| {size(max(series.values))}"


def bars(series: Series, window_ns: int) -> str:
    """Return a character for each part of a window, as high as the largest value in it.

    Where nothing was seen it stays as high as before. A window of unknown length ends with the last value.
    """
    ends_ns = max(1, window_ns, 1 + max(series.times_ns, default=0))
    most = max((1, *series.values))
    highest: dict[int, int] = {}
    for at_ns, value in zip(series.times_ns, series.values, strict=False):
        place = max(0, at_ns) * WIDTH // ends_ns
        highest[place] = max(value, highest.get(place, 0))
    drawn, value = "", 0
    for place in range(WIDTH):
        value = highest.get(place, value)
        drawn += LEVELS[-(-value * (len(LEVELS) - 1) // most)]
    return drawn


_MEANINGS = {
    "checkpoints": "checkpoints: those that ended within the window, one for each file",
    "busy": "busy: SQLite answered that a lock stayed taken",
    "stuck": "stuck: the most in a row that left frames in the WAL and got no further",
    "share of time": "share of time: of the window, in checkpoints",
    "replace p99.9 ms": "p99.9: 99.9% of the operations were as fast or faster",
    "largest WAL MB": "largest WAL: of one file, as a process without a connection saw it",
}


def words(checkpointing: Checkpointing) -> str:
    """Return what ran beside the load: "beside the load a RESTART checkpoint every 20ms"."""
    told = []
    if checkpointing.mode != "none":
        told.append(
            f"a {checkpointing.mode.upper()} checkpoint every {format_duration(checkpointing.interval_s)}"
        )
    if checkpointing.pinned_reader:
        told.append("a reader that stays in its snapshot")
    return f"beside the load {' and '.join(told)}"


def blocks(group: Group) -> Iterator[Block]:
    """Yield what the checkpoints and the WALs did; nothing where nobody looked."""
    if any(run.case.spec.checkpointing for run, _ in group.measured()):
        table = table_of(rows_of(group), (*apart_columns(group), *_FIGURES), _LEAVING)
        yield table
        yield Paragraph(f"{'; '.join(text for name, text in _MEANINGS.items() if name in table.headers)}.")
    if lines := tuple(picture(group)):
        yield Picture(lines)


def _of_wal(figure: Callable[[Wal], str | None]) -> Cell:
    def cell(row: Row) -> str | None:
        wal = wal_of(row.run.case, row.trial) if row.trial else None
        return None if wal is None else figure(wal)

    return cell


def _replace_p999(row: Row) -> str | None:
    latency = row.trial.latency.get("replace") if row.trial else None
    if latency is None or not latency.count:
        return None
    # Too few operations have none; the others of its column may have.
    return ms_cell(latency.p999_ns) or MISSING


def _megabytes(count: int | None) -> str | None:
    return None if count is None else count_cell(count / 1e6)


_LEAVING = ("share of time", "longest ms")
_FIGURES = (
    FILES,
    PROCESSES,
    Figure(Column("checkpoints", ("check-", "points")), _of_wal(lambda wal: count_cell(wal.checkpoints))),
    Figure(Column("busy", ("", "busy")), _of_wal(lambda wal: count_cell(wal.busy))),
    Figure(Column("stuck", ("", "stuck")), _of_wal(lambda wal: count_cell(wal.stuck))),
    Figure(Column("longest ms", ("longest", "ms")), _of_wal(lambda wal: ms_cell(wal.longest_ns))),
    Figure(Column("share of time", ("share", "of time")), _of_wal(lambda wal: share_cell(wal.share))),
    Figure(Column("replace p99.9 ms", ("replace", "p99.9 ms")), _replace_p999),
    Figure(
        Column("largest WAL MB", ("largest", "WAL MB")), _of_wal(lambda wal: _megabytes(wal.largest_bytes))
    ),
)


# What became of the WALs of the main job, where somebody watched them.


STARVED = 3
"""So many checkpoints in a row that got no further are no accident."""


def checkpoints(group: Group) -> Iterator[Finding]:
    """Yield what became of the WALs of a group, where somebody watched them."""
    checkpointing = group.case.spec.checkpointing
    seen = [_Seen(run.case, wal) for run, trial in group.measured() if (wal := wal_of(run.case, trial))]
    if checkpointing is None or not seen:
        return
    starved = [one for one in seen if (one.wal.stuck or 0) >= STARVED]
    yield from _starved(checkpointing, starved)
    yield from _busy(checkpointing, seen)
    yield from _large(checkpointing, [one for one in seen if one.wal.is_large], bool(starved))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A case, and what was seen of its WAL."""

    case: Case
    wal: Wal


def _starved(checkpointing: Checkpointing, seen: Sequence[_Seen]) -> Iterator[Finding]:
    if seen:
        most = max(one.wal.stuck or 0 for one in seen)
        yield Finding(
            "checkpoint-starvation", where=_where(seen), stuck=most, pinned=checkpointing.pinned_reader
        )


def _busy(checkpointing: Checkpointing, seen: Sequence[_Seen]) -> Iterator[Finding]:
    busy = [one for one in seen if one.wal.busy]
    if not busy or checkpointing.mode == "passive":
        return
    yield Finding(
        "busy-checkpoints",
        made=sum(one.wal.checkpoints or 0 for one in busy),
        mode=checkpointing.mode.upper(),
        busy=sum(one.wal.busy or 0 for one in busy),
        where=_where(busy),
        longest_ns=max(one.wal.longest_ns or 0 for one in busy),
    )


def _large(checkpointing: Checkpointing, seen: Sequence[_Seen], starved: bool) -> Iterator[Finding]:
    if not seen:
        return
    snapshot = starved or checkpointing.pinned_reader
    yield Finding(
        "large-wal",
        largest=max(one.wal.largest_bytes or 0 for one in seen),
        where=_where(seen),
        times=LARGE,
        frames=autocheckpoint(seen[0].case),
        snapshot=snapshot,
        passive=not snapshot and checkpointing.mode == "passive",
        seldom=not snapshot and checkpointing.mode != "passive",
        stays=checkpointing.mode != "truncate",
    )


def _where(seen: Sequence[_Seen]) -> str:
    return places(one.case for one in seen)
