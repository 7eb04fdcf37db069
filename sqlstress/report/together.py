"""When and where a trial was a part of a load that several hosts put on one server together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Together:
    """What one host says of its part of a common trial. All times are of the server's clock."""

    meeting: str
    """Which common measurement it was: the same of all its hosts."""
    step: int
    """Which of its trials, from 0."""
    host: str
    """What this host is called in it."""
    asked: tuple[str, ...]
    """The hosts that were to take part, this one included."""
    began: tuple[str, ...]
    """Those that were ready, and began this trial together."""
    opens_ns: int
    """When this host's window opened, in ns since 1970 by the server's clock."""
    closes_ns: int
    """When it closed."""
    error_ns: int
    """By how much each of the two may be off at most: half of the shortest round trip to the server."""
    clock_ns: int
    """By how much this host's clock was ahead of the server's."""
    clock_error_ns: int
    """By how much that may be off at most."""
