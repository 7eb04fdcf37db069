"""All that is told of a trial: from the words that its processes left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlstress.report.results import WorkerResult
from sqlstress.report.where import Where
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.sqlite.where import area
from sqlstress.targets.sqlite.where.holds import Seen
from sqlstress.targets.sqlite.where.slowest import moment, slowest, transactions
from sqlstress.targets.sqlite.where.split import added, held_share, split


def account(words: Any, processes: int, workers: Sequence[WorkerResult]) -> Where | None:
    """Return where the workers' time went; None where none came to its end, or they contradict each other.

    `words` are those of so many processes: the workers, and those beside them, who hold locks too.
    """
    areas = area.areas(words, processes)
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


def _pending_ns(seen: Seen, workers: Sequence[area.Area]) -> int:
    """Return the longest wait that went on when the window closed; one of a worker that died never ended."""
    numbers = {one.process for one in workers}
    late = [one.span for one in seen.waits if one.span.process in numbers and one.span.end > seen.closes]
    begun = [span.begin for span in late] + [since for one in workers if (since := one[area.PENDING])]
    return max(0, seen.closes - min(begun, default=seen.closes))
