"""Gain: how much more one setting does than another, with what its noise leaves possible."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.statistics.ratios import Ratio


@dataclass(frozen=True, slots=True)
class Gain:
    """What was done in a second with some settings, over what was done with those they are set against."""

    ratio: float
    """The geometric mean over the rounds."""
    low: float
    """Lower end of its interval; all intervals of a kind hold together with a probability of 95 %."""
    high: float
    """Its upper end."""
    rounds: int
    """Rounds in which both were measured."""

    @property
    def is_above(self) -> bool:
        """Whether it is more, beyond its noise."""
        return self.low > 1

    @property
    def is_below(self) -> bool:
        """Whether it is less, beyond its noise."""
        return self.high < 1

    def is_within(self, share: float) -> bool:
        """Say whether the two differ by less than a share, beyond doubt: they are about equal."""
        return self.low > 1 - share and self.high < 1 / (1 - share)

    @classmethod
    def of(cls, ratio: Ratio | None) -> Gain | None:
        """Return a ratio as what is kept of it."""
        return None if ratio is None else cls(ratio.estimate, ratio.low, ratio.high, ratio.pairs)
