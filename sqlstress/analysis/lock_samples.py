"""Estimates from samples of a lock: the share of time for which it was held, and the longest hold.

A sample records at one moment whether a process holds the lock.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sqlstress.report.results import Holds
from sqlstress.statistics.units import NS_PER_S

MIN_LONG_HOLD_S = 0.5
"""Shortest hold of the write lock that is reported as long, in seconds. Waiting users notice it."""
_Z95 = 1.96
"""Half the width of the 95% interval of a normal distribution, in standard deviations."""
_FEW = 2
"""Minimum number of samples of a hold from which its length is estimated. Fewer samples give only an upper
bound."""


def share(samples: int, of: int) -> float:
    """Return `samples` divided by the total number of samples, `of`; 0 if there are no samples."""
    return samples / of if of > 0 else 0.0


def share_error(samples: int) -> float:
    """Return the largest error of a share estimated from `samples` samples; 1.0 without samples.

    The error is half the width of the 95% interval of a share. It is largest for a share of 0.5, which is
    assumed. The formula is that of samples at independent random times. Our samples (one at a random time in
    each of many equal intervals) are at least as exact.
    """
    return _Z95 * 0.5 / math.sqrt(samples) if samples > 0 else 1.0


class Length(NamedTuple):
    """Longest time for which a lock was held, or an upper bound of that time."""

    ns: float
    is_bound: bool
    """Whether `ns` is only an upper bound, because the longest hold was seen in too few samples."""


def length(held: Holds, rate: int) -> Length:
    """Return the length of the longest hold of a lock. `rate` is the number of samples per second."""
    if held.longest_s * rate >= _FEW:
        return Length(held.longest_s * NS_PER_S, is_bound=False)
    return Length(held.most_s * NS_PER_S, is_bound=True)
