"""What the split of the time says: what the slowest operations waited for, and what would take that away.

A remedy is named where every pass supports it, and only one whose effect is measured, as docs/where.md says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import duration, listing, percent, place, whole
from sqlstress.experiments.kv.shown.where import process_name, told
from sqlstress.report import Run
from sqlstress.report.where import CHECKPOINT, COMMIT, FREE, OWN, READ, SYNC, Slowest

WORTH_SAYING = 0.05
"""Parts of less than this share are not said one by one."""
MUCH = 0.2
"""From this share on a part is worth a remedy."""
MOSTLY = 0.6
_OTHERS = {COMMIT: "commits", SYNC: "syncs", CHECKPOINT: "checkpoints", READ: "reads"}


def went(group: Group) -> Iterator[Finding]:
    """Yield what the slowest operations waited for, where that is worst."""
    found = [(run, each) for run in group.runs if (each := _slowest(run))]
    if not found:
        return
    run, each = max(found, key=lambda one: sum(slow.total_ns for slow in one[1]) / _count(one[1]))
    yield Finding("where-slowest", f"{_what(group, run, each)}{_remedies(group, run, each)}")


def _slowest(run: Run) -> list[Slowest]:
    return [one.slowest for one in told(run) if one.slowest and one.slowest.total_ns]


def _count(slow: Sequence[Slowest]) -> int:
    return sum(one.operations for one in slow)


def _what(group: Group, run: Run, slow: Sequence[Slowest]) -> str:
    """Return what the slowest operations of all passes waited for, as a sentence."""
    total = sum(one.total_ns for one in slow)
    parts, behind = Counter[str](), Counter[str]()
    for one in slow:
        parts.update(one.parts)
        behind.update(one.behind)
    said = [
        (ns, f"behind {_OTHERS[what]} of {_whose(run, slow, what)}")
        for what, ns in behind.items()
        if what in _OTHERS
    ]
    said.append((parts[FREE], "asleep while the lock was free"))
    said.append((parts[CHECKPOINT], "in checkpoints of their own"))
    said.append((parts[SYNC], "in syncs of their own"))
    said.append((parts[OWN], "in the rest of their own work, with waiting for a processor"))
    shown = [
        f"{percent(ns / total)} {text}"
        for ns, text in sorted(said, reverse=True)
        if ns >= WORTH_SAYING * total
    ]
    least = min(one.fastest_ns for one in slow)
    return (
        f"Of the time of the slowest 1% of the operations that took a lock, at {place(run.case)} "
        f"({whole(_count(slow))}, from {duration(least)} on): {listing(shown)}."
    )


def _whose(run: Run, slow: Sequence[Slowest], what: str) -> str:
    """Return who held the lock: the one that did so most of the time, if there is one."""
    held: Counter[int] = Counter()
    for one in slow:
        held.update({by.process: by.ns for by in one.held_by if by.what == what})
    if not held:
        return "others"
    process, ns = held.most_common(1)[0]
    is_worker = process <= run.case.concurrency
    # The third worker of one pass is not that of another.
    if ns < MOSTLY * held.total() or (is_worker and len(slow) > 1):
        return "others"
    return f"{'' if is_worker else 'the '}{process_name(run.case, process)}"


def _remedies(group: Group, run: Run, slow: Sequence[Slowest]) -> str:
    found = [text for remedy in _REMEDIES if (text := remedy(group, run, slow))]
    return "".join(f" {text}" for text in found)


def _always(slow: Sequence[Slowest], ns: Callable[[Slowest], int]) -> bool:
    """Return whether in every pass much of the slowest operations' time went there."""
    return all(ns(one) >= MUCH * one.total_ns for one in slow)


def _fair(group: Group, run: Run, slow: Sequence[Slowest]) -> str | None:
    if run.case.settings.busy == "fair" or not _always(slow, lambda one: one.parts.get(FREE, 0)):
        return None
    return "--busy fair takes the sleep away."


def _checkpointer(group: Group, run: Run, slow: Sequence[Slowest]) -> str | None:
    own = run.case.settings.journal_mode == "wal" and run.case.spec.checkpointing is None
    if not own or not _always(slow, lambda one: one.parts.get(CHECKPOINT, 0)):
        return None
    return "A process of its own can checkpoint in their place (--checkpointer passive), while the WAL grows."


def _fewer_syncs(group: Group, run: Run, slow: Sequence[Slowest]) -> str | None:
    if not _always(slow, lambda one: one.parts.get(SYNC, 0) + one.behind.get(SYNC, 0)):
        return None
    ways = []
    if run.case.spec.batch == 1:
        ways.append("more rows in a transaction (--batch)")
    if run.case.settings.journal_mode == "wal" and run.case.settings.synchronous in (None, "full", "extra"):
        ways.append("--synchronous normal, which can lose the last commits when the power fails")
    return f"Fewer syncs: {listing(ways, 'or')}." if ways else None


_REMEDIES = (_fair, _checkpointer, _fewer_syncs)
