"""Durations, numbers and counts as readable text, and a parser of durations."""

from __future__ import annotations

import math
import re
from decimal import Decimal

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000

_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(us|ms|s|m|h)?")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as "500ms", "2s", "2m", "1h" or "2" (seconds).

    Raise ValueError for other texts.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = float(match[1]) * _SECONDS[match[2] or "s"] if match else math.inf
    if not math.isfinite(seconds):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise ValueError(f"{shown!r} is not a duration: write 500ms, 2s, 2m or plain seconds")
    return seconds


def format_duration(seconds: float) -> str:
    """Return a duration as text for `parse_duration`, with six significant digits: 0.5 → "500ms"."""
    if seconds and seconds < 1:
        return f"{_plain_decimal(seconds * 1000)}ms"
    return f"{_plain_decimal(seconds)}s"


def _plain_decimal(value: float) -> str:
    return f"{Decimal(f'{value:g}'):f}"


def format_count(value: float) -> str:
    """Return a number rounded to an integer, with thousands separators: 12345.6 → "12,346"."""
    return f"{value:,.0f}"


def format_ms(ns: float) -> str:
    """Return a time as text in ms, with three significant digits, but at most three decimals: "1.23"."""
    ms = ns / NS_PER_MS
    # The limits allow for rounding: 9.996 becomes "10.0", not "10.00".
    if ms >= 99.95:
        return f"{ms:.0f}"
    if ms >= 9.995:
        return f"{ms:.1f}"
    if ms >= 0.9995:
        return f"{ms:.2f}"
    return f"{ms:.3f}"


def finite(value: float | None) -> float | None:
    """Return a number as a float; None for None, infinity, NaN, and integers too large for a float."""
    try:
        number = float(value) if value is not None else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def rounded(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits: 12345.6 → "12,300"; "?" for infinity and NaN.

    Very large and very small numbers have an exponent.
    """
    number = finite(value)
    if number is None:
        return "?"
    scientific = f"{number:.{digits - 1}e}"
    exponent = int(scientific.partition("e")[2])
    if number and not -9 <= exponent < 12:
        return scientific
    return f"{float(scientific):,.{max(0, digits - 1 - exponent) if number else 0}f}"


def digits(count: int) -> str:
    """Return a count as text: 12345 → "12,345". Counts of a billion or more have three significant digits."""
    return f"{count:,}" if abs(count) < 1_000_000_000 else rounded(count)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, in the singular or plural: "1 kill", "1,000 kills", "5 passes"."""
    ending = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{digits(count)} {noun}{ending if count != 1 else ''}"


def verb(count: int, singular: str, several: str) -> str:
    """Return the form of a verb that agrees with a count: `singular` for 1, else `several`."""
    return singular if count == 1 else several
