"""Pulses: whoever works long calls one often, so that the user's word to stop is soon heard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

Pulse = Callable[[], None]
"""Says that the work goes on; raises Interrupted when it must not."""

PACE = 256
"""Items that are worked through between two pulses."""


def paced(items: Iterable[T], pulse: Pulse) -> Iterator[T]:
    """Yield items, with a pulse before the first one and then every so often."""
    left = iter(items)
    for first in left:
        pulse()
        yield first
        yield from islice(left, PACE - 1)
