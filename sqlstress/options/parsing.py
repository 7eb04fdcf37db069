"""Parsers of option values from the command line (strings) or TOML.

Each parser raises ValueError, whose message states the problem and the remedy, without a full stop. Parsers
of lists return a tuple in the given order, without repeated values.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from sqlstress.statistics.units import parse_duration

Parse = Callable[[Any], Any]
"""Function that parses a value. Raises ValueError for an invalid value."""

DAY_S = 86_400.0
MAX_NUMBERS = 10_000
"""Maximum number of values in a list, including repeated values: a larger list would need much memory."""
_RANGE = re.compile(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*")
MAX_UNITLESS_S = 60.0
"""Maximum duration without a unit, in seconds: "2000" probably means milliseconds."""
_NUMBER = re.compile(r"\s*(\d{1,12}(?:\.\d{1,12})?|\.\d{1,12})\s*")
_PRAGMA = re.compile(r"([a-z_]{1,64})=([-+.\w]{1,64})", re.IGNORECASE | re.ASCII)
_SWITCH: dict[str | int, bool] = {
    **dict.fromkeys(("on", "true", "1", True), True),
    **dict.fromkeys(("off", "false", "0", False), False),
}
_PRAGMAS_WITH_OPTIONS = {
    "journal_mode",
    "synchronous",
    "fullfsync",
    "wal_autocheckpoint",
    "page_size",
    "cache_size",
    "mmap_size",
    "busy_timeout",
}


def abbreviate(value: Any) -> str:
    """Return a value as one line of text, cut after 40 characters, for an error message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer with thousands of digits, or a deeply nested list
        text = "what was given"
    return text if len(text) <= 40 else f"{text[:40]}..."


MAX_SUGGESTIONS = 3
"""Maximum number of names in a suggestion."""
MAX_LISTED_CHARACTERS = 120
"""Maximum length of a list of valid names in an error. A longer list is cut to two names."""


def suggestion(word: object, known: Iterable[str], most: int = 1) -> str:
    """Return " Did you mean ...?" with up to `most` known names similar to `word`; "" if there are none."""
    if not isinstance(word, str):
        return ""
    near = difflib.get_close_matches(word.strip().lower()[:100], list(known), n=most, cutoff=0.6)
    return f" Did you mean {join_alternatives(near)}?" if near else ""


def join_alternatives(names: Sequence[str]) -> str:
    """Return names as a choice: "int, text or blob"."""
    *first_names, last = names
    return f"{', '.join(first_names)} or {last}" if first_names else last


def unknown_name_error(value: Any, names: Sequence[str]) -> ValueError:
    """Return the error for a value that is not in `names`, with the most similar names."""
    near, expected = suggestion(value, names, MAX_SUGGESTIONS), f"one of {', '.join(names)}"
    if len(expected) > MAX_LISTED_CHARACTERS:
        expected = f"a value such as {join_alternatives(names[:2])}"
    return ValueError(f"{abbreviate(value)} is not {expected}{'.' if near else ''}{near}")


def sentence(error: object) -> str:
    """Return the message of an error, ending with . ? or !"""
    text = str(error)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def whole_number(least: int, most: int) -> Parse:
    """Return a parser of whole numbers from `least` to `most`."""

    def parse(value: Any) -> int:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        if isinstance(value, str) and re.fullmatch(r"\s*[-+]?\d(_?\d){0,18}\s*", value):
            number = int(value)
        if number is None or not least <= number <= most:
            raise ValueError(f"{abbreviate(value)} is not a whole number from {least:,} to {most:,}")
        return number

    return parse


def schema_keywords(parse: Parse) -> dict[str, Any]:
    """Return the JSON Schema keywords (an enum or bounds) for the values of a parser."""
    return dict(getattr(parse, "constraint", {}))


def _with_keywords(parse: Parse, **keywords: Any) -> Parse:
    parse.constraint = keywords  # type: ignore[attr-defined]
    return parse


def percentage(least: float, most: float) -> Parse:
    """Return a parser of shares such as "90%" or 0.9, from `least` to `most` (both from 0 to 1)."""

    def parse(value: Any) -> float:
        text = value.strip() if isinstance(value, str) else value
        is_percent = isinstance(text, str) and text.endswith("%")
        try:
            share = float(text[:-1]) / 100 if is_percent else float(text)
        except (TypeError, ValueError, OverflowError):
            share = math.nan
        if isinstance(value, bool) or not least <= share <= most:
            if is_percent and not math.isnan(share):
                raise ValueError(f"{abbreviate(value)} is not from {least * 100:.4g}% to {most * 100:.4g}%")
            hint = "write 10% or 0.1"
            if 1 < share <= 100 and least <= share / 100 <= most:
                hint = f"write {share:.15g}% or {share / 100:.15g}"
            raise ValueError(f"{abbreviate(value)} is not a share from {least:.4g} to {most:.4g}: {hint}")
        return share

    return _with_keywords(parse, minimum=least, maximum=most)


ratio = percentage(0, 1)
"""Parser of a share from 0 to 1."""


def choice(*names: str) -> Parse:
    """Return a parser that accepts one of these names, also in capital letters."""

    def parse(value: Any) -> str:
        if isinstance(value, str) and value.lower() in names:
            return value.lower()
        raise unknown_name_error(value, names)

    return _with_keywords(parse, enum=[*names])


def choices(*names: str) -> Parse:
    """Return a parser of lists of these names, such as "a,b"."""
    parse_name = choice(*names)

    def parse(value: Any) -> tuple[str, ...]:
        parts = _parts(value)
        if not parts:
            raise ValueError(f"the list is empty: name some of {', '.join(names)}")
        return tuple(
            dict.fromkeys(parse_name(part.strip() if isinstance(part, str) else part) for part in parts)
        )

    return _with_keywords(parse, enum=[*names])


def _parts(value: Any) -> list[Any]:
    """Return the items of a list in TOML or on the command line ("a,b"); a single item as a list."""
    return value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]


def switch(value: Any) -> bool:
    """Parse a switch: on, true or 1; off, false or 0."""
    word = value.lower() if isinstance(value, str) else value
    result = _SWITCH.get(word) if isinstance(word, str | int) else None
    if result is None:
        raise ValueError(f"{abbreviate(value)} is not on or off")
    return result


def duration_with_unit(least_s: float) -> Parse:
    """Return a parser of durations like `duration`, but a number without a unit is an error."""
    return duration(least_s, 0.0)


def duration(least_s: float, most_bare_s: float = MAX_UNITLESS_S) -> Parse:
    """Return a parser of durations from `least_s` seconds to a day; parsed values are in seconds.

    A number without a unit means seconds, and may be at most `most_bare_s`.
    """

    def parse(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"{abbreviate(value)} is not a duration: write 500ms, 2s, 2m or plain seconds")
        seconds = parse_duration(value) if isinstance(value, str) else value
        if most_bare_s < seconds <= DAY_S and (number := _NUMBER.fullmatch(str(value))):
            units = ("ms", "s") if seconds / 1000 >= least_s else ("s",)
            raise ValueError(
                f"{number[1]} needs a unit: write {join_alternatives([number[1] + unit for unit in units])}"
            )
        if not least_s <= seconds <= DAY_S:
            raise ValueError(f"{abbreviate(value)} is not a duration from {least_s:g} s to a day")
        return float(seconds)

    return parse


_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([kMGT]?)B?\s*", re.IGNORECASE)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def byte_size(least: int, most: int) -> Parse:
    """Return a parser of sizes such as "100MB", "1.5GB" or a number of bytes. Parsed values are in bytes."""

    def parse(value: Any) -> int:
        match = None if isinstance(value, bool) else _SIZE.fullmatch(str(value)[:40])
        if not match:
            raise ValueError(f"{abbreviate(value)} is not a size: write 100MB, 1GB or a number of bytes")
        size = round(float(match[1]) * _FACTORS[match[2].lower()])
        if not least <= size <= most:
            raise ValueError(f"{abbreviate(value)} is not a size from {least:,} to {most:,} bytes")
        return size

    return parse


def milliseconds(least_s: float) -> Parse:
    """Return a parser of durations from `least_s` seconds to a day. Parsed values are in whole ms."""
    seconds = duration(least_s)
    return lambda value: round(seconds(value) * 1000)


def ranges(most: int) -> Parse:
    """Return a parser of lists of numbers up to `most`: "4", "1-8" or "1,2,4-6"."""
    return _number_list(
        _RANGE, most, "numbers", "a number or a range", "4, 1-8 or 1,2,4-6", within=f"1-{most}"
    )


def _number_list(item: re.Pattern[str], most: int, noun: str, kind: str, examples: str, within: str) -> Parse:
    """Return a parser of lists of numbers up to `most`.

    The pattern `item` matches a number or a range. Its groups are the first number, the last number and,
    perhaps, the step. The str parameters are parts of error messages.
    """

    def span(value: Any) -> range:
        if isinstance(value, int) and not isinstance(value, bool):
            first, last, steps = value, value, [1]
        elif isinstance(value, str) and (match := item.fullmatch(value)):
            start, end, *step_texts = match.groups()
            first, last, steps = int(start), int(end or start), [int(text or 1) for text in step_texts]
        else:
            raise ValueError(f"{abbreviate(value)} is not {kind}: write {examples}")
        if not (1 <= first <= most and 1 <= last <= most):
            raise ValueError(f"{abbreviate(value)} is not within {within}")
        if 0 in steps:
            raise ValueError(f"{abbreviate(value)} has a step of 0: write a step of 1 or more")
        if first > last:
            step = "".join(f"/{step}" for step in steps)
            raise ValueError(f"{abbreviate(value)} is reversed: write {last}-{first}{step}")
        return range(first, last + 1, *steps)

    def parse(value: Any) -> tuple[int, ...]:
        all_numbers = (number for part in _parts(value) for number in span(part))
        numbers = list(islice(all_numbers, MAX_NUMBERS + 1))
        if not numbers:
            raise ValueError(f"the list is empty: write {examples}")
        if len(numbers) > MAX_NUMBERS:
            raise ValueError(f"{abbreviate(value)} is more than {MAX_NUMBERS:,} {noun}")
        return tuple(dict.fromkeys(numbers))

    return parse


def power_of_two(least: int, most: int) -> Parse:
    """Return a parser of powers of two from `least` to `most`."""

    def parse(value: Any) -> int:
        number = int(whole_number(1, most)(value))
        if number < least or number & (number - 1):
            raise ValueError(f"{abbreviate(value)} is not a power of two from {least} to {most}")
        return number

    return parse


def pragmas(value: Any) -> tuple[tuple[str, str], ...]:
    """Parse a text NAME=VALUE, or a list of texts, into pairs (name, value)."""
    pairs = []
    for text in value if isinstance(value, list | tuple) else [value]:
        match = _PRAGMA.fullmatch(text.strip()) if isinstance(text, str) else None
        if not match:
            raise ValueError(f"{abbreviate(text)} is not NAME=VALUE with a plain word or number")
        name = match[1].lower()
        if name in _PRAGMAS_WITH_OPTIONS:
            raise ValueError(f"{name} has its own option: use --{name.replace('_', '-')}")
        pairs.append((name, match[2]))
    return tuple(pairs)


MAX_RATE = 1_000_000
"""Maximum rate, in operations per second."""
_RATES = re.compile(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9})\s*/\s*(\d{1,9}))?\s*")


rates = _number_list(
    _RATES,
    MAX_RATE,
    "rates",
    "a rate",
    "2000, 500,1000 or 500-2000/500",
    within=f"1-{MAX_RATE:,} operations per second",
)
"""Parser of lists of rates: "2000", "500,1000,2000" or "500-2000/500"."""


def word_list(value: Any) -> tuple[str, ...]:
    """Parse a list of words, such as a command, into a tuple."""
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ValueError(f"{abbreviate(value)} is not a list of words")


_NAME = re.compile(r"[\w.+-]{1,24}", re.ASCII)


def case_name(value: Any) -> str:
    """Parse the name of a case: up to 24 letters, digits and . + - _, or an empty text."""
    if isinstance(value, str) and (not value or _NAME.fullmatch(value)):
        return value
    raise ValueError(f"{str(value)[:40]!r} is not a name of 1 to 24 letters, digits and . + - _")
