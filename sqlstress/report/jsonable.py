"""Dataclasses to JSON-able plain data and back, driven by their type hints.

What both directions know: dataclasses, tuple[X, ...], tuple[X, Y], dict[str, X], X | None, str, int,
float and bool. Everything that does not fit raises ValueError and says where: `runs[3].trials[0].tps`.
A class whose fields do not stand where they are has a form of its own: `to_plain` and `from_plain`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from functools import cache
from itertools import chain
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from sqlstress.options.option import has_default

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
        """Return the same, seen from around it: `place` is an index, or a name, as in a hostile file."""
        if isinstance(place, int):
            step = f"[{place}]"
        else:  # short, and escaped
            step = ascii(place[: _NAME_LENGTH + 1])[1:-1] if isinstance(place, str) else type(place).__name__
            step = step if len(step) <= _NAME_LENGTH else step[:_NAME_LENGTH] + "..."
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


T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Return a value as dicts, lists, strings, numbers, booleans and None. Raises ValueError.

    Half characters, as in a file name that is not text, are written as their escapes: JSON has no
    other way to hold them that every reader accepts.
    """
    try:
        return _plain(value)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, int | float):
        return _checked_number(value)
    if isinstance(value, tuple | list):
        if all_whole(value):
            return list(value)
        return [*map(list, value)] if all_rows(value, tuple) else each(_plain, value)
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise Misfit("a key must be text")
        return {_plain(key): member(_plain, item, key) for key, item in value.items()}
    if hasattr(value, "to_plain") and not isinstance(value, type):
        return value.to_plain()
    if is_dataclass(value) and not isinstance(value, type):
        return plain_fields(value)
    raise Misfit(f"{type(value).__name__} has no JSON form")


def plain_fields(value: Any, without: str = "") -> dict[str, Any]:
    """Return the fields of a dataclass as plain data, by name, but for one that stands elsewhere."""
    return {
        name: member(_plain, getattr(value, name), name)
        for name in _names(cast(Any, type(value)))
        if name != without
    }


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def _checked_number(value: float) -> float:
    if isinstance(value, int):
        if abs(value) >= INT_LIMIT:
            raise Misfit("a whole number of more than 64 bits")
    elif not math.isfinite(value):
        raise Misfit("NaN and Infinity are not numbers that JSON can hold")
    return value


def from_plain(type_: type[T], plain: Any) -> T:
    """Return plain data, as `json.loads` gives it, as a value of a type. Raises ValueError.

    Unknown keys are ignored, missing ones take their default.
    """
    return cast(T, reader(cast(Any, type_))(plain))


@cache
def reader(hint: Any) -> Convert:
    """Return what reads a value of a type. It raises Misfit."""
    if hasattr(hint, "from_plain"):
        return lambda plain: hint.from_plain(an_object(plain))
    if is_dataclass(hint):
        return _dataclass_reader(cast(type, hint))
    if hint is Any:
        return lambda plain: plain
    if hint in _SCALARS:
        return _SCALARS[hint]
    arguments = get_args(hint)
    if NoneType in arguments:
        (inner,) = (reader(argument) for argument in arguments if argument is not NoneType)
        return lambda plain: None if plain is None else inner(plain)
    if get_origin(hint) is tuple:
        return _many_reader(arguments[0]) if arguments[-1] is Ellipsis else _row_reader(arguments)
    if get_origin(hint) is dict:
        item = reader(arguments[1])
        return lambda plain: {
            member(_read_str, key, key): member(item, value, key) for key, value in an_object(plain).items()
        }
    raise TypeError(f"jsonable does not know the type {hint!r}")


def wrong(expected: str, found: object) -> Misfit:
    """Return what says that a value is of another kind."""
    return Misfit(f"expected {expected}, found {_KINDS.get(type(found), 'something else')}")


def _read_bool(plain: Any) -> bool:
    if not isinstance(plain, bool):
        raise wrong("true or false", plain)
    return plain


def _read_str(plain: Any) -> str:
    if not isinstance(plain, str):
        raise wrong("text", plain)
    try:
        plain.encode("utf-8")  # Half a character would come in unnoticed and break whatever prints it.
    except UnicodeEncodeError as error:
        raise Misfit("half of a surrogate pair is not text") from error
    return plain


def _read_int(plain: Any) -> int:
    if not isinstance(plain, int) or isinstance(plain, bool):
        raise wrong("a whole number", plain)
    return int(_checked_number(plain))


def _read_float(plain: Any) -> float:
    if not isinstance(plain, int | float) or isinstance(plain, bool):
        raise wrong("a number", plain)
    return float(_checked_number(plain))


_SCALARS: dict[Any, Convert] = {bool: _read_bool, str: _read_str, int: _read_int, float: _read_float}


def _row_reader(hints: tuple[Any, ...]) -> Convert:
    items = [reader(hint) for hint in hints]

    def read(plain: Any) -> tuple[Any, ...]:
        if len(_list(plain)) != len(items):
            raise Misfit(f"expected {len(items)} values, found {len(plain)}")
        return tuple(member(item, plain[i], i) for i, item in enumerate(items))

    return read


def _many_reader(hint: Any) -> Convert:
    """Return what reads a list: whole numbers, and rows of them, all at once where they are sound."""
    item, length = reader(hint), len(get_args(hint))
    if item is _read_int:
        return lambda plain: tuple(plain if all_whole(_list(plain)) else each(item, plain))
    if get_origin(hint) is not tuple or set(get_args(hint)) != {int}:
        return lambda plain: tuple(each(item, _list(plain)))

    def read_rows(plain: Any) -> tuple[Any, ...]:
        sound = all_rows(_list(plain), list) and set(map(len, plain)) == {length}
        return tuple(map(tuple, plain) if sound else each(item, plain))

    return read_rows


def _dataclass_reader(cls: type) -> Convert:
    def read(plain: Any) -> Any:
        values = read_fields(cls, an_object(plain))
        try:
            return cls(**values)
        except ValueError as error:
            raise Misfit(str(error)) from error

    return read


def read_fields(cls: type, found: Mapping[str, Any], without: str = "") -> dict[str, Any]:
    """Read the fields of a dataclass, by name, but for one that stands elsewhere. Raises Misfit."""
    values: dict[str, Any] = {}
    for f, convert in _readers(cast(Any, cls)):
        if f.name in found and f.name != without:
            values[f.name] = member(convert, found[f.name], f.name)
        elif not has_default(f):
            raise Misfit("missing").inside(f.name)
    return values


@cache
def _readers(cls: Any) -> list[tuple[Field[Any], Convert]]:
    hints = get_type_hints(cls)
    return [(f, reader(hints[f.name])) for f in fields(cls) if f.init]


def _list(plain: Any) -> list[Any]:
    if not isinstance(plain, list):
        raise wrong("a list", plain)
    return plain


def an_object(plain: Any) -> dict[str, Any]:
    """Return plain data that is an object. Raises Misfit."""
    if not isinstance(plain, dict):
        raise wrong("an object", plain)
    return plain


INT_LIMIT = 2**64
"""What a whole number stays below, with either sign."""


def all_whole(values: Sequence[Any]) -> bool:
    """Say whether values are whole numbers below the limit, one or more."""
    return set(map(type, values)) == {int} and max(values) < INT_LIMIT and min(values) > -INT_LIMIT


def all_rows(values: Sequence[Any], kind: type) -> bool:
    """Say whether values are rows, lists or tuples, of such numbers, and none is empty."""
    return set(map(type, values)) == {kind} and all(values) and all_whole([*chain.from_iterable(values)])
