"""What a comparison of presets adds to a report: each preset, what it gains, and what it risks.

The slices themselves are the runs of the report; their `arm` is the preset.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlstress.report.case import Case
from sqlstress.report.gain import Gain


@dataclass(frozen=True, slots=True)
class MeasuredPreset:
    """A preset that was measured."""

    name: str
    """What it is called: rails."""
    project: str = ""
    """Whose settings they are; empty for the load's own."""
    source: str = ""
    """Where they were published."""
    looked_up: str = ""
    """When they were looked up there: ISO 8601."""
    options: tuple[str, ...] = ()
    """Its settings, as options."""
    apart: tuple[str, ...] = ()
    """What belongs to it and is not measured."""
    effective: dict[str, str] = field(default_factory=dict)
    """Every setting as SQLite answered it after the first write."""
    gain: Gain | None = None
    """What it does over what it is set against; None for that itself, and for too few rounds."""
    error: str | None = None
    """Why it could not be measured, or not wholly; None when it could."""


@dataclass(frozen=True, slots=True)
class PresetComparison:
    """Presets that were measured in turns on one load."""

    case: Case
    """The load, with its own settings."""
    against: str
    """The name of the preset that the others are set against."""
    planned: int
    """Rounds that were asked for."""
    rounds: int = 0
    """Rounds that were measured whole."""
    presets: tuple[MeasuredPreset, ...] = ()
    """The presets, first the one that the others are set against."""
    max_time_s: float | None = None
    """Seconds after which no other round was begun."""
    seconds: float = 0.0
    """How long it took."""
    wrong: str | None = None
    """What was wrong with the data; None when nothing was."""
    error: str | None = None
    """Why it ended early; None when it did not, or was interrupted."""
