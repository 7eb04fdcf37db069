"""What is changed in a copy of the files, and what a verdict must then name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.mutations.trial import Trial


class NothingToChange(Exception):
    """This trial's files hold nothing that could be changed in this way."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change."""

    text: str
    """What was done, in words."""
    names: tuple[tuple[str, ...], ...]
    """What counter-examples must name: of each of these at least one of its words."""

    def is_named(self, counterexamples: Iterable[str]) -> bool:
        """Return whether counter-examples name everything that was changed."""
        told = "\n".join(counterexamples)
        return all(any(_mentions(told, word) for word in words) for words in self.names)


def _mentions(told: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", told, re.IGNORECASE) is not None


Mutation = Callable[["Trial", Random], Change]
"""Changes the files of a trial. Raises NothingToChange."""
Words = Callable[["Trial", str, tuple[Any, ...]], list[str]]
"""What a counter-example may call a row of a table."""


def changed(text: str, *names: str) -> Change:
    """Return a change of which every name must be told."""
    return Change(text, tuple((name,) for name in names))
