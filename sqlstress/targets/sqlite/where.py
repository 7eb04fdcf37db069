"""All that is told of a trial: from the words that its processes left."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
from sqlstress.targets.sqlite import where_recording
from sqlstress.targets.sqlite.where_recording import Area, Span

# Who held a lock while somebody waited for it: waits of one process laid over the holds of the others.
#
# Pure functions of the spans that the processes wrote down.


BLOCKS = {
    where_recording.WAIT_WRITE: where_recording.HOLD_WRITE,
    where_recording.WAIT_READ: where_recording.HOLD_ALONE,
    where_recording.WAIT_ALONE: where_recording.HOLD_READ,
}
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
        self.opens = max((one[where_recording.OPENS] for one in areas), default=0)
        self.closes = max((one[where_recording.CLOSES] for one in areas), default=0)
        self.complete_from = max((one.complete_from for one in areas), default=0)
        for one in areas:
            for begin, end, tag in one.spans():
                kind, file, span = tag & 0xFF, tag >> 8, Span(one.process, begin, end)
                if kind == where_recording.TRANSACTION:
                    self.transactions.append(Wait(span, kind, file))
                elif kind in BLOCKS:
                    self.waits.append(Wait(span, kind, file))
                elif kind in (where_recording.SYNC, where_recording.CHECKPOINT):
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
            if kind == where_recording.HOLD_READ:
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
            if wait.kind == where_recording.WAIT_ALONE:
                yield Blocked(held.process, READ, held.begin, held.end)
            else:
                yield from self._done(held)

    def _done(self, held: Span) -> Iterator[Blocked]:
        """Yield what the process did while it held the lock: a checkpoint's syncs are the checkpoint's."""
        process, at = held.process, held.begin
        found = [
            (one, CHECKPOINT) for one in self.doing(process, where_recording.CHECKPOINT, held.begin, held.end)
        ]
        found += [(one, SYNC) for one in self.doing(process, where_recording.SYNC, held.begin, held.end)]
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


# The slowest operations: what they waited for, who held it, and a picture of the worst one.


FEWEST = 100
"""Operations of which 1% can be told."""
MOST_HOLDERS = 8
MOST_ROWS = 12
_STEPS = 300
"""What of the picture is narrower than so many parts of it is drawn together with what lies beside it."""
WAIT = "wait"


def transactions(seen: Seen, workers: int) -> list[Wait]:
    """Return the workers' operations of which all is known, the slowest first."""
    found = (
        one
        for one in seen.transactions
        if one.span.process <= workers and one.span.begin >= seen.complete_from
    )
    return sorted(found, key=lambda one: one.span.begin - one.span.end)


def slowest(seen: Seen, found: Sequence[Wait]) -> Slowest | None:
    """Return what the slowest 1% of operations waited for; None of too few."""
    if len(found) < FEWEST:
        return None
    chosen = found[: -(-len(found) // 100)]
    parts: Counter[str] = Counter()
    holders: Counter[tuple[int, str]] = Counter()
    for one in chosen:
        _add(seen, one, parts, holders)
    behind: Counter[str] = Counter()
    for (_, what), ns in holders.items():
        behind[what] += ns
    return Slowest(
        operations=len(chosen),
        of=len(found),
        fastest_ns=_length(chosen[-1].span),
        total_ns=sum(_length(one.span) for one in chosen),
        parts=dict(parts),
        behind=dict(behind),
        held_by=tuple(Held(*key, ns) for key, ns in holders.most_common(MOST_HOLDERS)),
    )


def _add(seen: Seen, one: Wait, parts: Counter[str], holders: Counter[tuple[int, str]]) -> None:
    process, begin, end = one.span
    waited = held = 0
    for wait in seen.waits_of(process, begin, end):
        blocked = list(seen.blocked(wait))
        waited += _length(wait.span)
        held += covered_ns([(each.begin, each.end) for each in blocked])
        for each in blocked:
            holders[each.process, each.what] += each.end - each.begin
    checkpoint = sum(map(_length, seen.doing(process, where_recording.CHECKPOINT, begin, end)))
    sync = sum(map(_length, _own_syncs(seen, process, begin, end)))
    own = max(0, end - begin - waited - checkpoint - sync)
    parts.update({HELD: held, FREE: waited - held, CHECKPOINT: checkpoint, SYNC: sync, OWN: own})


def _own_syncs(seen: Seen, process: int, begin: int, end: int) -> Iterator[Span]:
    """Yield the syncs of a process that are not its checkpoints'."""
    for sync in seen.doing(process, where_recording.SYNC, begin, end):
        if not seen.doing(process, where_recording.CHECKPOINT, sync.begin, sync.end):
            yield sync


def moment(seen: Seen, found: Sequence[Wait], processes: int) -> Moment | None:
    """Return the slowest operation with what all processes did on its file meanwhile; None without one."""
    if not found:
        return None
    worst = found[0]
    process, begin, end = worst.span
    rows: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for what in _everything(seen, worst, processes):
        rows[what.process, what.what].append((max(0, what.begin - begin), min(end, what.end) - begin))
    gap = (end - begin) // _STEPS
    spans = [(*key, *one) for key, own in rows.items() for one in _joined(own, gap)]
    shown = _shown(process, spans)
    return Moment(
        process,
        begin - seen.opens,
        end - begin,
        tuple(sorted(one for one in spans if one[0] in shown)),
    )


def _shown(process: int, spans: Sequence[tuple[int, str, int, int]]) -> set[int]:
    """Return whose rows are drawn: whose operation it is, and those who did the most."""
    busy: Counter[int] = Counter()
    for other, what, begin, end in spans:
        busy[other] += (end - begin) * (what != WAIT) + 1
    return {process, *(one for one, _ in busy.most_common(MOST_ROWS - 1))}


def _everything(seen: Seen, worst: Wait, processes: int) -> Iterator[Blocked]:
    """Yield what each process did on the file of an operation while that lasted."""
    _, begin, end = worst.span
    for wait in seen.waits:
        if wait.file == worst.file and wait.span.begin < end and wait.span.end > begin:
            yield Blocked(wait.span.process, WAIT, wait.span.begin, wait.span.end)
    for kind in BLOCKS:
        # A wait of nobody sees the holds of all.
        yield from seen.blocked(Wait(Span(0, begin, end), kind, worst.file))
    for number in range(1, processes + 1):
        for one in seen.doing(number, where_recording.CHECKPOINT, begin, end):
            yield Blocked(number, CHECKPOINT, one.begin, one.end)


def _joined(stretches: Sequence[tuple[int, int]], gap: int) -> Iterator[tuple[int, int]]:
    """Yield stretches, those that lie closer beside each other than a gap as one."""
    begin = reached = -1
    for low, high in sorted(stretches):
        if reached >= 0 and low - reached > gap:
            yield begin, reached
            begin = low
        begin = low if reached < 0 else begin
        reached = max(reached, high)
    if reached >= 0:
        yield begin, reached


def _length(span: Span) -> int:
    return span.end - span.begin


KINDS = (WAIT, COMMIT, SYNC, CHECKPOINT, READ)
"""What the spans of a moment can be."""


# How the workers' time divides: pure functions of what they wrote down.


_WAIT, _INSIDE = "wait", "inside"
"""Parts that are divided further: waiting for locks; SQLite's own work with the binding."""
_LOOKED_AT = {
    _WAIT: (where_recording.WAITS_SEEN, where_recording.WAITS_PROCESSOR),
    SYNC: (where_recording.SYNCS_SEEN, where_recording.SYNCS_PROCESSOR),
    CHECKPOINT: (where_recording.CHECKPOINTS_SEEN, where_recording.CHECKPOINTS_PROCESSOR),
}
"""What of some kinds of stretches was waiting for a processor, by samples of them."""


def split(own: Area, harness_ns: int, held_share: float) -> dict[str, int]:
    """Return where a worker's window went, part by part in ns: they add up to it.

    Of its waits for locks such a share was for those that another process held; it paused while it could
    have had them.
    """
    waiting = own[where_recording.WAITING] + own[where_recording.PAUSING]
    parts = {_WAIT: waiting, CHECKPOINT: own[where_recording.CHECKPOINTING]}
    parts |= {SYNC: own.syncing_ns, WRITE: own[where_recording.WRITING]}
    left = max(0, own.window_ns - sum(parts.values()))
    harness = min(harness_ns, left)
    parts |= {_INSIDE: left - harness, HARNESS: harness}
    if own[where_recording.PROCESSOR] >= 0:
        parts = _without_processor(own, parts)
    wait, inside = parts.pop(_WAIT), parts.pop(_INSIDE)
    held = round(wait * held_share * own[where_recording.WAITING] / max(1, waiting))
    sqlite = min(own[where_recording.STATEMENTS_NS] * where_recording.EVERY, inside)
    found = {**parts, HELD: held, FREE: wait - held, SQLITE: sqlite, BINDING: inside - sqlite}
    return {name: found[name] for name in PARTS if name in found}


def _without_processor(own: Area, parts: Mapping[str, int]) -> dict[str, int]:
    """Take out of each part what was waiting for a processor in it.

    Where a process sleeps, samples say how much. All that they don't was in what keeps a processor busy, in
    each as much as it is long.
    """
    looked_ns = own[where_recording.TO] - own[where_recording.FROM]
    waited = own[where_recording.PROCESSOR] * own.window_ns / looked_ns if looked_ns > 0 else 0.0
    in_part = {}
    for name, (seen, processor) in _LOOKED_AT.items():
        share = own[processor] / own[seen] if own[seen] else 0.0
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
        begin, end = max(wait.span.begin, seen.opens), min(wait.span.end, seen.closes)
        if wait.span.process != process or begin < seen.complete_from or end <= begin:
            continue
        cut = wait._replace(span=wait.span._replace(begin=begin, end=end))
        total += end - begin
        held += covered_ns([(one.begin, one.end) for one in seen.holds(cut)])
    return held / total if total else 0.0


def added(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the parts of several workers together; one that not all can tell is in none."""
    common = [name for name in PARTS if all(name in one for one in parts)]
    return {name: sum(one[name] for one in parts) for name in common} if parts else {}


def account(words: Any, processes: int, workers: Sequence[WorkerResult]) -> Where | None:
    """Return where the workers' time went; None where none came to its end, or they contradict each other.

    `words` are those of so many processes: the workers, and those beside them, who hold locks too.
    """
    areas = where_recording.areas(words, processes)
    told = [one for one in workers if one.error is None and areas[one.worker - 1].window_ns]
    if not told:
        return None
    seen = Seen(areas)
    if seen.contradiction():
        return None
    parts = [
        split(
            areas[one.worker - 1],
            round(one.harness_share * one.seconds * NS_PER_S),
            held_share(seen, one.worker),
        )
        for one in told
    ]
    operations = transactions(seen, len(workers))
    window = max(1, seen.closes - seen.opens)
    return Where(
        time_ns=sum(areas[one.worker - 1].window_ns for one in told),
        parts=added(parts),
        told=min(1.0, (seen.closes - seen.complete_from) / window),
        pending_ns=_pending_ns(seen, areas[: len(workers)]),
        slowest=slowest(seen, operations),
        moment=moment(seen, operations, processes),
    )


def _pending_ns(seen: Seen, workers: Sequence[where_recording.Area]) -> int:
    """Return the longest wait that went on when the window closed; one of a worker that died never ended."""
    numbers = {one.process for one in workers}
    late = [one.span for one in seen.waits if one.span.process in numbers and one.span.end > seen.closes]
    begun = [span.begin for span in late] + [
        since for one in workers if (since := one[where_recording.PENDING])
    ]
    return max(0, seen.closes - min(begun, default=seen.closes))
