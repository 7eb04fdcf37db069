"""What programs answered that are not ours: Answer."""

from __future__ import annotations

from dataclasses import dataclass

MOST_ANSWERS = 100
"""Answers of a trial that are kept."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Something that operations answered, and how often."""

    what: str
    """What kind of answer: exit code, standard error, ended."""
    kind: str
    """What it was; of a text what such texts have in common."""
    count: int
    """How often it came, the warm-up included."""
    example: str = ""
    """The first text of the kind."""
