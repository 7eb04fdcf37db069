"""How rates are read: 2000, a list of them, or a range with a step."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from sqlstress.options.parsing import MOST_NUMBERS, shown

MOST_RATE = 1_000_000
_RATES = re.compile(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9})\s*/\s*(\d{1,9}))?\s*")


def rates(value: Any) -> tuple[int, ...]:
    """Read "2000", "500,1000,2000" or "500-2000/500": in the order as written, without repetitions."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    numbers = list(islice((number for part in parts for number in _range(part)), MOST_NUMBERS + 1))
    if not numbers:
        raise ValueError("an empty list names no rate: write 2000, 500,1000 or 500-2000/500")
    if len(numbers) > MOST_NUMBERS:
        raise ValueError(f"{shown(value)} is more than {MOST_NUMBERS:,} rates")
    return tuple(dict.fromkeys(numbers))


def _range(value: Any) -> range:
    first = last = step = 0
    if isinstance(value, int) and not isinstance(value, bool):
        first, last, step = value, value, 1
    elif isinstance(value, str) and (found := _RATES.fullmatch(value)):
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
    else:
        raise ValueError(f"{shown(value)} is not a rate: write 2000, 500,1000 or 500-2000/500")
    if first > last:
        raise ValueError(f"{shown(value)} runs backwards: write {last}-{first}/{step}")
    if not 1 <= first <= last <= MOST_RATE or not step:
        raise ValueError(f"{shown(value)} does not lie within 1-{MOST_RATE:,} operations a second")
    return range(first, last + 1, step)
