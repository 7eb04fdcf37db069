"""The slowest operations: what they waited for, who held it, and a picture of the worst one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from sqlstress.report.where import CHECKPOINT, COMMIT, FREE, HELD, OWN, READ, SYNC, Held, Moment, Slowest
from sqlstress.targets.sqlite.where import area
from sqlstress.targets.sqlite.where.area import Span
from sqlstress.targets.sqlite.where.holds import BLOCKS, Blocked, Seen, Wait, covered_ns

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
    checkpoint = sum(map(_length, seen.doing(process, area.CHECKPOINT, begin, end)))
    sync = sum(map(_length, _own_syncs(seen, process, begin, end)))
    own = max(0, end - begin - waited - checkpoint - sync)
    parts.update({HELD: held, FREE: waited - held, CHECKPOINT: checkpoint, SYNC: sync, OWN: own})


def _own_syncs(seen: Seen, process: int, begin: int, end: int) -> Iterator[Span]:
    """Yield the syncs of a process that are not its checkpoints'."""
    for sync in seen.doing(process, area.SYNC, begin, end):
        if not seen.doing(process, area.CHECKPOINT, sync.begin, sync.end):
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
        for one in seen.doing(number, area.CHECKPOINT, begin, end):
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
