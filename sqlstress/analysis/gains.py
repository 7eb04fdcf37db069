"""Gains in words and in cells: what one setting does over another, no more than its noise leaves."""

from __future__ import annotations

from sqlstress.analysis.wording import finite, rounded, times
from sqlstress.report.gain import Gain

EQUAL = 0.05
"""Settings that differ by less are called as good as each other."""


def interval(gain: Gain) -> str:
    """Write what is possible: "1.5 to 2.3"."""
    return f"{rounded(gain.low, 3)} to {rounded(gain.high, 3)}"


def told(gain: Gain | None, base: str) -> str:
    """Say how much more is done than with the base: "1.9 times the default (1.8 to 2.0)"."""
    if gain is None:
        return f"can't be told from {base}: too few rounds"
    if gain.is_within(EQUAL):
        return f"as good as {base} ({interval(gain)} times)"
    if gain.is_above or gain.is_below:
        return f"{times(gain.ratio)} {base} ({interval(gain)})"
    return f"can't be told from {base} ({interval(gain)} times)"


def cells(gain: Gain | None, missing: str) -> tuple[str, str, str]:
    """Return a gain and the ends of its interval, as the cells of a table."""
    if gain is None:
        return missing, missing, missing
    low, middle, high = (
        missing if finite(value) is None else rounded(value, 3) for value in (gain.low, gain.ratio, gain.high)
    )
    return middle, low, high
