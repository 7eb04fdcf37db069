"""How the workers' time divides: pure functions of what they wrote down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlstress.report.where import (
    BINDING,
    CHECKPOINT,
    FREE,
    HARNESS,
    HELD,
    PARTS,
    PROCESSOR,
    SQLITE,
    SYNC,
    WRITE,
)
from sqlstress.targets.sqlite.where import area
from sqlstress.targets.sqlite.where.area import Area
from sqlstress.targets.sqlite.where.holds import Seen, covered_ns

_WAIT, _INSIDE = "wait", "inside"
"""Parts that are divided further: waiting for locks; SQLite's own work with the binding."""
_LOOKED_AT = {
    _WAIT: (area.WAITS_SEEN, area.WAITS_PROCESSOR),
    SYNC: (area.SYNCS_SEEN, area.SYNCS_PROCESSOR),
    CHECKPOINT: (area.CHECKPOINTS_SEEN, area.CHECKPOINTS_PROCESSOR),
}
"""What of some kinds of stretches was waiting for a processor, by samples of them."""


def split(own: Area, harness_ns: int, held_share: float) -> dict[str, int]:
    """Return where a worker's window went, part by part in ns: they add up to it.

    Of its waits for locks such a share was for those that another process held; it paused while it could
    have had them.
    """
    waiting = own[area.WAITING] + own[area.PAUSING]
    parts = {_WAIT: waiting, CHECKPOINT: own[area.CHECKPOINTING]}
    parts |= {SYNC: own.syncing_ns, WRITE: own[area.WRITING]}
    left = max(0, own.window_ns - sum(parts.values()))
    harness = min(harness_ns, left)
    parts |= {_INSIDE: left - harness, HARNESS: harness}
    if own[area.PROCESSOR] >= 0:
        parts = _without_processor(own, parts)
    wait, inside = parts.pop(_WAIT), parts.pop(_INSIDE)
    held = round(wait * held_share * own[area.WAITING] / max(1, waiting))
    sqlite = min(own[area.STATEMENTS_NS] * area.EVERY, inside)
    found = {**parts, HELD: held, FREE: wait - held, SQLITE: sqlite, BINDING: inside - sqlite}
    return {name: found[name] for name in PARTS if name in found}


def _without_processor(own: Area, parts: Mapping[str, int]) -> dict[str, int]:
    """Take out of each part what was waiting for a processor in it.

    Where a process sleeps, samples say how much. All that they don't was in what keeps a processor busy, in
    each as much as it is long.
    """
    looked_ns = own[area.TO] - own[area.FROM]
    waited = own[area.PROCESSOR] * own.window_ns / looked_ns if looked_ns > 0 else 0.0
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
