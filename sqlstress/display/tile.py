"""A tile of a page: a figure that is looked for first."""

from __future__ import annotations

from sqlstress.analysis.finding import PROVED, UNPROVED, WRONG, Finding

Tile = tuple[str, str, str]
"""A figure, what it is, and how it stands: ok, failed, unknown, or neither."""


def came_of(verdict: Finding, proved: str, what: str) -> Tile:
    """Return the tile of a verdict; `proved` is what it says when all is well."""
    values = {PROVED: (proved, "ok"), UNPROVED: ("unproved", "unknown"), WRONG: ("FAILED", "failed")}
    value, kind = values[verdict.code]
    return value, what, kind
