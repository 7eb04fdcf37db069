"""The words of a command, in which some stand for values: {n}, {worker}, {db}, {inner}, {random:1:1000}."""

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
_KNOWN = "{n}, {worker}, {db}, {inner} and {random:LEAST:MOST}"


class Given(NamedTuple):
    """What the values are made of."""

    n: int
    """The number of the command: no two of a trial have the same."""
    worker: int
    """1 to the concurrency."""
    db: str
    """Where the database is."""
    inner: int
    """How many operations it is to do."""
    random: Random


Part = str | Callable[[Given], str]
Word = tuple[Part, ...]
_VALUES: dict[str, Callable[[Given], str]] = {
    "n": lambda given: str(given.n),
    "worker": lambda given: str(given.worker),
    "db": lambda given: given.db,
    "inner": lambda given: str(given.inner),
}


def parsed(words: Sequence[str]) -> tuple[Word, ...]:
    """Return words, each in its parts. Raises UsageError for what stands for nothing that is known."""
    return tuple(map(_parts, words))


def filled(words: Sequence[Word], given: Given) -> list[str]:
    """Return the words of one command."""
    return ["".join(part if isinstance(part, str) else part(given) for part in word) for word in words]


def has_number(words: Sequence[str]) -> bool:
    """Return whether a command is given its number."""
    return any(part is _VALUES["n"] for word in parsed(words) for part in word)


def _parts(word: str) -> Word:
    parts: list[Part] = []
    end = 0
    for piece in _PIECE.finditer(word):
        parts += [word[end : piece.start()], _part(piece[0], piece[1] or "")]
        end = piece.end()
    return tuple(part for part in (*parts, word[end:]) if part != "")


def _part(text: str, name: str) -> Part:
    if text in ("{{", "}}"):
        return text[0]
    if name in _VALUES:
        return _VALUES[name]
    if bounds := _RANDOM.fullmatch(name):
        least, most = int(bounds[1]), int(bounds[2])
        if least > most:
            raise UsageError(f"{text} runs backwards: write {{random:{most}:{least}}}.")
        return lambda given: str(given.random.randint(least, most))
    raise UsageError(f"unknown placeholder {shown(text)}. Use {_KNOWN}, or {{{{ for a brace.")
