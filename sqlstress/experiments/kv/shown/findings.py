"""What the main job says: how the throughput grows with processes and files, and what checkpoints did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Point
from sqlstress.analysis.wording import (
    duration,
    files,
    listing,
    percent,
    places,
    processes,
    rounded,
    size,
    times,
    whole,
)
from sqlstress.experiments.kv.shown.wal import LARGE, Wal, autocheckpoint, wal_of
from sqlstress.experiments.kv.spec import Checkpointing
from sqlstress.report.case import Case

NEAR_BEST = 0.95
"""A concurrency that reaches this share of its layout's best gets what there is to get."""

Curve = dict[int, float]
"""TPS by concurrency, in ascending order of concurrency."""


def throughput(group: Group) -> Iterator[Finding]:
    """Yield what the totals of a group say; nothing when only one point was measured."""
    points = group.points()
    if len(points) < 2:
        return
    curves = _curves(points)
    yield from _best(group, points)
    yield from _plateau(curves)
    yield from _still_rising(curves)
    yield from _layouts(curves)


def _curves(points: tuple[Point, ...]) -> dict[int, Curve]:
    curves: dict[int, Curve] = {}
    for point in sorted(points, key=lambda point: (point.files, point.processes)):
        curve = curves.setdefault(point.files, {})
        curve[point.processes] = max(point.tps, curve.get(point.processes, 0.0))
    return curves


def _best(group: Group, points: tuple[Point, ...]) -> Iterator[Finding]:
    best = max(points, key=lambda point: point.tps)
    where = f"{processes(best.processes)} on {files(best.files)}"
    yield Finding("best", f"Best: {rounded(best.tps)} {group.unit} a second, with {where}.")


def _enough(curve: Curve) -> int:
    """Return the smallest concurrency that comes near the best of its layout."""
    best = max(curve.values())
    return next(count for count, tps in curve.items() if tps >= NEAR_BEST * best)


def _plateau(curves: dict[int, Curve]) -> Iterator[Finding]:
    stops = [
        f"after {processes(_enough(curve))} on {files(layout)}"
        for layout, curve in curves.items()
        if _enough(curve) < max(curve)
    ]
    if stops:
        near = percent(1 - NEAR_BEST)
        yield Finding(
            "plateau",
            f"Adding processes stopped helping {listing(stops)}: by then the total was within {near} "
            "of the best.",
        )


def _still_rising(curves: dict[int, Curve]) -> Iterator[Finding]:
    rising = [
        f"{processes(max(curve))} on {files(layout)}"
        for layout, curve in curves.items()
        if len(curve) > 1 and _enough(curve) == max(curve)
    ]
    if rising:
        yield Finding(
            "still-rising",
            f"The total still rose at the most that was measured, {listing(rising)}: "
            "try more with --concurrency.",
        )


def _layouts(curves: dict[int, Curve]) -> Iterator[Finding]:
    (base_files, base), *others = curves.items()
    compared = [text for layout, curve in others if (text := _against(base, layout, curve))]
    if compared:
        yield Finding("layouts", f"Compared with {files(base_files)}: {listing(compared)}.")


def _against(base: Curve, layout: int, curve: Curve) -> str | None:
    """Say how a layout compares at the largest concurrency that both have, and where it does so best."""
    ratios = {count: curve[count] / base[count] for count in curve if count in base}
    if not ratios:
        return None
    largest = max(ratios)
    highest = max(ratios, key=lambda count: ratios[count])
    text = f"{files(layout)} gave {times(ratios[largest])} the throughput at {processes(largest)}"
    if times(ratios[highest]) == times(ratios[largest]):
        return text
    return f"{text} ({times(ratios[highest])} at {highest}, the most)"


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
