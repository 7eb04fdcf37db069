"""How the value of an option is read, from the command line (a string) or from TOML.

Every parser raises ValueError with a sentence that says what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from sqlstress.statistics.units import parse_duration

Parse = Callable[[Any], Any]

DAY_S = 86_400.0
MOST_NUMBERS = 10_000
"""Numbers of a list, repetitions included: "1-1000,1-1000,..." takes time and memory before it is known."""
_RANGE = re.compile(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*")
BARE_S = 60.0
"""The longest duration that is taken for seconds without a unit: nobody means 2,000 s by "2000"."""
_BARE = re.compile(r"\s*(\d{1,12}(?:\.\d{1,12})?|\.\d{1,12})\s*")
_PRAGMA = re.compile(r"([a-z_]{1,64})=([-+.\w]{1,64})", re.IGNORECASE | re.ASCII)
_SWITCH: dict[str | int, bool] = {
    **dict.fromkeys(("on", "true", "1", True), True),
    **dict.fromkeys(("off", "false", "0", False), False),
}
_OWN_PRAGMAS = {
    "journal_mode",
    "synchronous",
    "fullfsync",
    "wal_autocheckpoint",
    "page_size",
    "cache_size",
    "mmap_size",
    "busy_timeout",
}


def shown(value: Any) -> str:
    """Write a value that was given into an error message, whatever it is: in one line, cut short."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no integer of thousands of digits
        text = "what was given"
    return text if len(text) <= 40 else f"{text[:40]}..."


def whole(least: int, most: int) -> Parse:
    """Return a parser of whole numbers within bounds."""

    def parse(value: Any) -> int:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        if isinstance(value, str) and re.fullmatch(r"\s*[-+]?\d(_?\d){0,18}\s*", value):
            number = int(value)
        if number is None or not least <= number <= most:
            raise ValueError(f"{shown(value)} is not a whole number from {least:,} to {most:,}")
        return number

    return parse


def constraint(parse: Parse) -> dict[str, Any]:
    """Return what a JSON Schema can say of the values that a parser gives: its enum, or its bounds."""
    return dict(getattr(parse, "constraint", {}))


def _constrained(parse: Parse, **known: Any) -> Parse:
    parse.constraint = known  # type: ignore[attr-defined]
    return parse


def percentage(least: float, most: float) -> Parse:
    """Return a parser of shares as people write them, "90%" or 0.9, within bounds that are shares."""

    def parse(value: Any) -> float:
        share = _share(value)
        if not least <= share <= most:
            told = "write 10% or 0.1"
            if 1 < share <= 100 and least <= share / 100 <= most:
                told = f"write {share:.15g}% or {share / 100:.15g}"
            raise ValueError(f"{shown(value)} is not a share from {least:.4g} to {most:.4g}: {told}")
        return share

    return _constrained(parse, minimum=least, maximum=most)


def _share(value: Any) -> float:
    """Return the share that is written, within any bounds; -1 for what is none."""
    text = value.strip() if isinstance(value, str) else value
    is_percent = isinstance(text, str) and text.endswith("%")
    try:
        share = float(text[:-1]) / 100 if is_percent else float(text)
    except (TypeError, ValueError, OverflowError):
        return -1.0
    return -1.0 if isinstance(value, bool) else share


ratio = percentage(0, 1)
"""Reads a share of anything: 0 to 1."""


def choice(*names: str) -> Parse:
    """Return a parser of one of these names."""

    def parse(value: Any) -> str:
        if isinstance(value, str) and value.lower() in names:
            return value.lower()
        raise ValueError(f"{shown(value)} is not one of {', '.join(names)}")

    return _constrained(parse, enum=[*names])


def choices(*names: str) -> Parse:
    """Return a parser of some of these names: "a,b", in the order as written, without repetitions."""
    one = choice(*names)

    def parse(value: Any) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
        if not parts:
            raise ValueError(f"an empty list names none of {', '.join(names)}")
        return tuple(dict.fromkeys(one(part.strip() if isinstance(part, str) else part) for part in parts))

    return _constrained(parse, enum=[*names])


def switch(value: Any) -> bool:
    """Read on or off."""
    word = value.lower() if isinstance(value, str) else value
    found = _SWITCH.get(word) if isinstance(word, str | int) else None
    if found is None:
        raise ValueError(f"{shown(value)} is neither on nor off")
    return found


def duration(least_s: float) -> Parse:
    """Return a parser of durations up to a day, in seconds. Only a few seconds may stand without a unit."""
    return _timed(least_s, BARE_S)


def duration_with_unit(least_s: float) -> Parse:
    """Return the same for what is counted in milliseconds elsewhere, or mostly: only 0 needs no unit."""
    return _timed(least_s, 0.0)


def _timed(least_s: float, most_bare_s: float) -> Parse:
    def parse(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"{shown(value)} is not a duration: write 500ms, 2s, 2m or plain seconds")
        seconds = parse_duration(value) if isinstance(value, str) else value
        if most_bare_s < seconds <= DAY_S and (number := _BARE.fullmatch(str(value))):
            raise ValueError(
                f"{number[1]} may mean milliseconds or seconds: write {number[1]}ms or {number[1]}s"
            )
        if not least_s <= seconds <= DAY_S:
            raise ValueError(f"{shown(value)} is not a duration from {least_s:g} s to a day")
        return float(seconds)

    return parse


def milliseconds(least_s: float) -> Parse:
    """Return a parser of durations up to a day with their unit, in whole milliseconds."""
    seconds = duration_with_unit(least_s)
    return lambda value: round(seconds(value) * 1000)


def ranges(most: int) -> Parse:
    """Return a parser of "4", "1-8", "1,2,4-6": in the order as written, without repetitions."""

    def parse(value: Any) -> tuple[int, ...]:
        parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
        if not parts:
            raise ValueError("an empty list is not a list of numbers: write 4, 1-8 or 1,2,4-6")
        numbers = list(islice((number for part in parts for number in _range(part, most)), MOST_NUMBERS + 1))
        if len(numbers) > MOST_NUMBERS:
            raise ValueError(f"{shown(value)} is more than {MOST_NUMBERS:,} numbers")
        return tuple(dict.fromkeys(numbers))

    return parse


def _range(value: Any, most: int) -> range:
    if isinstance(value, int) and not isinstance(value, bool):
        first = last = value
    elif isinstance(value, str) and (found := _RANGE.fullmatch(value)):
        first, last = int(found[1]), int(found[2] or found[1])
    else:
        raise ValueError(f"{shown(value)} is not a number or a range: write 4, 1-8 or 1,2,4-6")
    if first > last:
        raise ValueError(f"{shown(value)} runs backwards: write {last}-{first}")
    if not 1 <= first <= last <= most:
        raise ValueError(f"{shown(value)} does not lie within 1-{most}")
    return range(first, last + 1)


def power_of_two(least: int, most: int) -> Parse:
    """Return a parser of powers of two."""

    def parse(value: Any) -> int:
        number = int(whole(1, most)(value))
        if number < least or number & (number - 1):
            raise ValueError(f"{shown(value)} is not a power of two from {least} to {most}")
        return number

    return parse


def pragma(value: Any) -> tuple[str, str]:
    """Read NAME=VALUE."""
    found = _PRAGMA.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found:
        raise ValueError(f"{shown(value)} is not NAME=VALUE with a plain word or number")
    name = found[1].lower()
    if name in _OWN_PRAGMAS:
        raise ValueError(f"{name} has an option of its own: use --{name.replace('_', '-')}")
    return name, found[2]


def pragmas(value: Any) -> tuple[tuple[str, str], ...]:
    """Read several NAME=VALUE."""
    return tuple(pragma(each) for each in (value if isinstance(value, list | tuple) else [value]))


# How rates are read: 2000, a list of them, or a range with a step.


MOST_RATE = 1_000_000
_RATES = re.compile(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9})\s*/\s*(\d{1,9}))?\s*")


def rates(value: Any) -> tuple[int, ...]:
    """Read "2000", "500,1000,2000" or "500-2000/500": in the order as written, without repetitions."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    numbers = list(islice((number for part in parts for number in _rate_range(part)), MOST_NUMBERS + 1))
    if not numbers:
        raise ValueError("an empty list names no rate: write 2000, 500,1000 or 500-2000/500")
    if len(numbers) > MOST_NUMBERS:
        raise ValueError(f"{shown(value)} is more than {MOST_NUMBERS:,} rates")
    return tuple(dict.fromkeys(numbers))


def _rate_range(value: Any) -> range:
    first = last = step = 0
    if isinstance(value, int) and not isinstance(value, bool):
        first, last, step = value, value, 1
    elif isinstance(value, str) and (found := _RATES.fullmatch(value)):
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
    else:
        raise ValueError(f"{shown(value)} is not a rate: write 2000, 500,1000 or 500-2000/500")
    if first > last:
        raise ValueError(f"{shown(value)} runs backwards: write {last}-{first}/{step}")
    if not 1 <= first <= last <= MOST_RATE or not step:
        raise ValueError(f"{shown(value)} does not lie within 1-{MOST_RATE:,} operations a second")
    return range(first, last + 1, step)
