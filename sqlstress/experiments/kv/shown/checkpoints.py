"""What became of the WALs of the main job, where somebody watched them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import (
    duration,
    places,
    size,
    whole,
)
from sqlstress.experiments.kv.shown.wal import LARGE, Wal, autocheckpoint, wal_of
from sqlstress.experiments.kv.spec import Checkpointing
from sqlstress.report.case import Case

STARVED = 3
"""So many checkpoints in a row that got no further are no accident."""


def checkpoints(group: Group) -> Iterator[Finding]:
    """Yield what became of the WALs of a group, where somebody watched them."""
    asked = group.case.spec.checkpointing
    seen = [_Seen(run.case, wal) for run, trial in group.measured() if (wal := wal_of(run.case, trial))]
    if asked is None or not seen:
        return
    starved = [one for one in seen if (one.wal.stuck or 0) >= STARVED]
    yield from _starved(asked, starved)
    yield from _busy(asked, seen)
    yield from _large(asked, [one for one in seen if one.wal.is_large], bool(starved))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A case, and what was seen of its WAL."""

    case: Case
    wal: Wal


def _starved(asked: Checkpointing, seen: Sequence[_Seen]) -> Iterator[Finding]:
    if seen:
        most = max(one.wal.stuck or 0 for one in seen)
        yield Finding(
            "checkpoint-starvation",
            f"Checkpoints starved at {_where(seen)}: up to {whole(most)} in a row left frames in the WAL and "
            f"got no further, whether SQLite answered busy or not. {_reader(asked)}",
        )


def _reader(asked: Checkpointing) -> str:
    if asked.pinned_reader:
        return "The pinned reader holds its snapshot; elsewhere, find who stays in a transaction."
    return "Somebody stays in a snapshot: find the long reader, and end its transaction sooner."


def _busy(asked: Checkpointing, seen: Sequence[_Seen]) -> Iterator[Finding]:
    busy = [one for one in seen if one.wal.busy]
    if not busy or asked.mode == "passive":
        return
    answered = whole(sum(one.wal.busy or 0 for one in busy))
    made = whole(sum(one.wal.checkpoints or 0 for one in busy))
    longest = duration(max(one.wal.longest_ns or 0 for one in busy))
    yield Finding(
        "busy-checkpoints",
        f"Of {made} {asked.mode.upper()} checkpoints {answered} answered busy at "
        f"{_where(busy)}, after up to {longest}: a reader was in the way, or the write lock taken. "
        "While such a checkpoint waits for a reader it holds that lock, and nobody can write.",
    )


def _large(asked: Checkpointing, seen: Sequence[_Seen], starved: bool) -> Iterator[Finding]:
    if not seen:
        return
    largest = size(max(one.wal.largest_bytes or 0 for one in seen))
    frames = whole(autocheckpoint(seen[0].case))
    told = [
        f"A WAL grew to {largest} at {_where(seen)}: over {LARGE} times the {frames} pages at which "
        "SQLite would checkpoint by itself.",
        _remedy(asked, starved),
    ]
    if asked.mode != "truncate":
        told.append("Only a TRUNCATE checkpoint or PRAGMA journal_size_limit makes the file small again.")
    yield Finding("large-wal", " ".join(told))


def _remedy(asked: Checkpointing, starved: bool) -> str:
    if starved or asked.pinned_reader:
        return "It can't begin anew while a snapshot stays open: find the long reader."
    if asked.mode == "passive":
        return "After PASSIVE it begins anew only if nobody has written meanwhile: use RESTART."
    return "Checkpoint more often (--checkpoint-interval)."


def _where(seen: Sequence[_Seen]) -> str:
    return places(one.case for one in seen)
