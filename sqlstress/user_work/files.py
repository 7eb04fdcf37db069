"""The user's files: read when it is planned, so that what is wrong with them is told before any load."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from sqlstress.errors import UsageError
from sqlstress.options.parsing import shown
from sqlstress.system.files import read_text

MOST_WEIGHT = 1_000_000
_WEIGHTED = re.compile(r"(.+?)@(\d{1,9})", re.DOTALL)


def text_of(name: str, most: int) -> str:
    """Return the text of a file of so many bytes at most. Raises UsageError."""
    path = Path(name)
    try:
        # What is no file, such as a pipe, may have no end, or never begin.
        if path.exists() and not path.is_file():
            raise UsageError(f"{name!r:.200} is no file.")
        return read_text(path, most)
    except OSError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error.strerror or error}.") from error
    except ValueError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error}.") from error


def digest(text: str) -> str:
    """Return what tells a text from any other: the SHA-256 of its UTF-8, in hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


def weighted(word: str) -> tuple[str, int]:
    """Return a name and its weight: "transfer.sql@3"; without one it is 1. Raises UsageError."""
    found = _WEIGHTED.fullmatch(word)
    if not found:
        return word, 1
    weight = int(found[2])
    if not 1 <= weight <= MOST_WEIGHT:
        raise UsageError(f"{shown(word)}: a weight is a whole number from 1 to {MOST_WEIGHT:,}.")
    return found[1], weight
