"""Plain data as the JSON text of a report: a line for each value, and one for each list of numbers.

`json.dumps` writes lines of its own in Python, ten times as slowly as it writes none in C: what a report
has most of, lists of numbers and of rows of them, is left to C. A histogram of a thousand pairs on as many
lines would be twice as long, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

_NUMBERS = frozenset({int, float})
_dumps = json.JSONEncoder(allow_nan=False).encode


def json_text(plain: Any) -> str:
    """Return dicts, lists, texts, numbers, booleans and None as JSON. Raises ValueError on NaN."""
    pieces: list[str] = []
    _write(plain, "\n", pieces.append)
    return "".join(pieces)


def _write(value: Any, line: str, put: Callable[[str], None]) -> None:
    """Write a value; `line` begins a line as far in as the value stands."""
    if isinstance(value, str):
        put(quoted(value))
    elif isinstance(value, dict) and value:
        _write_members(value, line, put)
    elif isinstance(value, list) and value and not _is_numeric(value):
        _write_items(value, line, put)
    else:
        put(_dumps(value))


def _is_numeric(items: list[Any]) -> bool:
    """Say whether a list holds numbers, or rows of them, and nothing else."""
    kinds = set(map(type, items))
    return kinds <= _NUMBERS or (kinds == {list} and set(map(type, chain.from_iterable(items))) <= _NUMBERS)


def _write_members(members: dict[str, Any], line: str, put: Callable[[str], None]) -> None:
    inner, before = f"{line} ", "{"
    for key, value in members.items():
        put(f"{before}{inner}{quoted(key)}: ")
        if type(value) is int:
            put(repr(value))
        else:
            _write(value, inner, put)
        before = ","
    put(f"{line}}}")


def _write_items(items: list[Any], line: str, put: Callable[[str], None]) -> None:
    inner, before = f"{line} ", "["
    for item in items:
        put(f"{before}{inner}")
        _write(item, inner, put)
        before = ","
    put(f"{line}]")
