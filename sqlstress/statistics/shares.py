"""Small statistics of a single trial: pure functions of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


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
