"""Conversion of dataclasses to plain data for JSON and back, by their type hints.

Plain data is what `json.loads` returns. Supported types are dataclasses, tuple[X, ...], tuple[X, Y],
dict[str, X], X | None, str, int, float and bool. Wrong data raises InvalidField, a ValueError, with its path:
`runs[3].trials[0].tps`. A class with another JSON form has methods `to_plain` and `from_plain`.
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
"""Function that converts plain data to a value, or a value to plain data. It may raise InvalidField."""

_NAME_LENGTH = 40
"""Maximum length of a key in the path of an error, in characters."""
_KINDS = {
    NoneType: "null",
    bool: "true or false",
    str: "text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


class InvalidField(ValueError):
    """Error for plain data of a wrong type, with its path, such as `runs[3].trials[0].tps`.

    While the error propagates, each caller prepends a key or an index to the path. To save time, no paths are
    computed for valid data.
    """

    def __init__(self, text: str, path: str = "") -> None:
        self._text, self._path = text, path

    def inside(self, step: object) -> InvalidField:
        """Return a copy of the error with `step`, an index or a key, prepended to the path.

        A long key is cut, and special characters are escaped.
        """
        if isinstance(step, int):
            text = f"[{step}]"
        else:
            text = ascii(step[: _NAME_LENGTH + 1])[1:-1] if isinstance(step, str) else type(step).__name__
            text = text if len(text) <= _NAME_LENGTH else text[:_NAME_LENGTH] + "..."
        dot = "." if self._path and not self._path.startswith("[") else ""
        return InvalidField(self._text, f"{text}{dot}{self._path}")

    def __str__(self) -> str:
        return f"{self._path}: {self._text}" if self._path else self._text


def convert_items(convert: Convert, values: Iterable[Any]) -> list[Any]:
    """Return the items of `values`, converted. Raise InvalidField with the index of the first wrong item."""
    converted: list[Any] = []
    try:
        for value in values:
            converted.append(convert(value))
    except InvalidField as error:
        raise error.inside(len(converted)) from None
    return converted


def convert_member(convert: Convert, value: Any, name: object) -> Any:
    """Return `value`, converted. If that raises InvalidField, prepend the key `name` to its path."""
    try:
        return convert(value)
    except InvalidField as error:
        raise error.inside(name) from None


T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Return a value as plain data. Raise ValueError if the value has no JSON form.

    A lone surrogate (half of a character, as in some file names) becomes an escape, because some parsers
    refuse lone surrogates.
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
        if all_integers(value):
            return list(value)
        return [*map(list, value)] if all_integer_rows(value, tuple) else convert_items(_plain, value)
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise InvalidField("a key must be text")
        return {_plain(key): convert_member(_plain, item, key) for key, item in value.items()}
    if hasattr(value, "to_plain") and not isinstance(value, type):
        return value.to_plain()
    if is_dataclass(value) and not isinstance(value, type):
        return plain_fields(value)
    raise InvalidField(f"{type(value).__name__} has no JSON form")


def plain_fields(value: Any, without: str = "") -> dict[str, Any]:
    """Return the fields of the dataclass instance `value`, except for `without`, as plain data by name.

    Raise InvalidField if a field has no JSON form.
    """
    return {
        name: convert_member(_plain, getattr(value, name), name)
        for name in _field_names(cast(Any, type(value)))
        if name != without
    }


@cache
def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


def _checked_number(value: float) -> float:
    if isinstance(value, int):
        if abs(value) >= INT_LIMIT:
            raise InvalidField("a whole number of more than 64 bits")
    elif not math.isfinite(value):
        raise InvalidField("NaN and Infinity are not numbers that JSON can hold")
    return value


def from_plain(type_: type[T], plain: Any) -> T:
    """Return plain data as a value of the type `type_`. Raise ValueError if the data is wrong.

    Unknown keys are ignored. A field whose key is missing has its default.
    """
    return cast(T, reader(cast(Any, type_))(plain))


@cache
def reader(hint: Any) -> Convert:
    """Return a function from plain data to a value of type `hint`. Raise TypeError for unsupported types."""
    if hasattr(hint, "from_plain"):
        return lambda plain: hint.from_plain(require_object(plain))
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
            convert_member(_read_str, key, key): convert_member(item, value, key)
            for key, value in require_object(plain).items()
        }
    raise TypeError(f"jsonable does not know the type {hint!r}")


def wrong(expected: str, found: object) -> InvalidField:
    """Return the exception for `found`, a value of a wrong type. `expected` names the right type."""
    return InvalidField(f"expected {expected}, found {_KINDS.get(type(found), 'something else')}")


def _read_bool(plain: Any) -> bool:
    if not isinstance(plain, bool):
        raise wrong("true or false", plain)
    return plain


def _read_str(plain: Any) -> str:
    if not isinstance(plain, str):
        raise wrong("text", plain)
    try:
        plain.encode("utf-8")  # Fails for a lone surrogate, which no code could print.
    except UnicodeEncodeError as error:
        raise InvalidField("half of a surrogate pair is not text") from error
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
        if len(_need_list(plain)) != len(items):
            raise InvalidField(f"expected {len(items)} values, found {len(plain)}")
        return tuple(convert_member(item, plain[i], i) for i, item in enumerate(items))

    return read


def _many_reader(hint: Any) -> Convert:
    """Return a function from a list of any length to a tuple whose items have the type `hint`.

    Most of a report is lists of integers, and of rows (lists) of integers. To save time, such a list is
    checked as a whole. If the check fails, the items are converted one by one, to find the path of the wrong
    item.
    """
    item, length = reader(hint), len(get_args(hint))
    if item is _read_int:
        return lambda plain: tuple(plain if all_integers(_need_list(plain)) else convert_items(item, plain))
    if get_origin(hint) is not tuple or set(get_args(hint)) != {int}:
        return lambda plain: tuple(convert_items(item, _need_list(plain)))

    def read_rows(plain: Any) -> tuple[Any, ...]:
        is_valid = all_integer_rows(_need_list(plain), list) and set(map(len, plain)) == {length}
        return tuple(map(tuple, plain) if is_valid else convert_items(item, plain))

    return read_rows


def _dataclass_reader(cls: type) -> Convert:

    def read(plain: Any) -> Any:
        values = read_fields(cls, require_object(plain))
        try:
            return cls(**values)
        except ValueError as error:
            raise InvalidField(str(error)) from error

    return read


def read_fields(cls: type, found: Mapping[str, Any], without: str = "") -> dict[str, Any]:
    """Return the fields of the dataclass `cls`, except for `without`, from a JSON object, by name.

    Raise InvalidField if a value is wrong, or if a field without a default is missing.
    """
    values: dict[str, Any] = {}
    for field, convert in _field_readers(cast(Any, cls)):
        if field.name in found and field.name != without:
            values[field.name] = convert_member(convert, found[field.name], field.name)
        elif not has_default(field):
            raise InvalidField("missing").inside(field.name)
    return values


@cache
def _field_readers(cls: Any) -> list[tuple[Field[Any], Convert]]:
    hints = get_type_hints(cls)
    return [(field, reader(hints[field.name])) for field in fields(cls) if field.init]


def _need_list(plain: Any) -> list[Any]:
    if not isinstance(plain, list):
        raise wrong("a list", plain)
    return plain


def require_object(plain: Any) -> dict[str, Any]:
    """Return `plain` if it is a JSON object; else raise InvalidField."""
    if not isinstance(plain, dict):
        raise wrong("an object", plain)
    return plain


INT_LIMIT = 2**64
"""Limit of integers in a report: their absolute values must be below it."""


def all_integers(values: Sequence[Any]) -> bool:
    """Return whether a list is not empty and has only integers below INT_LIMIT in absolute value."""
    return set(map(type, values)) == {int} and max(values) < INT_LIMIT and min(values) > -INT_LIMIT


def all_integer_rows(values: Sequence[Any], kind: type) -> bool:
    """Return whether a list is not empty and has only non-empty rows of integers below INT_LIMIT.

    `kind` is the type of the rows: list or tuple.
    """
    return set(map(type, values)) == {kind} and all(values) and all_integers([*chain.from_iterable(values)])
