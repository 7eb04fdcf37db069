"""Estimates from samples of a lock: the share of time with its error, and the longest hold."""

from __future__ import annotations

import math
from typing import NamedTuple

from sqlstress.report.results import Holds
from sqlstress.statistics.units import NS_PER_S

MIN_LONG_HOLD_S = 0.5
"""Shortest hold of the write lock that other processes notice, in seconds."""
_Z95 = 1.96
"""Standard errors on each side of a 95% interval of a normal distribution."""
_FEW = 2
"""Number of samples from which the length of a hold is estimated. Fewer give only an upper bound."""


def share(samples: int, of: int) -> float:
    """Return `samples` as a share of `of` samples; 0 if `of` is 0."""
    return samples / of if of > 0 else 0.0


def share_error(samples: int) -> float:
    """Return the half-width of the 95% interval of a share of 0.5. For other shares it is smaller.

    Samples at a random time within each interval are at least as exact as entirely random samples.
    """
    return _Z95 * 0.5 / math.sqrt(samples) if samples > 0 else 1.0


class Length(NamedTuple):
    """The longest time for which a lock was held, in ns."""

    ns: float
    is_bound: bool
    """Whether the time is only an upper bound, because too few samples saw the lock."""


def length(held: Holds, rate: int) -> Length:
    """Return the longest time for which a lock was held. `rate` is the number of samples per second."""
    if held.longest_s * rate >= _FEW:
        return Length(held.longest_s * NS_PER_S, is_bound=False)
    return Length(held.most_s * NS_PER_S, is_bound=True)
