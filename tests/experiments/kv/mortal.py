"""Shared memory whose user dies at a chosen store."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

from sqlstress.experiments.kv.acks import AckArea


class Killed(Exception):
    """The process is gone; only its earlier stores remain."""


class MortalWords:
    """A memoryview that allows `life` stores, and kills its user at the next store.

    A store of a slice is one store: each word of shared memory has one meaning at a time, whichever of them
    were written.
    """

    def __init__(self, view: Any, life: list[int]) -> None:
        self._view = view
        self._life = life

    def __getitem__(self, place: Any) -> Any:
        found = self._view[place]
        return MortalWords(found, self._life) if isinstance(place, slice) else found

    def __setitem__(self, place: Any, words: Any) -> None:
        if not self._life[0]:
            raise Killed
        self._life[0] -= 1
        self._view[place] = words

    def cast(self, form: str) -> MortalWords:
        return MortalWords(self._view.cast(form), self._life)

    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[int]:
        return iter(self._view)

    def tolist(self) -> list[int]:
        words: list[int] = self._view.tolist()
        return words


def shared_words(count: int) -> Any:
    """Return a view of zeroed words, as the parent has it."""
    return memoryview(array("q", bytes(8 * count)))


def entered(area: AckArea) -> dict[int, tuple[int, int, int]]:
    """Return the acknowledged writes of an area: slot → (sequence number, begin, end)."""
    columns = zip(area.sequences.tolist(), area.begins.tolist(), area.ends.tolist(), strict=True)
    return {slot: words for slot, words in enumerate(columns) if words[0]}
