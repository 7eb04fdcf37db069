"""Series: one figure as it went on, for a line of a plot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one figure over time, or over the cycles of an experiment."""

    name: str
    """What was observed, such as "WAL size"."""
    unit: str
    """Unit of the values: ns, bytes, frames."""
    values: tuple[int, ...]
    """The values, in order."""
    times_ns: tuple[int, ...] = ()
    """When each was taken, in ns after the window opened; empty where they are counted: one a cycle."""
    worker: int | None = None
    """Whose figure it is; None: that of the database."""
