"""Who held a lock while somebody waited for it: waits of one process laid over the holds of the others.

Pure functions of the spans that the processes wrote down.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlstress.report.where import CHECKPOINT, COMMIT, READ, SYNC
from sqlstress.targets.sqlite.where import area
from sqlstress.targets.sqlite.where.area import Area, Span

BLOCKS = {area.WAIT_WRITE: area.HOLD_WRITE, area.WAIT_READ: area.HOLD_ALONE, area.WAIT_ALONE: area.HOLD_READ}
"""Kind of a wait → kind of the holds that it waits for."""


class Wait(NamedTuple):
    """A wait for a lock on a file."""

    span: Span
    kind: int
    file: int


class Blocked(NamedTuple):
    """A stretch of a wait in which another process held the lock."""

    process: int
    """That one."""
    what: str
    """What it did: commit, sync, checkpoint or read."""
    begin: int
    end: int


class Row:
    """Spans of one process that do not overlap, in the order of time."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.all = sorted(spans, key=lambda span: span.begin)
        self._begins = [span.begin for span in self.all]
        self._ends = [span.end for span in self.all]

    def over(self, begin: int, end: int) -> list[Span]:
        """Return those that have a part of a stretch of time, cut to it."""
        found = self.all[bisect_right(self._ends, begin) : bisect_left(self._begins, end)]
        return [Span(one.process, max(begin, one.begin), min(end, one.end)) for one in found]


class Seen:
    """All that the processes of a trial wrote down, by kind."""

    def __init__(self, areas: Sequence[Area]) -> None:
        holds: dict[tuple[int, int, int], list[Span]] = defaultdict(list)
        doings: dict[tuple[int, int], list[Span]] = defaultdict(list)
        self.waits: list[Wait] = []
        self.transactions: list[Wait] = []
        """As waits: with their file."""
        self.opens = max((one[area.OPENS] for one in areas), default=0)
        self.closes = max((one[area.CLOSES] for one in areas), default=0)
        self.complete_from = max((one.complete_from for one in areas), default=0)
        for one in areas:
            for begin, end, tag in one.spans():
                kind, file, span = tag & 0xFF, tag >> 8, Span(one.process, begin, end)
                if kind == area.TRANSACTION:
                    self.transactions.append(Wait(span, kind, file))
                elif kind in BLOCKS:
                    self.waits.append(Wait(span, kind, file))
                elif kind in (area.SYNC, area.CHECKPOINT):
                    doings[one.process, kind].append(span)
                else:
                    holds[kind, file, one.process].append(span)
        self._holds: dict[tuple[int, int], list[Row]] = defaultdict(list)
        self._holders: dict[tuple[int, int], list[int]] = defaultdict(list)
        for (kind, file, process), spans in holds.items():
            self._holds[kind, file].append(Row(spans))
            self._holders[kind, file].append(process)
        self._doings = {key: Row(spans) for key, spans in doings.items()}
        self._waits = defaultdict(list)
        for wait in self.waits:
            self._waits[wait.span.process].append(wait)

    def contradiction(self) -> bool:
        """Return whether two processes are told to have held at once what only one can hold."""
        for (kind, _), rows in self._holds.items():
            if kind == area.HOLD_READ:
                continue
            held = sorted((one.begin, one.end) for row in rows for one in row.all)
            if any(after[0] < before[1] for before, after in pairwise(held)):
                return True
        return False

    def waits_of(self, process: int, begin: int, end: int) -> list[Wait]:
        """Return the waits of a process that lie in a stretch of time."""
        return [one for one in self._waits[process] if begin <= one.span.begin and one.span.end <= end]

    def doing(self, process: int, kind: int, begin: int, end: int) -> list[Span]:
        """Return the syncs or the checkpoints of a process in a stretch of time."""
        row = self._doings.get((process, kind))
        return row.over(begin, end) if row else []

    def holds(self, wait: Wait) -> Iterator[Span]:
        """Yield what other processes held that a wait was for."""
        key = BLOCKS[wait.kind], wait.file
        for process, row in zip(self._holders[key], self._holds[key], strict=True):
            if process != wait.span.process:
                yield from row.over(wait.span.begin, wait.span.end)

    def blocked(self, wait: Wait) -> Iterator[Blocked]:
        """Yield the stretches of a wait in which others held the lock, and what they did in them.

        Where several held it at once, which only readers can, each has its own.
        """
        for held in self.holds(wait):
            if wait.kind == area.WAIT_ALONE:
                yield Blocked(held.process, READ, held.begin, held.end)
            else:
                yield from self._done(held)

    def _done(self, held: Span) -> Iterator[Blocked]:
        """Yield what the process did while it held the lock: a checkpoint's syncs are the checkpoint's."""
        process, at = held.process, held.begin
        found = [(one, CHECKPOINT) for one in self.doing(process, area.CHECKPOINT, held.begin, held.end)]
        found += [(one, SYNC) for one in self.doing(process, area.SYNC, held.begin, held.end)]
        for one, what in sorted(found, key=lambda each: (each[0].begin, each[1] != CHECKPOINT)):
            if one.end <= at:
                continue
            if one.begin > at:
                yield Blocked(process, COMMIT, at, one.begin)
            yield Blocked(process, what, max(at, one.begin), one.end)
            at = one.end
        if at < held.end:
            yield Blocked(process, COMMIT, at, held.end)


def covered_ns(stretches: Sequence[tuple[int, int]]) -> int:
    """Return how much time stretches cover that may overlap."""
    total, reached = 0, 0
    for begin, end in sorted(stretches):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total
