"""Dataclasses to JSON-able plain data and back, driven by their type hints.

What both directions know: dataclasses, tuple[X, ...], tuple[X, Y], dict[str, X], X | None, str, int,
float and bool. Everything that does not fit raises ValueError and says where: `runs[3].trials[0].tps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Reader = Callable[[Any, str], Any]

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


def to_plain(value: object, where: str = "") -> Any:
    """Return a value as dicts, lists, strings, numbers, booleans and None. Raises ValueError.

    Half characters, as in a file name that is not text, are written as their escapes: JSON has no
    other way to hold them that every reader accepts.
    """
    try:
        return _plain(value, where)
    except RecursionError as error:
        raise _problem(where, "nested too deeply") from error


def from_plain(type_: type[T], plain: Any, where: str = "") -> T:
    """Return plain data, as `json.loads` gives it, as a value of a type. Raises ValueError.

    Unknown keys are ignored, missing ones take their default.
    """
    read = _reader(cast(Any, type_))
    return cast(T, read(plain, where))


def has_default(f: Field[Any]) -> bool:
    """Say whether a dataclass can be made without this field."""
    return f.default is not MISSING or f.default_factory is not MISSING


def _plain(value: object, where: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, int | float):
        return _checked_number(value, where)
    if isinstance(value, tuple | list):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict):
        return {_key(key, where): _plain(item, _inside(where, key)) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name), _inside(where, f.name)) for f in fields(value)}
    raise _problem(where, f"{type(value).__name__} has no JSON form")


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise _problem(where, "a key must be text")
    return key.encode("utf-8", "backslashreplace").decode("utf-8")


def _inside(where: str, name: object) -> str:
    """Return the path of a member. The name may come from a hostile file: short, and escaped."""
    text = ascii(name[: _NAME_LENGTH + 1])[1:-1] if isinstance(name, str) else type(name).__name__
    short = text if len(text) <= _NAME_LENGTH else text[:_NAME_LENGTH] + "..."
    return f"{where}.{short}" if where else short


def _problem(where: str, text: str) -> ValueError:
    return ValueError(f"{where}: {text}" if where else text)


def _wrong(where: str, expected: str, found: object) -> ValueError:
    return _problem(where, f"expected {expected}, found {_KINDS.get(type(found), 'something else')}")


def _checked_number(value: float, where: str) -> float:
    if isinstance(value, int):
        if abs(value) >= _INT_LIMIT:
            raise _problem(where, "a whole number of more than 64 bits")
    elif not math.isfinite(value):
        raise _problem(where, "NaN and Infinity are not numbers that JSON can hold")
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


def _read_bool(plain: Any, where: str) -> bool:
    if not isinstance(plain, bool):
        raise _wrong(where, "true or false", plain)
    return plain


def _read_str(plain: Any, where: str) -> str:
    if not isinstance(plain, str):
        raise _wrong(where, "text", plain)
    try:
        plain.encode("utf-8")  # Half a character would come in unnoticed and break whatever prints it.
    except UnicodeEncodeError as error:
        raise _problem(where, "half of a surrogate pair is not text") from error
    return plain


def _read_int(plain: Any, where: str) -> int:
    if not isinstance(plain, int) or isinstance(plain, bool):
        raise _wrong(where, "a whole number", plain)
    return int(_checked_number(plain, where))


def _read_float(plain: Any, where: str) -> float:
    if not isinstance(plain, int | float) or isinstance(plain, bool):
        raise _wrong(where, "a number", plain)
    return float(_checked_number(plain, where))


_SCALARS: dict[Any, Reader] = {bool: _read_bool, str: _read_str, int: _read_int, float: _read_float}


def _optional_reader(hint: Any) -> Reader:
    (inner,) = (_reader(arg) for arg in get_args(hint) if arg is not NoneType)
    return lambda plain, where: None if plain is None else inner(plain, where)


def _tuple_reader(args: tuple[Any, ...]) -> Reader:
    if args[-1] is Ellipsis:
        item = _reader(args[0])
        return lambda plain, where: tuple(
            item(value, f"{where}[{i}]") for i, value in enumerate(_list(plain, where))
        )
    items = [_reader(arg) for arg in args]

    def read(plain: Any, where: str) -> tuple[Any, ...]:
        if len(_list(plain, where)) != len(items):
            raise _problem(where, f"expected {len(items)} values, found {len(plain)}")
        return tuple(
            item(value, f"{where}[{i}]") for i, (item, value) in enumerate(zip(items, plain, strict=True))
        )

    return read


def _dict_reader(item: Reader) -> Reader:
    def read(plain: Any, where: str) -> dict[str, Any]:
        return {
            _read_str(key, _inside(where, key)): item(value, _inside(where, key))
            for key, value in _object(plain, where).items()
        }

    return read


def _dataclass_reader(cls: type) -> Reader:
    hints = get_type_hints(cls)
    known = [(f, _reader(hints[f.name])) for f in fields(cls) if f.init]

    def read(plain: Any, where: str) -> Any:
        found = _object(plain, where)
        values: dict[str, Any] = {}
        for f, reader in known:
            if f.name in found:
                values[f.name] = reader(found[f.name], _inside(where, f.name))
            elif not has_default(f):
                raise _problem(_inside(where, f.name), "missing")
        return cls(**values)

    return read


def _list(plain: Any, where: str) -> list[Any]:
    if not isinstance(plain, list):
        raise _wrong(where, "a list", plain)
    return plain


def _object(plain: Any, where: str) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise _wrong(where, "an object", plain)
    return plain
