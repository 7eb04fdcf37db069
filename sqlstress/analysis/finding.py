"""Finding: one thing that a report says, as data."""

from __future__ import annotations

from dataclasses import dataclass

WRONG, UNPROVED, PROVED = "crash-wrong", "crash-unproved", "crash-proved"
"""Codes of a crash test's verdicts."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a report says, in a sentence for people."""

    code: str
    """Stable name, such as "best" or "starvation"."""
    text: str
    """A sentence or two: what it is, and what to do about it."""
