"""Series: the course of a figure, for a line of a plot; and small statistics of a trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one figure over time, or over the cycles of an experiment."""

    name: str
    """Name of the figure, such as "WAL size"."""
    unit: str
    """Unit of the values: ns, bytes, frames."""
    values: tuple[int, ...]
    """The values, in order."""
    times_ns: tuple[int, ...] = ()
    """Time of each value, or start of the interval that it covers, in ns after the window opened.

    Empty if there is a value per cycle instead.
    """
    worker: int | None = None
    """Index of the worker that has the figure; None if it is a figure of the database."""


WAL_FRAMES = "WAL frames"
"""Frames in use in the WALs of all files together."""
CHECKPOINTED_FRAMES = "checkpointed frames"
"""Frames of WAL_FRAMES that checkpoints have copied into the databases."""
WAL_SIZE = "WAL size"
"""Size of the WALs of all files together, in bytes."""
LARGEST_WAL = "largest WAL"
"""Size of the largest WAL, in bytes."""
CHECKPOINTS = "checkpoints"
"""Checkpoints made by a separate process, not by workers; a checkpoint of each file counts."""
BUSY_CHECKPOINTS = "busy checkpoints"
"""Checkpoints of CHECKPOINTS that returned busy, because a lock was held."""
STUCK_CHECKPOINTS = "stuck checkpoints in a row"
"""Consecutive checkpoints of a file, up to this time, that left frames and made no progress."""
CHECKPOINT_TIME = "checkpoint time"
"""Time of the checkpoints in CHECKPOINTS, in ns."""
LONGEST_CHECKPOINT = "longest checkpoint"
"""Time of the longest checkpoint in CHECKPOINTS, in ns."""
WAL_RESTARTS = "WAL restarts"
"""Samples so far that found that the WAL had restarted since the sample before."""


# Small statistics of a single trial: pure functions of numbers.


def jain(shares: Sequence[float]) -> float | None:
    """Return Jain's fairness index, 1/n (one worker does all) to 1 (all equal); None if all shares are 0.

    Source: Jain, Chiu and Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
    """
    squares = sum(share * share for share in shares)
    if not squares:
        return None
    # Rounding can lift equal shares a hair above 1.
    return min(1.0, float(sum(shares)) ** 2 / (len(shares) * squares))


def min_max_share(shares: Sequence[float]) -> float | None:
    """Return the smallest share over the largest, 0 to 1; None if all shares are 0."""
    largest = max(shares, default=0)
    return min(shares) / largest if largest else None


def half_ratio(bins: Sequence[int]) -> float | None:
    """Return the ratio of the medians of a series' second and first half; None if too short or undefined."""
    half = len(bins) // 2
    if half < 3:
        return None
    first = median(bins[:half])
    return median(bins[-half:]) / first if first else None
