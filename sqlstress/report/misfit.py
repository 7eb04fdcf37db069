"""What does not fit into the types of a document, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any

Convert = Callable[[Any], Any]

_NAME_LENGTH = 40
_KINDS = {
    NoneType: "null",
    bool: "true or false",
    str: "text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


class Misfit(ValueError):
    """What does not fit. Its path is put together on the way out, so that what fits costs nothing."""

    def __init__(self, text: str, path: str = "") -> None:
        self._text, self._path = text, path

    def inside(self, place: object) -> Misfit:
        """Return the same, seen from around it: `place` is an index, or a name as in a hostile file."""
        step = f"[{place}]" if isinstance(place, int) else _short(place)
        dot = "." if self._path and not self._path.startswith("[") else ""
        return Misfit(self._text, f"{step}{dot}{self._path}")

    def __str__(self) -> str:
        return f"{self._path}: {self._text}" if self._path else self._text


def each(convert: Convert, values: Iterable[Any]) -> list[Any]:
    """Return the items of a list, converted; what does not fit learns which it was."""
    done: list[Any] = []
    try:
        for value in values:
            done.append(convert(value))
    except Misfit as misfit:
        raise misfit.inside(len(done)) from None
    return done


def member(convert: Convert, value: Any, name: object) -> Any:
    """Return the value of a name, converted; what does not fit learns whose it was."""
    try:
        return convert(value)
    except Misfit as misfit:
        raise misfit.inside(name) from None


def _short(name: object) -> str:
    """Return a name, which may come from a hostile file: short, and escaped."""
    text = ascii(name[: _NAME_LENGTH + 1])[1:-1] if isinstance(name, str) else type(name).__name__
    return text if len(text) <= _NAME_LENGTH else text[:_NAME_LENGTH] + "..."


def wrong(expected: str, found: object) -> Misfit:
    """Return what says that a value is of another kind."""
    return Misfit(f"expected {expected}, found {_KINDS.get(type(found), 'something else')}")
