"""What became of the operations that were due at a rate."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlstress.report.latency import Latency, merged
from sqlstress.statistics.histogram import MOST_KINDS

QUEUED = "queued"
"""Beside the kinds of operations: what was still waiting, or under way, when the window closed."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What became of the operations that were due inside the window."""

    due: int
    """Operations due inside the window."""
    skipped: int
    """Those of them that were too late when their turn came, under a latency limit: never begun."""
    queued: int
    """Those of them that were still waiting, or under way, when the window closed."""
    latency: dict[str, Latency] = field(default_factory=dict)
    """From the moment each was due to its end, by kind of operation. "queued": what was still waiting or
    under way, with the time it had waited by then; those given up and those skipped are in none."""
    lateness: Latency | None = None
    """How much later each was begun than it could have been, by the harness's own doing; None without any."""
    polled_share: float = 0.0
    """Share of the window in which an average process polled the clock before an operation was due."""

    def __post_init__(self) -> None:
        if len(self.latency) > MOST_KINDS + 1:
            raise ValueError(f"it has more than {MOST_KINDS + 1} kinds of operations")

    @property
    def whole(self) -> Latency | None:
        """The latencies of all kinds together, what was still queued included; None without any."""
        return merged([one for one in self.latency.values() if one.count])
