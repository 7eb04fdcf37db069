"""The words of a command, in which some stand for values: {n}, {worker}, {db}, {random:1:1000}."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlstress.errors import UsageError
from sqlstress.options.parsing import shown

if TYPE_CHECKING:
    from random import Random

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|\{")
_RANDOM = re.compile(r"random:(-?\d{1,18}):(-?\d{1,18})")
_KNOWN = "{n}, {worker}, {db} and {random:LEAST:MOST}"


class Given(NamedTuple):
    """What the values are made of."""

    n: int
    """The number of the command: no two of a trial have the same."""
    worker: int
    """1 to the concurrency."""
    db: str
    """Where the database is."""
    random: Random


Part = str | Callable[[Given], str]
Word = tuple[Part, ...]


def parsed(words: Sequence[str]) -> tuple[Word, ...]:
    """Return words, each in its parts. Raises UsageError for what stands for nothing that is known."""
    return tuple(tuple(_parts(word)) for word in words)


def filled(words: Sequence[Word], given: Given) -> list[str]:
    """Return the words of one command."""
    return ["".join(part if isinstance(part, str) else part(given) for part in word) for word in words]


def _parts(word: str) -> list[Part]:
    parts: list[Part] = []
    end = 0
    for found in _PIECE.finditer(word):
        parts.append(word[end : found.start()])
        parts.append(_part(found[0], found[1]))
        end = found.end()
    return [part for part in (*parts, word[end:]) if part != ""]


def _part(text: str, name: str | None) -> Part:
    if text in ("{{", "}}"):
        return text[0]
    if name in _VALUES:
        return _VALUES[name]
    if found := _RANDOM.fullmatch(name or ""):
        least, most = int(found[1]), int(found[2])
        if least > most:
            raise UsageError(f"{text} runs backwards: write {{random:{most}:{least}}}.")
        return lambda given: str(given.random.randint(least, most))
    raise UsageError(f"{shown(text)} stands for nothing: there are {_KNOWN}; {{{{ is a brace.")


_VALUES: dict[str | None, Callable[[Given], str]] = {
    "n": lambda given: str(given.n),
    "worker": lambda given: str(given.worker),
    "db": lambda given: given.db,
}
