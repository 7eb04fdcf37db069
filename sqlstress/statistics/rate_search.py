"""The highest rate that holds a promise, searched for where every window is one look through noise.

A window of load at a rate keeps the promise or breaks it, and near the limit it does so by chance. So a rate
is said to hold when ALL windows kept it, and not to hold when all broke it; one that did both is left open,
and the answer goes around it. One that keeps its promise half of the time is taken for either with a
probability of 1 in 32. Rates are steps of a ladder that is the same for everybody: answers of several runs
can be set beside each other.

Everything here is a function of what was seen, so that it can be tried on machines that are made up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

ALL = 6
"""Windows that must agree on a rate."""
STEPS = (10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91)
"""Of a decade, about 10 % apart: the preferred numbers E24 of IEC 60063, the way down to 1."""
LADDER: tuple[int, ...] = tuple(
    sorted({*range(1, 10), *(step * 10**tens for tens in range(5) for step in STEPS), 10**6})
)
HOLDS, BREAKS, OPEN, UNDECIDED = "holds", "breaks", "open", "undecided"
"""What is known of a rate: an open one did both; of an undecided one too few windows were seen."""
HALF, UP = 7, 3
"""Steps down to about half of a rate, and up by a third."""

Windows = Mapping[int, Sequence[bool]]
"""Whether each window at a rate kept the promise."""


class Answer(NamedTuple):
    """What is known by now."""

    holds: int | None
    """The highest rate that holds, below all that do not; None: none is known to."""
    breaks: int | None
    """The lowest rate that does not hold; None: none is known not to."""


def verdict(kept: Sequence[bool]) -> str:
    """Say what is known of a rate."""
    if any(kept) and not all(kept):
        return OPEN
    if len(kept) < ALL:
        return UNDECIDED
    return HOLDS if kept[0] else BREAKS


def answer(windows: Windows) -> Answer:
    """Return what is known: a rate above one that does not hold is no answer, whatever was seen there."""
    breaks = min((rate for rate, kept in windows.items() if verdict(kept) == BREAKS), default=None)
    held = (rate for rate, kept in windows.items() if verdict(kept) == HOLDS)
    return Answer(max((rate for rate in held if breaks is None or rate < breaks), default=None), breaks)


def next_rate(windows: Windows, start: int) -> int | None:
    """Return at which rate to look next; None when nothing is to be learned any more.

    `start` is where to begin. First the limit is bracketed and halved by single windows. Then the neighbours
    are looked at in turns, so that both meet the same moods of the machine, until each is decided.
    """
    if not windows:
        return LADDER[max(0, bisect_right(LADDER, start) - 1)]
    low, high = _bracket(windows)
    if low is None:
        return _down(min(windows), windows)
    if high is None:
        return _up(max(windows), windows)
    between = [
        rate for rate in LADDER[bisect_right(LADDER, low) : bisect_left(LADDER, high)] if rate not in windows
    ]
    if between:
        return between[len(between) // 2]
    return _least_seen((low, high), windows)


def _bracket(windows: Windows) -> tuple[int | None, int | None]:
    """Return the highest rate of which all windows kept the promise, and the lowest above it that all broke.

    What lies above a rate that is known to break it is not looked at.
    """
    top = answer(windows).breaks
    kept = [rate for rate, seen in windows.items() if all(seen) and (top is None or rate < top)]
    low = max(kept, default=None)
    broken = (rate for rate, seen in windows.items() if not any(seen) and (low is None or rate > low))
    return low, min(broken, default=None)


def _down(rate: int, windows: Windows) -> int | None:
    """Return a lower rate than any that was seen; at the end of the ladder that end until it is decided."""
    if rate == LADDER[0]:
        return _least_seen((rate,), windows)
    return LADDER[max(0, bisect_left(LADDER, rate) - HALF)]


def _up(rate: int, windows: Windows) -> int | None:
    if rate == LADDER[-1]:
        return _least_seen((rate,), windows)
    return LADDER[min(len(LADDER) - 1, bisect_left(LADDER, rate) + UP)]


def _least_seen(rates: Sequence[int], windows: Windows) -> int | None:
    undecided = [rate for rate in rates if verdict(windows[rate]) == UNDECIDED]
    return min(undecided, key=lambda rate: len(windows[rate]), default=None)
