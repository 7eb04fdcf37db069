"""Accounts as processes could have written them, made by hand."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from sqlstress.targets.sqlite import where_recording as rec
from sqlstress.targets.sqlite.where_recording import Area

Written = Sequence[tuple[int, int, int]]
"""Kind, begin and end of each span, of one file."""


def words_of(accounts: Sequence[Written], opens: int, closes: int, file: int = 7) -> Any:
    """Return the words in which each process wrote its spans."""
    words = array("q", bytes(8 * rec.size(len(accounts))))
    for own, spans in zip(rec.areas(words, len(accounts)), accounts, strict=True):
        fill(own, {rec.OPENS: opens, rec.CLOSES: closes, rec.PROCESSOR: -1, rec.ROOM: own.room})
        for kind, begin, end in sorted(spans, key=lambda one: one[2]):
            write(own, begin, end, kind | file << 8)
    return words


def fill(own: Area, values: Mapping[int, int]) -> None:
    for place, value in values.items():
        own.words[place] = value


def write(own: Area, begin: int, end: int, tag: int) -> None:
    """Write a span as the C code does."""
    place = rec.RING + rec.SPAN * (own[rec.SPANS] % own.room)
    for offset, value in enumerate((begin, end, tag)):
        own.words[place + offset] = value
    own.words[rec.SPANS] += 1
