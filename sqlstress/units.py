"""Durations and counts, as people write and read them."""

from __future__ import annotations

import re

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000

_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(us|ms|s|m|h)?")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Return seconds: "500ms", "2s", "2m", "1h", or plain seconds. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip().lower())
    if not found:
        raise ValueError(f"{text!r} is not a duration: write 500ms, 2s, 2m or plain seconds")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def format_duration(seconds: float) -> str:
    """Write seconds the shortest way that parse_duration reads back: 0.5 → "500ms", 2.0 → "2s"."""
    if seconds and seconds < 1:
        return f"{seconds * 1000:g}ms"
    return f"{seconds:g}s"


def format_count(value: float) -> str:
    """Write a count with thousands separators: 12345.6 → "12,346"."""
    return f"{value:,.0f}"


def format_ms(ns: float) -> str:
    """Write nanoseconds as milliseconds with three significant digits: 1_234_000 → "1.23"."""
    ms = ns / NS_PER_MS
    if ms >= 100:
        return f"{ms:.0f}"
    if ms >= 10:
        return f"{ms:.1f}"
    if ms >= 1:
        return f"{ms:.2f}"
    return f"{ms:.3f}"
