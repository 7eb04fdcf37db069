"""Series: the values of a figure over time, for a plot. Also: fairness and steadiness of a trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one figure over time, or over the cycles (rounds of inserts and deletes) of an experiment."""

    name: str
    """Name of the figure, such as "WAL size"."""
    unit: str
    """Unit of the values, such as ns, bytes or frames."""
    values: tuple[int, ...]
    """Values in the order of time, or one value for each cycle of the experiment."""
    times_ns: tuple[int, ...] = ()
    """Time of each value, or start of its interval, in ns after the window opened; empty for cycles."""
    worker: int | None = None
    """Number of the worker to which the figure belongs, from 1; None for a figure of the database."""


WAL_FRAMES = "WAL frames"
"""Name of a series: number of frames in use in the WALs of all files together."""
CHECKPOINTED_FRAMES = "checkpointed frames"
"""Name of a series: number of frames of WAL_FRAMES that checkpoints have copied into the databases."""
WAL_SIZE = "WAL size"
"""Name of a series: size of the WALs of all files together, in bytes."""
LARGEST_WAL = "largest WAL"
"""Name of a series: size of the largest WAL, in bytes."""
CHECKPOINTS = "checkpoints"
"""Name of a series: number of checkpoints that a separate process made, for all files together."""
BUSY_CHECKPOINTS = "busy checkpoints"
"""Name of a series: number of checkpoints that returned busy, because another connection held a lock."""
STUCK_CHECKPOINTS = "stuck checkpoints in a row"
"""Name of a series: number of successive checkpoints of a file that copied none of the remaining frames."""
CHECKPOINT_TIME = "checkpoint time"
"""Name of a series: sum of the durations of CHECKPOINTS, in ns."""
LONGEST_CHECKPOINT = "longest checkpoint"
"""Name of a series: duration of the longest of CHECKPOINTS, in ns."""
WAL_RESTARTS = "WAL restarts"
"""Name of a series: number of samples so far that found the WAL restarted since the sample before."""


def jain(shares: Sequence[float]) -> float | None:
    """Return Jain's fairness index of n workers' shares: from 1/n (one has all) to 1 (all are equal).

    None if all shares are 0. Source: Jain, Chiu and Hawe, "A Quantitative Measure of Fairness", 1984.
    """
    squares = sum(share * share for share in shares)
    if not squares:
        return None
    # Without this limit, rounding could give equal shares an index slightly above 1.
    return min(1.0, float(sum(shares)) ** 2 / (len(shares) * squares))


def min_max_share(shares: Sequence[float]) -> float | None:
    """Return the smallest share divided by the largest, 0 to 1; None if all shares are 0."""
    largest = max(shares, default=0)
    return min(shares) / largest if largest else None


def half_ratio(bins: Sequence[int]) -> float | None:
    """Return the median of the second half of `bins` divided by the median of the first half.

    None if a half has fewer than three values, or if the median of the first half is 0.
    """
    half = len(bins) // 2
    if half < 3:
        return None
    first = median(bins[:half])
    return median(bins[-half:]) / first if first else None
