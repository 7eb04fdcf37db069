"""Something that the workers of a trial have met, told once however often it was."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST = 200
"""Sightings that a trial keeps."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something that the workers of a trial have met: a kind of connection, a kind of exception."""

    topic: str
    """What it is, such as "connection" or "exception"."""
    what: str
    """Its kind, such as the name that SQLite has for an exception."""
    count: int
    """How often it was met, by all workers together."""
    example: str = ""
    """What the first one said; empty: nothing."""
    traits: dict[str, str] = field(default_factory=dict)
    """What else tells it from others of its topic."""
