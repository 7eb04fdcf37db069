"""A race: arms measured in turns, of which those leave that are worse than the leader beyond doubt.

Whoever looks after every round is deceived more often than who looks once: each look has its part of the
error rate, and so has each pair of arms in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from sqlstress.statistics.ratios import FEWEST, Passes

ERROR = 0.05
"""With this probability at most, an arm leaves that is not worse than the leader."""

K = TypeVar("K", bound=Hashable)


def survivors(figures: Mapping[K, Mapping[int, float]], looks: int) -> list[K]:
    """Return the arms that stay after one of so many looks; all of them while rounds are too few.

    `figures` are those of the arms that still race, by round, above 0.
    """
    if len(figures) < 2 or min(map(len, figures.values())) < FEWEST:
        return [*figures]
    passes = Passes(figures, ERROR / looks)
    leader = max(figures, key=passes.middle)
    return [arm for arm in figures if not _is_worse(passes, leader, arm)]


def _is_worse(passes: Passes[K], leader: K, arm: K) -> bool:
    ratio = passes.ratio(leader, arm)
    return arm != leader and ratio is not None and ratio.is_below


def winner(figures: Mapping[K, Mapping[int, float]], order: Sequence[K], about: float) -> K:
    """Return the arm with the highest mean; of those less than a share below it the first one of an order.

    Raises ValueError without figures.
    """
    passes = Passes({arm: own for arm, own in figures.items() if own}, ERROR)
    best = max((passes.middle(arm) for arm in order if figures.get(arm)), default=None)
    if best is None:
        raise ValueError("no arm has figures")
    near = (arm for arm in order if figures.get(arm) and passes.middle(arm) >= best * (1 - about))
    return next(near)
