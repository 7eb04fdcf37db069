"""Rounds that are smaller than a given one: candidates for the smallest that still fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from sqlstress.experiments.hunt.spec import Round, Schedule, counts
from sqlstress.report.case import Case

SETTINGS = ("synchronous", "wal_autocheckpoint", "page_size", "cache_size", "mmap_size")
_USUAL = {one.name: one.default for one in fields(Round)}
_ASIDE = ("readers", "holders", "reopen", "churn", "filler", "batch", "keys")
"""What a round has beside writers, checkpointers and pauses."""
_PAUSES = {
    "writer_pause": ("writers",),
    "reader_pause": ("readers", "holders"),
    "checkpointer_pause": ("checkpointers",),
}


def smaller(case: Case) -> Iterator[Case]:
    """Yield smaller rounds of the hunt's own load, those first that leave out most."""
    spec: Round = case.spec
    usual = {name: _USUAL[name] for name in _ASIDE}
    yield _with(_set(case, page_size=None, cache_size=None, mmap_size=None), **usual)
    yield _with(case, **usual)
    for name in ("writers", "checkpointers", "readers", "holders"):
        yield from (
            _with(case, **{name: count}) for count in _less(getattr(spec, name), int(name == "writers"))
        )
    for mode in spec.checkpoint if len(spec.checkpoint) > 1 else ():
        yield _with(case, checkpoint=(mode,))
    yield from (_with(case, **{name: 0}) for name in _PAUSES)
    yield from (_with(case, pause_at=points) for points in _parts(spec.pause_at))
    yield from (_with(case, **{name: usual[name]}) for name in _ASIDE)
    yield from (_set(case, **{name: None}) for name in SETTINGS if name != "synchronous")


def calmer(case: Case, schedule: Schedule) -> Iterator[tuple[Case, Schedule]]:
    """Yield smaller rounds of the user's own work: fewer processes, and fewer places to pause."""
    for count in _less(case.concurrency, 1):
        yield replace(case, concurrency=count), schedule
    if schedule.pause:
        yield case, replace(schedule, pause=0)
        yield from ((case, replace(schedule, pause_at=points)) for points in _parts(schedule.pause_at))


def _less(count: int, least: int) -> Iterator[int]:
    """Yield smaller counts, the smallest first."""
    yield from dict.fromkeys(one for one in (least, least + 1, count // 2, count - 1) if least <= one < count)


def _parts(points: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield halves of some points, and then what is left without a quarter of them."""
    if len(points) > 1:
        middle = len(points) // 2
        yield points[:middle]
        yield points[middle:]
    size = len(points) // 4
    for begin in range(0, len(points), size) if size else ():
        yield points[:begin] + points[begin + size :]


def _with(case: Case, **changes: Any) -> Case:
    spec = replace(case.spec, **changes)
    # Where nobody is of a role, nobody of it pauses.
    absent = {name: 0 for name, roles in _PAUSES.items() if not any(getattr(spec, role) for role in roles)}
    spec = replace(spec, **absent)
    return replace(case, concurrency=sum(counts(spec).values()), spec=spec)


def _set(case: Case, **changes: Any) -> Case:
    return replace(case, settings=replace(case.settings, **changes))
