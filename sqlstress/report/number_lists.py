"""Lists of whole numbers, and of rows of them: a report holds millions, so they are looked at all at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

INT_LIMIT = 2**64
"""What a whole number stays below, with either sign."""


def all_whole(values: Sequence[Any]) -> bool:
    """Say whether values are whole numbers below the limit, one or more."""
    return set(map(type, values)) == {int} and max(values) < INT_LIMIT and min(values) > -INT_LIMIT


def all_rows(values: Sequence[Any], kind: type) -> bool:
    """Say whether values are rows, lists or tuples, of such numbers, and none is empty."""
    return set(map(type, values)) == {kind} and all(values) and all_whole([*chain.from_iterable(values)])
