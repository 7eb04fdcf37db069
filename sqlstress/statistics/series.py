"""Series: one figure as it went on, for a line of a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one figure over time, or over the cycles of an experiment."""

    name: str
    """What was observed, such as "WAL size"."""
    unit: str
    """Unit of the values: ns, bytes, frames."""
    values: tuple[int, ...]
    """The values, in order."""
    times_ns: tuple[int, ...] = ()
    """When each was taken, or the stretch began that it stands for, in ns after the window opened.

    Empty where they are counted: one a cycle.
    """
    worker: int | None = None
    """Whose figure it is; None: that of the database."""


WAL_FRAMES = "WAL frames"
"""Frames in use in the WALs of all files together."""
CHECKPOINTED_FRAMES = "checkpointed frames"
"""How many of them a checkpoint has copied into the databases."""
WAL_SIZE = "WAL size"
"""Bytes of the WALs of all files together."""
LARGEST_WAL = "largest WAL"
"""Bytes of the largest of them."""
CHECKPOINTS = "checkpoints"
"""Checkpoints that a process beside the workers has made, one for each file."""
BUSY_CHECKPOINTS = "busy checkpoints"
"""Those of them that answered busy: a lock stayed taken."""
STUCK_CHECKPOINTS = "stuck checkpoints in a row"
"""Checkpoints of one file, up to then, that left frames and got no further than the one before."""
CHECKPOINT_TIME = "checkpoint time"
"""Time that went to those checkpoints, in ns."""
LONGEST_CHECKPOINT = "longest checkpoint"
"""Time that the longest of them took, in ns."""
WAL_RESTARTS = "WAL restarts"
"""Looks so far that found the WAL begun anew since the one before."""


# Small statistics of a single trial: pure functions of numbers.


def jain(shares: Sequence[float]) -> float | None:
    """Return Jain's fairness index, 1/n (one takes all) to 1 (all equal); None when nothing was done.

    Source: Jain, Chiu and Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
    """
    squares = sum(share * share for share in shares)
    if not squares:
        return None
    # Rounding can lift equal shares a hair above 1.
    return min(1.0, float(sum(shares)) ** 2 / (len(shares) * squares))


def min_max_share(shares: Sequence[float]) -> float | None:
    """Return the smallest share over the largest, 0 to 1; None when nothing was done."""
    largest = max(shares, default=0)
    return min(shares) / largest if largest else None


def half_ratio(bins: Sequence[int]) -> float | None:
    """Return the median of the second half of a series over that of the first; None if it can't be said."""
    half = len(bins) // 2
    if half < 3:
        return None
    first = median(bins[:half])
    return median(bins[-half:]) / first if first else None
