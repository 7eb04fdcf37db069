"""Records: the format in which a b-tree's cell holds a row's columns.

Source: https://www.sqlite.org/fileformat2.html#record_format
"""

from __future__ import annotations

_FIXED = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Bytes of a column by its type: NULL, integers of six sizes, a float, and the constants 0 and 1."""


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    value = 0
    for at in range(place, place + 8):
        value = value << 7 | data[at] & 0x7F
        if data[at] < 0x80:
            return value, at + 1
    return value << 8 | data[place + 8], place + 9


def contradicts_itself(stored: bytes, size: int) -> bool:
    """Return whether a record's header does not describe as many bytes as it has.

    `stored` is its beginning, and `size` the bytes of all of it.
    """
    try:
        return _described(stored, size) != size
    except IndexError:
        return True


def _described(stored: bytes, size: int) -> int:
    """Return how many bytes a record's header describes, its own included. Raises IndexError."""
    header, at = varint(stored, 0)
    if len(stored) < header <= size:
        return size  # a header with overflow is not looked at
    total = at
    while at < header:
        kind, following = varint(stored, at)
        # The types 10 and 11 are not used.
        total += following - at + (_FIXED[kind] if kind < len(_FIXED) else (kind - 12) // 2)
        at = following
    return total
