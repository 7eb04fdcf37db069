"""What samples of a lock say: a share of the time with its error, and how long it was held at most."""

from __future__ import annotations

import math
from typing import NamedTuple

from sqlstress.report.results import Holds
from sqlstress.statistics.units import NS_PER_S

LONG_S = 0.5
"""A hold of the write lock that others notice."""
_Z95 = 1.96
_FEW = 2
"""Samples that say no more of a length than what it is below."""


def share(samples: int, of: int) -> float:
    """Return a share of samples; 0 of none."""
    return samples / of if of > 0 else 0.0


def share_error(samples: int) -> float:
    """Return by how much a share of a half may be wrong, with 95 %: others are less so.

    Samples at random within their turns are not worse than samples at random altogether.
    """
    return _Z95 * 0.5 / math.sqrt(samples) if samples > 0 else 1.0


class Length(NamedTuple):
    """The longest time for which a lock was held."""

    ns: float
    is_bound: bool
    """Whether the time is only an upper bound, because hardly two samples saw the lock."""


def length(held: Holds, rate: int) -> Length:
    """Return the longest time for which a lock was held."""
    if held.longest_s * rate >= _FEW:
        return Length(held.longest_s * NS_PER_S, is_bound=False)
    return Length(held.most_s * NS_PER_S, is_bound=True)
