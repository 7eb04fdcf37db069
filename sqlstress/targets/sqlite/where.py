"""Analysis of the times that a trial's processes recorded in shared memory, for `--where`.
A span is a period of one activity of a process, such as a sync, or a wait for or hold of a lock. A span has a
begin and an end, in ns, and the number of the process: workers count from 1.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from sqlstress.report.results import (
    BINDING,
    CHECKPOINT,
    COMMIT,
    FREE,
    HARNESS,
    HELD,
    OWN,
    PROCESSOR,
    READ,
    SQLITE,
    SYNC,
    TIME_PARTS,
    WRITE,
    Held,
    Moment,
    Slowest,
    Where,
    WorkerResult,
)
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.sqlite import shim as recording
from sqlstress.targets.sqlite.shim import Span, SpanArea

BLOCKS = {
    recording.WAIT_WRITE: recording.HOLD_WRITE,
    recording.WAIT_READ: recording.HOLD_ALONE,
    recording.WAIT_ALONE: recording.HOLD_READ,
}
"""Kind of hold that causes a wait, by kind of wait.

For example, WAIT_ALONE is a wait for a lock that excludes all readers, so that a reader's hold causes it.
"""
_ACTIVITIES = {recording.SYNC: SYNC, recording.CHECKPOINT: CHECKPOINT}


class Blocked(NamedTuple):
    """A part of a process's wait for a lock in which another process held the lock. Times are in ns."""

    process: int
    """Number of the process that held the lock."""
    what: str
    """Activity of the process that held the lock: commit, sync, checkpoint or read."""
    begin: int
    end: int


class Timeline:
    """Spans of one kind of one process, sorted and without overlaps, to find the spans in an interval."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.all = sorted(spans, key=lambda span: span.begin)
        self._begins = [span.begin for span in self.all]
        self._ends = [span.end for span in self.all]

    def overlapping(self, begin: int, end: int) -> list[Span]:
        """Return the spans that overlap the interval from `begin` to `end`, clipped to the interval."""
        spans = self.all[bisect_right(self._ends, begin) : bisect_left(self._begins, end)]
        return [span._replace(begin=max(begin, span.begin), end=min(end, span.end)) for span in spans]


class TrialSpans:
    """All spans of a trial, to find the cause of each wait. `account` creates the object."""

    def __init__(self, areas: Sequence[SpanArea]) -> None:
        spans: dict[tuple[int, int, int], list[Span]] = defaultdict(list)
        self.waits: list[Span] = []
        self.transactions: list[Span] = []
        self.opens = max((area[recording.OPENS] for area in areas), default=0)
        self.closes = max((area[recording.CLOSES] for area in areas), default=0)
        self.complete_from = max((area.complete_from for area in areas), default=0)
        for span in (span for area in areas for span in area.spans()):
            if span.kind == recording.TRANSACTION:
                self.transactions.append(span)
            elif span.kind in BLOCKS:
                self.waits.append(span)
            else:
                spans[span.kind, 0 if span.kind in _ACTIVITIES else span.file, span.process].append(span)
        self._rows: dict[tuple[int, int], dict[int, Timeline]] = defaultdict(dict)
        """Spans by (kind, file), then by process, such as `_rows[SYNC, 0][1]`. File 0: syncs, checkpoints."""
        for (kind, file, process), process_spans in spans.items():
            self._rows[kind, file][process] = Timeline(process_spans)
        self._waits = defaultdict(list)
        for wait in self.waits:
            self._waits[wait.process].append(wait)

    def contradiction(self) -> bool:
        """Return whether the spans are wrong: two processes held an exclusive lock at the same time."""
        for (kind, _), rows in self._rows.items():
            if kind in (recording.HOLD_WRITE, recording.HOLD_ALONE):
                holds = sorted((span.begin, span.end) for row in rows.values() for span in row.all)
                if any(second[0] < first[1] for first, second in pairwise(holds)):
                    return True
        return False

    def waits_of(self, process: int, begin: int, end: int) -> list[Span]:
        """Return the waits for locks of a process that lie between `begin` and `end`."""
        return [wait for wait in self._waits[process] if begin <= wait.begin and wait.end <= end]

    def activities(self, process: int, kind: int, begin: int, end: int) -> list[Span]:
        """Return a process's syncs or checkpoints (`kind`), clipped to the time from `begin` to `end`."""
        row = self._rows[kind, 0].get(process)
        return row.overlapping(begin, end) if row else []

    def holds(self, wait: Span) -> Iterator[Span]:
        """Yield the spans during `wait` in which other processes held the awaited lock."""
        for process, row in self._rows[BLOCKS[wait.kind], wait.file].items():
            if process != wait.process:
                yield from row.overlapping(wait.begin, wait.end)

    def blocked(self, wait: Span) -> Iterator[Blocked]:
        """Yield the parts of a wait in which other processes held the awaited lock, with their activities.

        For example, if process 2 held the lock for 9 ms and synced for 8 ms of them, yield the parts "commit"
        (1 ms) and "sync" (8 ms). If several readers hold the lock at once, yield a part for each.
        """
        for process, begin, end, *_ in self.holds(wait):
            if wait.kind == recording.WAIT_ALONE:
                yield Blocked(process, READ, begin, end)
                continue
            covered_to = begin
            # A sync inside a checkpoint counts as checkpoint. Therefore sort a checkpoint before a sync that
            # begins at the same time.
            activities = [
                (span.begin, kind != recording.CHECKPOINT, span.end, activity)
                for kind, activity in _ACTIVITIES.items()
                for span in self.activities(process, kind, begin, end)
            ]
            for from_, _, to, activity in sorted(activities):
                if to <= covered_to:
                    continue
                if from_ > covered_to:
                    yield Blocked(process, COMMIT, covered_to, from_)
                yield Blocked(process, activity, max(covered_to, from_), to)
                covered_to = to
            if covered_to < end:
                yield Blocked(process, COMMIT, covered_to, end)


def covered_ns(stretches: Iterable[Span | Blocked]) -> int:
    """Return the total length of intervals, in ns. Overlaps count only once."""
    total, covered_to = 0, 0
    for begin, end in sorted((stretch.begin, stretch.end) for stretch in stretches):
        total += max(0, end - max(begin, covered_to))
        covered_to = max(covered_to, end)
    return total


MIN_OPERATIONS = 100
"""Minimum number of operations for `slowest`: 1% of 100 operations is one operation."""
MAX_HOLDERS = 8
MAX_ROWS = 12
_STEPS = 300
"""Resolution of the report's `Moment`, which shows the activities during one slow operation.

Two equal activities of a process are joined if the gap between them is at most 1/300 of the operation's time.
"""
WAIT = "wait"
"""Name of a wait for a lock in the report's `Moment` (the activities during one slow operation)."""


def slowest(seen: TrialSpans, operations: Sequence[Span]) -> Slowest | None:
    """Return the time that the slowest 1% of operations spent on each activity, such as a sync.

    `operations` has the spans of all operations, slowest first. Return None for fewer than MIN_OPERATIONS.
    """
    if len(operations) < MIN_OPERATIONS:
        return None
    slow = operations[: -(-len(operations) // 100)]
    parts: Counter[str] = Counter()
    holders: Counter[tuple[int, str]] = Counter()
    for operation in slow:
        _add_causes(seen, operation, parts, holders)
    behind: Counter[str] = Counter()
    for (_, activity), ns in holders.items():
        behind[activity] += ns
    return Slowest(
        operations=len(slow),
        of=len(operations),
        fastest_ns=slow[-1].ns,
        total_ns=sum(operation.ns for operation in slow),
        parts=dict(parts),
        behind=dict(behind),
        held_by=tuple(Held(*key, ns) for key, ns in holders.most_common(MAX_HOLDERS)),
    )


def _add_causes(
    seen: TrialSpans, operation: Span, parts: Counter[str], holders: Counter[tuple[int, str]]
) -> None:
    """Add the times of one operation to the sums `parts` and `holders`, in ns.

    A key of `parts` is an activity of the operation, such as SYNC. A key of `holders` is a process whose lock
    blocked the operation, and the activity of this process, such as (2, "commit").
    """
    process, begin, end, *_ = operation
    waited_ns = held_ns = 0
    for wait in seen.waits_of(process, begin, end):
        blocked = list(seen.blocked(wait))
        waited_ns += wait.ns
        held_ns += covered_ns(blocked)
        for stretch in blocked:
            holders[stretch.process, stretch.what] += stretch.end - stretch.begin
    checkpoint_ns = sum(span.ns for span in seen.activities(process, recording.CHECKPOINT, begin, end))
    sync_ns = sum(
        span.ns
        for span in seen.activities(process, recording.SYNC, begin, end)
        if not seen.activities(process, recording.CHECKPOINT, span.begin, span.end)
    )
    own_ns = max(0, end - begin - waited_ns - checkpoint_ns - sync_ns)
    parts.update(
        {HELD: held_ns, FREE: waited_ns - held_ns, CHECKPOINT: checkpoint_ns, SYNC: sync_ns, OWN: own_ns}
    )


def moment(seen: TrialSpans, worst: Span, processes: int) -> Moment:
    """Return the activities of processes during the operation `worst`.

    The result has the process of `worst` and the busiest other processes. `processes` is the number of all.
    """
    process, begin, end, *_ = worst
    rows: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for part in _all_activities(seen, worst, processes):
        rows[part.process, part.what].append((max(0, part.begin - begin), min(end, part.end) - begin))
    gap = (end - begin) // _STEPS
    spans = [(*key, *stretch) for key, stretches in rows.items() for stretch in _merge_close(stretches, gap)]
    busy: Counter[int] = Counter()
    for number, activity, low, high in spans:
        busy[number] += (high - low) * (activity != WAIT) + 1
    shown_processes = {process, *(number for number, _ in busy.most_common(MAX_ROWS - 1))}
    shown_spans = tuple(sorted(span for span in spans if span[0] in shown_processes))
    return Moment(process, begin - seen.opens, end - begin, shown_spans)


def _all_activities(seen: TrialSpans, worst: Span, processes: int) -> Iterator[Blocked]:
    """Yield the waits, holds of locks and checkpoints of all processes during the operation `worst`.

    Only locks on the database file of `worst` are included.
    """
    _, begin, end, *_ = worst
    for wait in seen.waits:
        if wait.file == worst.file and wait.begin < end and wait.end > begin:
            yield Blocked(wait.process, WAIT, wait.begin, wait.end)
    for kind in BLOCKS:
        # A wait of process 0, which does not exist, yields every process that held the lock.
        yield from seen.blocked(Span(0, begin, end, kind, worst.file))
    for number in range(1, processes + 1):
        for span in seen.activities(number, recording.CHECKPOINT, begin, end):
            yield Blocked(number, CHECKPOINT, span.begin, span.end)


def _merge_close(stretches: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(stretches):
        if merged and low - merged[-1][1] <= gap:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged


_WAIT, _INSIDE = "wait", "inside"
"""Parts of a worker's time that `split` divides further.

_WAIT is the time of waits for locks. _INSIDE is the time of work in SQLite and its driver.
"""
_SAMPLED = {
    _WAIT: (recording.WAITS_SEEN, recording.WAITS_PROCESSOR),
    SYNC: (recording.SYNCS_SEEN, recording.SYNCS_PROCESSOR),
    CHECKPOINT: (recording.CHECKPOINTS_SEEN, recording.CHECKPOINTS_PROCESSOR),
}
"""For each activity, the indices of two times in a `SpanArea` (a process's part of the shared memory).

The first is the total time of samples, the second is how long the process waited for a processor in them.

For example, with 100 ms and 5 ms for syncs, 5% of the time of all syncs counts as waits for a processor.
"""


def account(words: Any, processes: int, workers: Sequence[WorkerResult]) -> Where | None:
    """Return the time that the workers spent on each activity, such as waits for locks, in ns.

    `words` is the shared memory of `processes` processes: workers, then additional processes. Return None if
    no worker finished, or if spans contradict each other.
    """
    areas = recording.areas(words, processes)
    complete = [worker for worker in workers if worker.error is None and areas[worker.worker - 1].window_ns]
    seen = TrialSpans(areas)
    if not complete or seen.contradiction():
        return None
    parts = [
        split(
            areas[worker.worker - 1],
            round(worker.harness_share * worker.seconds * NS_PER_S),
            held_share(seen, worker.worker),
        )
        for worker in complete
    ]
    # Leave out an operation if a span from it may have been overwritten in the ring.
    operations = sorted(
        (
            operation
            for operation in seen.transactions
            if operation.process <= len(workers) and operation.begin >= seen.complete_from
        ),
        key=lambda operation: -operation.ns,
    )
    common = [name for name in TIME_PARTS if all(name in part for part in parts)]
    return Where(
        time_ns=sum(areas[worker.worker - 1].window_ns for worker in complete),
        parts={name: sum(part[name] for part in parts) for name in common},
        told=min(1.0, (seen.closes - seen.complete_from) / max(1, seen.closes - seen.opens)),
        pending_ns=_pending_ns(seen, areas[: len(workers)]),
        slowest=slowest(seen, operations),
        moment=moment(seen, operations[0], processes) if operations else None,
    )


def split(area: SpanArea, harness_ns: int, held_share: float) -> dict[str, int]:
    """Return the time that a worker spent on each activity, such as {SYNC: 9_000, HELD: 500, …}, in ns.

    The sum is the length of the measurement. `harness_ns` is the time of sqlstress's own code. `held_share`
    (0 to 1) is the share of the waits for locks in which another process held the lock.
    """
    parts = {_WAIT: area[recording.WAITING], CHECKPOINT: area[recording.CHECKPOINTING]}
    parts |= {SYNC: area.syncing_ns, WRITE: area[recording.WRITING]}
    left = max(0, area.window_ns - sum(parts.values()))
    harness = min(harness_ns, left)
    parts |= {_INSIDE: left - harness, HARNESS: harness}
    if area[recording.PROCESSOR] >= 0:
        parts = _split_off_processor_waits(area, parts)
    wait, inside = parts.pop(_WAIT), parts.pop(_INSIDE)
    held = round(wait * held_share)
    sqlite = min(area[recording.STATEMENTS_NS] * recording.STATEMENTS_PER_SAMPLE, inside)
    parts |= {HELD: held, FREE: wait - held, SQLITE: sqlite, BINDING: inside - sqlite}
    return {name: parts[name] for name in TIME_PARTS if name in parts}


def _split_off_processor_waits(area: SpanArea, parts: Mapping[str, int]) -> dict[str, int]:
    """Move the time in which the worker waited for a processor from all parts to a new part PROCESSOR.

    `parts` has ns by activity. For waits, syncs and checkpoints, samples show the share to move (see
    _SAMPLED). The rest of the processor waits is moved from the other parts, in proportion to their lengths.
    """
    observed_ns = area[recording.TO] - area[recording.FROM]
    waited_ns = area[recording.PROCESSOR] * area.window_ns / observed_ns if observed_ns > 0 else 0.0
    waited_in = {}
    for name, (sampled_word, processor_word) in _SAMPLED.items():
        share = area[processor_word] / area[sampled_word] if area[sampled_word] else 0.0
        waited_in[name] = min(1.0, share) * parts[name]
    busy = {name: ns for name, ns in parts.items() if name not in _SAMPLED}
    rest = min(max(0.0, waited_ns - sum(waited_in.values())), sum(busy.values()))
    for name, ns in busy.items():
        waited_in[name] = rest * ns / sum(busy.values()) if ns else 0.0
    rounded = {name: round(ns) for name, ns in waited_in.items()}
    return {name: ns - rounded[name] for name, ns in parts.items()} | {PROCESSOR: sum(rounded.values())}


def held_share(seen: TrialSpans, process: int) -> float:
    """Return the share (0 to 1) of a worker's waiting time in which another process held the lock."""
    total_ns = held_ns = 0
    for wait in seen.waits:
        begin, end = max(wait.begin, seen.opens), min(wait.end, seen.closes)
        if wait.process != process or begin < seen.complete_from or end <= begin:
            continue
        total_ns += end - begin
        held_ns += covered_ns(seen.holds(wait._replace(begin=begin, end=end)))
    return held_ns / total_ns if total_ns else 0.0


def _pending_ns(seen: TrialSpans, workers: Sequence[SpanArea]) -> int:
    """Return the longest unfinished wait for a lock at the end of the measurement, in ns, or 0."""
    # The end of such a wait is not used, because the wait of a worker that died has no end.
    numbers = {area.process for area in workers}
    waits = (wait for wait in seen.waits if wait.process in numbers)
    begins = [wait.begin for wait in waits if wait.end > seen.closes]
    begins += [since for area in workers if (since := area[recording.PENDING])]
    return max(0, seen.closes - min(begins, default=seen.closes))
