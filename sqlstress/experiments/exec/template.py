"""Words of a command with placeholders such as {n}, {db} and {random:1:1000}."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlstress.errors import UsageError
from sqlstress.options.parsing import abbreviate

if TYPE_CHECKING:
    from random import Random

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|\{")
_RANDOM = re.compile(r"random:(-?\d{1,18}):(-?\d{1,18})")
DATABASE = "{db}"
"""Placeholder of the path of the database."""
_PLACEHOLDERS = "{n}, {worker}, {db}, {inner} and {random:LEAST:MOST}"


class Given(NamedTuple):
    """Values of the placeholders in one command."""

    n: int
    """Number of the operation, unique within a trial."""
    worker: int
    """Number of the worker process, from 1."""
    db: str
    """Path or address of the database."""
    inner: int
    """Number of operations that one command does (--inner)."""
    random: Random
    """Random number generator for {random:LEAST:MOST}."""


Part = str | Callable[[Given], str]
Word = tuple[Part, ...]
_VALUES: dict[str, Callable[[Given], str]] = {
    "n": lambda values: str(values.n),
    "worker": lambda values: str(values.worker),
    "db": lambda values: values.db,
    "inner": lambda values: str(values.inner),
}


def parse(words: Sequence[str]) -> tuple[Word, ...]:
    """Return each word split into texts and placeholders. Raises UsageError for an unknown placeholder."""
    return tuple(map(_split_word, words))


def fill(words: Sequence[Word], given: Given) -> list[str]:
    """Return the words of one command with the placeholders replaced by values."""
    return ["".join(part if isinstance(part, str) else part(given) for part in word) for word in words]


def has_number(words: Sequence[str]) -> bool:
    """Return whether a word contains the placeholder {n}. Raises UsageError for an unknown placeholder."""
    return any(part is _VALUES["n"] for word in parse(words) for part in word)


def _split_word(word: str) -> Word:
    parts: list[Part] = []
    end = 0
    for piece in _PIECE.finditer(word):
        parts += [word[end : piece.start()], _parse_piece(piece[0], piece[1] or "")]
        end = piece.end()
    return tuple(part for part in (*parts, word[end:]) if part != "")


def _parse_piece(text: str, name: str) -> Part:
    if text in ("{{", "}}"):
        return text[0]
    if name in _VALUES:
        return _VALUES[name]
    if bounds := _RANDOM.fullmatch(name):
        least, most = int(bounds[1]), int(bounds[2])
        if least > most:
            raise UsageError(f"{text} runs backwards: write {{random:{most}:{least}}}.")
        return lambda values: str(values.random.randint(least, most))
    raise UsageError(f"unknown placeholder {abbreviate(text)}. Use {_PLACEHOLDERS}, or {{{{ for a brace.")
