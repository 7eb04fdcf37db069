"""Numbers in a table's cells: exact where that fits, and of bounded width whatever the number."""

from __future__ import annotations

from sqlstress.analysis.wording import finite, rounded
from sqlstress.statistics.units import NS_PER_MS, format_count, format_ms

MISSING = "–"  # noqa: RUF001 - a dash as wide as a digit, for "no figure"
UNKNOWN = "?"


def count_cell(value: float | None) -> str | None:
    """Write a count or a rate in at most nine characters: 1234567.8 → "1,234,568"."""
    number = finite(value)
    if number is None:
        return None
    if abs(number) >= 9_999_999.5:
        return f"{number:.1e}"
    return f"{number:.2f}" if 0 < abs(number) < 10 else format_count(number)


def ms_cell(ns: float | None) -> str | None:
    """Write nanoseconds as milliseconds in at most seven characters: 60_000_000_000 → "60,000"."""
    number = finite(ns)
    if number is None:
        return None
    ms = number / NS_PER_MS
    if not 0 <= ms < 999_999.5:
        return f"{ms:.0e}"
    return format_count(ms) if ms >= 1000 else format_ms(number)


def seconds_cell(seconds: float | None) -> str | None:
    """Write seconds with three significant digits or more, in at most five characters up to a day."""
    number = finite(seconds)
    if number is None:
        return None
    if not 0 <= number < 99_999.5:
        return f"{number:.0e}"
    places = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{places}f}"


def share_cell(share: float | None) -> str | None:
    """Write a share, 0 to 1, with two decimals."""
    number = finite(share)
    return None if number is None else f"{number:.2f}" if abs(number) < 100 else f"{number:.0e}"


def ratio_cell(ratio: float | None) -> str | None:
    """Write a ratio: with two decimals where those say something, in at most eight characters."""
    number = finite(ratio)
    if number is None:
        return None
    return f"{number:.2f}" if 0.095 <= number < 999.995 else rounded(number, 2)


def whole_cell(value: int) -> str:
    """Write a small whole number as it is."""
    return str(value) if abs(value) < 100_000 else f"{value:.0e}"
