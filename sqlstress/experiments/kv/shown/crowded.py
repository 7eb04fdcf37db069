"""Where processes mostly wait for a processor, and for each other's: then fewer of them are as good.

Said where every pass supports it, and its effect is measured, as docs/where.md says.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.disturbance import disturbed
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import percent, place
from sqlstress.experiments.kv.shown.where import shares, told
from sqlstress.report import Run
from sqlstress.report.where import PROCESSOR, Where


def crowded(group: Group) -> Iterator[Finding]:
    """Yield where waiting for a processor is the largest part of the time, where that part is largest."""
    found = [(shares(run)[PROCESSOR], run) for run in group.runs if _is_crowded(run)]
    if not found:
        return
    share, run = max(found, key=lambda one: one[0])
    yield Finding(
        "where-processor",
        f"{percent(share)} of the time of an operation at {place(run.case)} is waiting for a processor, more "
        "than anything else: with fewer processes, down to one for each processor, operations are shorter.",
    )


def _is_crowded(run: Run) -> bool:
    """Return whether processes of ours take the processors from each other.

    Where other programs have them, fewer processes would get less of them; at a rate it is not the processes
    that make the load.
    """
    if run.case.concurrency == 1 or run.case.arrivals or disturbed(run):
        return False
    found = told(run)
    return bool(found) and all(map(_mostly_waits, found))


def _mostly_waits(where: Where) -> bool:
    parts = where.parts
    return parts.get(PROCESSOR, 0) > max((ns for part, ns in parts.items() if part != PROCESSOR), default=0)
