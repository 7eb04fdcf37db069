"""Difference: something in which reports differ, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlstress.analysis.comparison.matching import Part

Parts = Sequence[Part]
Values = Sequence[str | None]
"""What something is in each part; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something in which reports differ, or in which they may: of some it is not known."""

    subject: str
    """What it is, as people would call it."""
    values: tuple[str | None, ...]
    """What it is in each part; None where it is not known."""
    barred: tuple[str | None, ...]
    """For each part: why its figures can't be set in a ratio to the first one's; None: this is no reason."""

    @property
    def is_one(self) -> bool:
        """Whether the parts differ in it, as far as it is known."""
        return None in self.values or len(set(self.values)) > 1
