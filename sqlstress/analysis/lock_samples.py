"""Estimates from samples of a lock: the share of time held, and the longest hold.

A sample records whether any process holds the lock at one moment.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sqlstress.report.results import Holds
from sqlstress.statistics.units import NS_PER_S

MIN_LONG_HOLD_S = 0.5
"""Shortest reported hold of the write lock, in seconds. Users notice waits of this length."""
_Z95 = 1.96
"""Half-width of a normal distribution's 95% interval, in standard deviations."""
_MIN_HOLD_SAMPLES = 2
"""Minimum number of samples of a hold from which its length is estimated."""


def share(samples: int, of: int) -> float:
    """Return the share `samples` / `of`, where `of` is the number of all samples; 0 without samples."""
    return samples / of if of > 0 else 0.0


def share_error(samples: int) -> float:
    """Return the half-width of the 95% interval of a share that was estimated from `samples` samples.

    The result is for a share of 0.5, where the interval is widest; 1.0 without samples. The formula is for
    samples at independent random times. Our samples are at least as exact: each is at a random time within
    one of many equal intervals.
    """
    return _Z95 * 0.5 / math.sqrt(samples) if samples > 0 else 1.0


class Length(NamedTuple):
    """Longest time for which a lock was held, or an upper bound."""

    ns: float
    is_bound: bool
    """Whether `ns` is only an upper bound, because too few samples found the lock held."""


def length(held: Holds, rate: int) -> Length:
    """Return the length of the longest hold in `held`. `rate` is the number of samples per second."""
    if held.longest_s * rate >= _MIN_HOLD_SAMPLES:
        return Length(held.longest_s * NS_PER_S, is_bound=False)
    return Length(held.most_s * NS_PER_S, is_bound=True)
