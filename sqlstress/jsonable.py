"""Dataclasses to JSON-able plain data and back, driven by their type hints.

What both directions know: dataclasses, tuple[X, ...], tuple[X, Y], dict[str, X], X | None, str, int,
float and bool. Everything that does not fit raises ValueError and says where: `runs[3].trials[0].tps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Reader = Callable[[Any], Any]

_INT_LIMIT = 2**64
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


class _Misfit(ValueError):
    """What does not fit. Its path is put together on the way out, so that what fits costs nothing."""

    def __init__(self, text: str, path: str = "") -> None:
        self._text, self._path = text, path

    def inside(self, place: object) -> _Misfit:
        """Return the same, seen from around it: `place` is an index, or a name as in a hostile file."""
        step = f"[{place}]" if isinstance(place, int) else _short(place)
        dot = "." if self._path and not self._path.startswith("[") else ""
        return _Misfit(self._text, f"{step}{dot}{self._path}")

    def __str__(self) -> str:
        return f"{self._path}: {self._text}" if self._path else self._text


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


def has_default(f: Field[Any]) -> bool:
    """Say whether a dataclass can be made without this field."""
    return f.default is not MISSING or f.default_factory is not MISSING


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, int | float):
        return _checked_number(value)
    if isinstance(value, tuple | list):
        return _each(_plain, value)
    if isinstance(value, dict):
        return {_key(key): _member(_plain, item, key) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _member(_plain, getattr(value, f.name), f.name) for f in fields(value)}
    raise _Misfit(f"{type(value).__name__} has no JSON form")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise _Misfit("a key must be text")
    return key.encode("utf-8", "backslashreplace").decode("utf-8")


def _each(convert: Reader, values: Iterable[Any]) -> list[Any]:
    """Return the items of a list, converted; what does not fit learns which it was."""
    done: list[Any] = []
    try:
        for value in values:
            done.append(convert(value))
    except _Misfit as misfit:
        raise misfit.inside(len(done)) from None
    return done


def _member(convert: Reader, value: Any, name: object) -> Any:
    try:
        return convert(value)
    except _Misfit as misfit:
        raise misfit.inside(name) from None


def _short(name: object) -> str:
    """Return a name, which may come from a hostile file: short, and escaped."""
    text = ascii(name[: _NAME_LENGTH + 1])[1:-1] if isinstance(name, str) else type(name).__name__
    return text if len(text) <= _NAME_LENGTH else text[:_NAME_LENGTH] + "..."


def _wrong(expected: str, found: object) -> _Misfit:
    return _Misfit(f"expected {expected}, found {_KINDS.get(type(found), 'something else')}")


def _checked_number(value: float) -> float:
    if isinstance(value, int):
        if abs(value) >= _INT_LIMIT:
            raise _Misfit("a whole number of more than 64 bits")
    elif not math.isfinite(value):
        raise _Misfit("NaN and Infinity are not numbers that JSON can hold")
    return value


@cache
def _reader(hint: Any) -> Reader:
    if is_dataclass(hint):
        return _dataclass_reader(cast(type, hint))
    if NoneType in get_args(hint):
        return _optional_reader(hint)
    if get_origin(hint) is tuple:
        return _tuple_reader(get_args(hint))
    if get_origin(hint) is dict:
        return _dict_reader(_reader(get_args(hint)[1]))
    if hint not in _SCALARS:
        raise TypeError(f"jsonable does not know the type {hint!r}")
    return _SCALARS[hint]


def _read_bool(plain: Any) -> bool:
    if not isinstance(plain, bool):
        raise _wrong("true or false", plain)
    return plain


def _read_str(plain: Any) -> str:
    if not isinstance(plain, str):
        raise _wrong("text", plain)
    try:
        plain.encode("utf-8")  # Half a character would come in unnoticed and break whatever prints it.
    except UnicodeEncodeError as error:
        raise _Misfit("half of a surrogate pair is not text") from error
    return plain


def _read_int(plain: Any) -> int:
    if not isinstance(plain, int) or isinstance(plain, bool):
        raise _wrong("a whole number", plain)
    return int(_checked_number(plain))


def _read_float(plain: Any) -> float:
    if not isinstance(plain, int | float) or isinstance(plain, bool):
        raise _wrong("a number", plain)
    return float(_checked_number(plain))


def _read_ints(plain: Any) -> tuple[int, ...]:
    """Read a list of whole numbers, of which a report holds thousands: the sound ones all at once."""
    sound = set(map(type, _list(plain))) == {int} and max(plain) < _INT_LIMIT and min(plain) > -_INT_LIMIT
    return tuple(plain if sound else _each(_read_int, plain))


_SCALARS: dict[Any, Reader] = {bool: _read_bool, str: _read_str, int: _read_int, float: _read_float}


def _optional_reader(hint: Any) -> Reader:
    (inner,) = (_reader(arg) for arg in get_args(hint) if arg is not NoneType)
    return lambda plain: None if plain is None else inner(plain)


def _tuple_reader(args: tuple[Any, ...]) -> Reader:
    if args[-1] is Ellipsis:
        item = _reader(args[0])
        return _read_ints if item is _read_int else lambda plain: tuple(_each(item, _list(plain)))
    items = [_reader(arg) for arg in args]

    def read(plain: Any) -> tuple[Any, ...]:
        if len(_list(plain)) != len(items):
            raise _Misfit(f"expected {len(items)} values, found {len(plain)}")
        return tuple(_member(item, plain[i], i) for i, item in enumerate(items))

    return read


def _dict_reader(item: Reader) -> Reader:
    def read(plain: Any) -> dict[str, Any]:
        return {
            _member(_read_str, key, key): _member(item, value, key) for key, value in _object(plain).items()
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
                values[f.name] = _member(reader, found[f.name], f.name)
            elif not has_default(f):
                raise _Misfit("missing").inside(f.name)
        try:
            return cls(**values)
        except ValueError as error:
            raise _Misfit(str(error)) from error

    return read


def _list(plain: Any) -> list[Any]:
    if not isinstance(plain, list):
        raise _wrong("a list", plain)
    return plain


def _object(plain: Any) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise _wrong("an object", plain)
    return plain
