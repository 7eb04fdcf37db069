"""Dataclasses to JSON-able plain data and back, driven by their type hints.

What both directions know: dataclasses, tuple[X, ...], tuple[X, Y], dict[str, X], X | None, str, int,
float and bool. Everything that does not fit raises ValueError and says where: `runs[3].trials[0].tps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from itertools import chain
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from sqlstress.options.option import has_default

# What does not fit into the types of a document, and where it stands.


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


T = TypeVar("T")
Reader = Callable[[Any], Any]


def to_plain(value: object) -> Any:
    """Return a value as dicts, lists, strings, numbers, booleans and None. Raises ValueError.

    Half characters, as in a file name that is not text, are written as their escapes: JSON has no
    other way to hold them that every reader accepts.
    """
    try:
        return _plain(value)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def from_plain(type_: type[T], plain: Any) -> T:
    """Return plain data, as `json.loads` gives it, as a value of a type. Raises ValueError.

    Unknown keys are ignored, missing ones take their default.
    """
    read = _reader(cast(Any, type_))
    return cast(T, read(plain))


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, int | float):
        return _checked_number(value)
    if isinstance(value, tuple | list):
        return _plain_list(value)
    if isinstance(value, dict):
        return {_key(key): member(_plain, item, key) for key, item in value.items()}
    if form := _form(cast(Any, type(value))):
        return form.to_plain(value, _plain)
    if is_dataclass(value) and not isinstance(value, type):
        return {name: member(_plain, getattr(value, name), name) for name in _names(type(value))}
    raise Misfit(f"{type(value).__name__} has no JSON form")


@cache
def _form(cls: Any) -> Any:
    """Return the module that writes and reads a type whose fields do not stand where they are; None else."""
    target = getattr(cls, "json_form", None) if isinstance(cls, type) else None
    return import_module(target) if isinstance(target, str) else None


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def _plain_list(values: Sequence[Any]) -> list[Any]:
    if all_whole(values):
        return list(values)
    return [*map(list, values)] if all_rows(values, tuple) else each(_plain, values)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise Misfit("a key must be text")
    return key.encode("utf-8", "backslashreplace").decode("utf-8")


def _checked_number(value: float) -> float:
    if isinstance(value, int):
        if abs(value) >= INT_LIMIT:
            raise Misfit("a whole number of more than 64 bits")
    elif not math.isfinite(value):
        raise Misfit("NaN and Infinity are not numbers that JSON can hold")
    return value


@cache
def _reader(hint: Any) -> Reader:
    if form := _form(hint):
        return lambda plain: form.from_plain(_object(plain), _reader)
    if is_dataclass(hint):
        return _dataclass_reader(cast(type, hint))
    if NoneType in get_args(hint):
        return _optional_reader(hint)
    if get_origin(hint) is tuple:
        return _tuple_reader(get_args(hint))
    if get_origin(hint) is dict:
        return _dict_reader(_reader(get_args(hint)[1]))
    if hint is Any:
        return lambda plain: plain
    if hint not in _SCALARS:
        raise TypeError(f"jsonable does not know the type {hint!r}")
    return _SCALARS[hint]


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


def _read_ints(plain: Any) -> tuple[int, ...]:
    """Read a list of whole numbers, the sound ones all at once."""
    return tuple(plain if all_whole(_list(plain)) else each(_read_int, plain))


_SCALARS: dict[Any, Reader] = {bool: _read_bool, str: _read_str, int: _read_int, float: _read_float}


def _optional_reader(hint: Any) -> Reader:
    (inner,) = (_reader(arg) for arg in get_args(hint) if arg is not NoneType)
    return lambda plain: None if plain is None else inner(plain)


def _tuple_reader(args: tuple[Any, ...]) -> Reader:
    if args[-1] is Ellipsis:
        return _many_reader(args[0])
    items = [_reader(arg) for arg in args]

    def read(plain: Any) -> tuple[Any, ...]:
        if len(_list(plain)) != len(items):
            raise Misfit(f"expected {len(items)} values, found {len(plain)}")
        return tuple(member(item, plain[i], i) for i, item in enumerate(items))

    return read


def _many_reader(hint: Any) -> Reader:
    item, length = _reader(hint), len(get_args(hint))
    if item is _read_int:
        return _read_ints
    if get_origin(hint) is not tuple or set(get_args(hint)) != {int}:
        return lambda plain: tuple(each(item, _list(plain)))

    def read_rows(plain: Any) -> tuple[Any, ...]:
        """Read rows of whole numbers, the sound ones all at once."""
        sound = all_rows(_list(plain), list) and set(map(len, plain)) == {length}
        return tuple(map(tuple, plain) if sound else each(item, plain))

    return read_rows


def _dict_reader(item: Reader) -> Reader:
    def read(plain: Any) -> dict[str, Any]:
        return {
            member(_read_str, key, key): member(item, value, key) for key, value in _object(plain).items()
        }

    return read


def _dataclass_reader(cls: type) -> Reader:
    hints = get_type_hints(cls)
    known = [(f, _reader(hints[f.name])) for f in fields(cls) if f.init]

    def read(plain: Any) -> Any:
        found = _object(plain)
        values: dict[str, Any] = {}
        for f, reader in known:
            if f.name in found:
                values[f.name] = member(reader, found[f.name], f.name)
            elif not has_default(f):
                raise Misfit("missing").inside(f.name)
        try:
            return cls(**values)
        except ValueError as error:
            raise Misfit(str(error)) from error

    return read


def _list(plain: Any) -> list[Any]:
    if not isinstance(plain, list):
        raise wrong("a list", plain)
    return plain


def _object(plain: Any) -> dict[str, Any]:
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
