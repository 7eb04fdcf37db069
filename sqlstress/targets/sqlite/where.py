"""All that is told of a trial's time: pure functions of the words that its processes left."""

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
    PARTS,
    PROCESSOR,
    READ,
    SQLITE,
    SYNC,
    WRITE,
    Held,
    Moment,
    Slowest,
    Where,
    WorkerResult,
)
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.sqlite import shim as recording
from sqlstress.targets.sqlite.shim import Area, Span

# Who held a lock while somebody waited for it: waits of one process laid over the holds of the others.


BLOCKS = {
    recording.WAIT_WRITE: recording.HOLD_WRITE,
    recording.WAIT_READ: recording.HOLD_ALONE,
    recording.WAIT_ALONE: recording.HOLD_READ,
}
"""Kind of a wait → kind of the holds that it waits for."""
_DOINGS = {recording.SYNC: SYNC, recording.CHECKPOINT: CHECKPOINT}


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
        spans = self.all[bisect_right(self._ends, begin) : bisect_left(self._begins, end)]
        return [span._replace(begin=max(begin, span.begin), end=min(end, span.end)) for span in spans]


class Seen:
    """All that the processes of a trial wrote down, by kind."""

    def __init__(self, areas: Sequence[Area]) -> None:
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
                spans[span.kind, 0 if span.kind in _DOINGS else span.file, span.process].append(span)
        self._rows: dict[tuple[int, int], dict[int, Row]] = defaultdict(dict)
        """By kind and file, then by process; of syncs and checkpoints the file is left out."""
        for (kind, file, process), of_process in spans.items():
            self._rows[kind, file][process] = Row(of_process)
        self._waits = defaultdict(list)
        for wait in self.waits:
            self._waits[wait.process].append(wait)

    def contradiction(self) -> bool:
        """Return whether two processes are told to have held at once what only one can hold."""
        for (kind, _), rows in self._rows.items():
            if kind in (recording.HOLD_WRITE, recording.HOLD_ALONE):
                held = sorted((span.begin, span.end) for row in rows.values() for span in row.all)
                if any(after[0] < before[1] for before, after in pairwise(held)):
                    return True
        return False

    def waits_of(self, process: int, begin: int, end: int) -> list[Span]:
        return [wait for wait in self._waits[process] if begin <= wait.begin and wait.end <= end]

    def doing(self, process: int, kind: int, begin: int, end: int) -> list[Span]:
        """Return the syncs or the checkpoints of a process in a stretch of time."""
        row = self._rows[kind, 0].get(process)
        return row.over(begin, end) if row else []

    def holds(self, wait: Span) -> Iterator[Span]:
        """Yield what other processes held that a wait was for."""
        for process, row in self._rows[BLOCKS[wait.kind], wait.file].items():
            if process != wait.process:
                yield from row.over(wait.begin, wait.end)

    def blocked(self, wait: Span) -> Iterator[Blocked]:
        """Yield the stretches of a wait in which others held the lock, and what they did in them.

        Where several held it at once, which only readers can, each has its own. A checkpoint's syncs are
        the checkpoint's.
        """
        for process, begin, end, *_ in self.holds(wait):
            if wait.kind == recording.WAIT_ALONE:
                yield Blocked(process, READ, begin, end)
                continue
            at = begin
            doings = [
                (span.begin, kind != recording.CHECKPOINT, span.end, what)
                for kind, what in _DOINGS.items()
                for span in self.doing(process, kind, begin, end)
            ]
            for from_, _, to, what in sorted(doings):
                if to <= at:
                    continue
                if from_ > at:
                    yield Blocked(process, COMMIT, at, from_)
                yield Blocked(process, what, max(at, from_), to)
                at = to
            if at < end:
                yield Blocked(process, COMMIT, at, end)


def covered_ns(stretches: Iterable[Span | Blocked]) -> int:
    total, reached = 0, 0
    for begin, end in sorted((stretch.begin, stretch.end) for stretch in stretches):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


# The slowest operations: what they waited for, who held it, and a picture of the worst one.


FEWEST = 100
"""Operations of which 1% can be told."""
MOST_HOLDERS = 8
MOST_ROWS = 12
_STEPS = 300
"""What of the picture is narrower than so many parts of it is drawn together with what lies beside it."""
WAIT = "wait"
"""What a span of a moment can be beside commit, sync, checkpoint and read."""


def slowest(seen: Seen, operations: Sequence[Span]) -> Slowest | None:
    """Return what the slowest 1% of operations waited for; None of too few. The slowest comes first."""
    if len(operations) < FEWEST:
        return None
    chosen = operations[: -(-len(operations) // 100)]
    parts: Counter[str] = Counter()
    holders: Counter[tuple[int, str]] = Counter()
    for operation in chosen:
        _add(seen, operation, parts, holders)
    behind: Counter[str] = Counter()
    for (_, what), ns in holders.items():
        behind[what] += ns
    return Slowest(
        operations=len(chosen),
        of=len(operations),
        fastest_ns=chosen[-1].ns,
        total_ns=sum(operation.ns for operation in chosen),
        parts=dict(parts),
        behind=dict(behind),
        held_by=tuple(Held(*key, ns) for key, ns in holders.most_common(MOST_HOLDERS)),
    )


def _add(seen: Seen, operation: Span, parts: Counter[str], holders: Counter[tuple[int, str]]) -> None:
    process, begin, end, *_ = operation
    waited = held = 0
    for wait in seen.waits_of(process, begin, end):
        blocked = list(seen.blocked(wait))
        waited += wait.ns
        held += covered_ns(blocked)
        for stretch in blocked:
            holders[stretch.process, stretch.what] += stretch.end - stretch.begin
    checkpoint = sum(span.ns for span in seen.doing(process, recording.CHECKPOINT, begin, end))
    sync = sum(
        span.ns
        for span in seen.doing(process, recording.SYNC, begin, end)
        if not seen.doing(process, recording.CHECKPOINT, span.begin, span.end)
    )
    own = max(0, end - begin - waited - checkpoint - sync)
    parts.update({HELD: held, FREE: waited - held, CHECKPOINT: checkpoint, SYNC: sync, OWN: own})


def moment(seen: Seen, worst: Span, processes: int) -> Moment:
    """Return an operation with what all processes did on its file meanwhile."""
    process, begin, end, *_ = worst
    rows: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for what in _everything(seen, worst, processes):
        rows[what.process, what.what].append((max(0, what.begin - begin), min(end, what.end) - begin))
    gap = (end - begin) // _STEPS
    spans = [(*key, *stretch) for key, stretches in rows.items() for stretch in _joined(stretches, gap)]
    # Whose rows are drawn: whose operation it is, and those who did the most.
    busy: Counter[int] = Counter()
    for other, doing, low, high in spans:
        busy[other] += (high - low) * (doing != WAIT) + 1
    shown = {process, *(other for other, _ in busy.most_common(MOST_ROWS - 1))}
    drawn = tuple(sorted(span for span in spans if span[0] in shown))
    return Moment(process, begin - seen.opens, end - begin, drawn)


def _everything(seen: Seen, worst: Span, processes: int) -> Iterator[Blocked]:
    """Yield what each process did on the file of an operation while that lasted."""
    _, begin, end, *_ = worst
    for wait in seen.waits:
        if wait.file == worst.file and wait.begin < end and wait.end > begin:
            yield Blocked(wait.process, WAIT, wait.begin, wait.end)
    for kind in BLOCKS:
        # A wait of nobody sees the holds of all.
        yield from seen.blocked(Span(0, begin, end, kind, worst.file))
    for number in range(1, processes + 1):
        for span in seen.doing(number, recording.CHECKPOINT, begin, end):
            yield Blocked(number, CHECKPOINT, span.begin, span.end)


def _joined(stretches: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Return stretches, those that lie no farther from each other than a gap as one."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(stretches):
        if joined and low - joined[-1][1] <= gap:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return joined


# How the workers' time divides.


_WAIT, _INSIDE = "wait", "inside"
"""Parts that are divided further: waiting for locks; SQLite's own work with the binding."""
_LOOKED_AT = {
    _WAIT: (recording.WAITS_SEEN, recording.WAITS_PROCESSOR),
    SYNC: (recording.SYNCS_SEEN, recording.SYNCS_PROCESSOR),
    CHECKPOINT: (recording.CHECKPOINTS_SEEN, recording.CHECKPOINTS_PROCESSOR),
}
"""What of some kinds of stretches was waiting for a processor, by samples of them."""


def account(words: Any, processes: int, workers: Sequence[WorkerResult]) -> Where | None:
    """Return where the workers' time went; None where none came to its end, or they contradict each other.

    `words` are those of so many processes: the workers, and those beside them, who hold locks too.
    """
    areas = recording.areas(words, processes)
    whole = [worker for worker in workers if worker.error is None and areas[worker.worker - 1].window_ns]
    seen = Seen(areas)
    if not whole or seen.contradiction():
        return None
    parts = [
        split(
            areas[worker.worker - 1],
            round(worker.harness_share * worker.seconds * NS_PER_S),
            held_share(seen, worker.worker),
        )
        for worker in whole
    ]
    # The workers' operations of which all is known, the slowest first.
    operations = sorted(
        (
            operation
            for operation in seen.transactions
            if operation.process <= len(workers) and operation.begin >= seen.complete_from
        ),
        key=lambda operation: -operation.ns,
    )
    common = [name for name in PARTS if all(name in part for part in parts)]
    return Where(
        time_ns=sum(areas[worker.worker - 1].window_ns for worker in whole),
        parts={name: sum(part[name] for part in parts) for name in common},
        told=min(1.0, (seen.closes - seen.complete_from) / max(1, seen.closes - seen.opens)),
        pending_ns=_pending_ns(seen, areas[: len(workers)]),
        slowest=slowest(seen, operations),
        moment=moment(seen, operations[0], processes) if operations else None,
    )


def split(area: Area, harness_ns: int, held_share: float) -> dict[str, int]:
    """Return where a worker's window went, part by part in ns: they add up to it.

    `held_share` is the share of its waits for locks during which another process held them.
    """
    parts = {_WAIT: area[recording.WAITING], CHECKPOINT: area[recording.CHECKPOINTING]}
    parts |= {SYNC: area.syncing_ns, WRITE: area[recording.WRITING]}
    left = max(0, area.window_ns - sum(parts.values()))
    harness = min(harness_ns, left)
    parts |= {_INSIDE: left - harness, HARNESS: harness}
    if area[recording.PROCESSOR] >= 0:
        parts = _without_processor(area, parts)
    wait, inside = parts.pop(_WAIT), parts.pop(_INSIDE)
    held = round(wait * held_share)
    sqlite = min(area[recording.STATEMENTS_NS] * recording.EVERY, inside)
    parts |= {HELD: held, FREE: wait - held, SQLITE: sqlite, BINDING: inside - sqlite}
    return {name: parts[name] for name in PARTS if name in parts}


def _without_processor(area: Area, parts: Mapping[str, int]) -> dict[str, int]:
    """Take out of each part what was waiting for a processor in it.

    Where a process sleeps, samples say how much. All that they don't was in what keeps a processor busy, in
    each as much as it is long.
    """
    looked_ns = area[recording.TO] - area[recording.FROM]
    waited = area[recording.PROCESSOR] * area.window_ns / looked_ns if looked_ns > 0 else 0.0
    in_part = {}
    for name, (seen, processor) in _LOOKED_AT.items():
        share = area[processor] / area[seen] if area[seen] else 0.0
        in_part[name] = min(1.0, share) * parts[name]
    busy = {name: ns for name, ns in parts.items() if name not in _LOOKED_AT}
    rest = min(max(0.0, waited - sum(in_part.values())), sum(busy.values()))
    for name, ns in busy.items():
        in_part[name] = rest * ns / sum(busy.values()) if ns else 0.0
    taken = {name: round(ns) for name, ns in in_part.items()}
    return {name: ns - taken[name] for name, ns in parts.items()} | {PROCESSOR: sum(taken.values())}


def held_share(seen: Seen, process: int) -> float:
    """Return which share of a worker's waits for locks was while another process held them."""
    total = held = 0
    for wait in seen.waits:
        begin, end = max(wait.begin, seen.opens), min(wait.end, seen.closes)
        if wait.process != process or begin < seen.complete_from or end <= begin:
            continue
        total += end - begin
        held += covered_ns(seen.holds(wait._replace(begin=begin, end=end)))
    return held / total if total else 0.0


def _pending_ns(seen: Seen, workers: Sequence[Area]) -> int:
    """Return the longest wait that went on when the window closed; one of a worker that died never ended."""
    numbers = {area.process for area in workers}
    waits = (wait for wait in seen.waits if wait.process in numbers)
    begun = [wait.begin for wait in waits if wait.end > seen.closes]
    begun += [since for area in workers if (since := area[recording.PENDING])]
    return max(0, seen.closes - min(begun, default=seen.closes))
