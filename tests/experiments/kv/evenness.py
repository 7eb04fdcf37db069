"""Test of an even distribution of keys: Pearson's chi-square of their number in each bucket."""

from collections import Counter
from collections.abc import Callable, Iterable
from math import sqrt
from typing import TypeVar

K = TypeVar("K")

_SURPRISE = 20.0
"""A random partition exceeds the bound once in exp(20) cases, 500 million."""


def uneven(keys: Iterable[K], buckets: int, partition: Callable[[K, int], int]) -> str | None:
    """Describe the uneven distribution of the keys; None if a random partition could have caused it.

    The bound is Laurent's and Massart's, Annals of Statistics 28 (2000), lemma 1, eq. 4.3; it holds from some
    20 keys a bucket on.
    """
    counts = Counter(partition(key, buckets) for key in keys)
    if not set(counts) <= set(range(buckets)):
        return f"buckets {sorted(set(counts) - set(range(buckets)))} do not exist"
    if len(counts) < buckets:
        return f"{buckets - len(counts)} buckets are empty"
    expected = counts.total() / buckets
    chi_square = sum((counts[bucket] - expected) ** 2 for bucket in range(buckets)) / expected
    freedom = buckets - 1
    bound = freedom + 2 * sqrt(freedom * _SURPRISE) + 2 * _SURPRISE
    return f"chi-square {chi_square:.0f}, at most {bound:.0f}" if chi_square > bound else None
