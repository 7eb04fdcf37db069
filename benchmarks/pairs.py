"""Side by side: the order in which arms are measured, and what their pairs say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spread:
    """Several values of one thing: their median, and the smallest and largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise one value or more."""
        return cls(median(values), min(values), max(values))


def abba(arms: Sequence[str], repeats: int) -> Iterator[tuple[str, ...]]:
    """Yield the arms of each round: forwards, backwards, forwards, …

    What drifts while we measure (heat, a neighbour on the machine) then meets all arms alike.
    """
    for index in range(repeats):
        yield tuple(arms) if index % 2 == 0 else tuple(reversed(arms))


def measure(arms: Mapping[str, Callable[[int], T]], repeats: int) -> dict[str, list[T]]:
    """Measure every arm once in each round and return the results of each, by round.

    An arm is a function of the round's number, from which it takes its seed.
    """
    results: dict[str, list[T]] = {name: [] for name in arms}
    for index, order in enumerate(abba(tuple(arms), repeats)):
        for name in order:
            results[name].append(arms[name](index))
    return results


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratio of each pair. Raises ValueError if they are no pairs, or one divides by nothing."""
    if not all(denominators):
        raise ValueError("an arm did nothing inside the window: there is no ratio to it")
    return [above / below for above, below in zip(numerators, denominators, strict=True)]
