"""What a search for better settings adds to a report: what each does, what raced, and what won by how much.

The slices themselves are the runs of the report; their `arm` is the stage of the search.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlstress.report.case import Case
from sqlstress.report.study_results import Gain


@dataclass(frozen=True, slots=True)
class TunedLevel:
    """A value of an option that was tried, beside the one of the load."""

    factor: str
    """What was varied: page-size."""
    value: str
    """The value: 1024."""
    gain: Gain | None = None
    """What it does, whatever the other options are, by least squares over the balanced design."""


@dataclass(frozen=True, slots=True)
class TunedRow:
    """Settings that raced."""

    values: tuple[str, ...]
    """The value of each factor, in their order; empty where it is that of the load."""
    rounds: int
    """Rounds of the race that it took part in."""
    races: bool = True
    """Whether it was still in the race when that ended: it was not worse than the leader beyond doubt."""
    gain: Gain | None = None
    """What it did over the load's own settings, in the race; None for those, and for too few rounds."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """A search for settings that do more, without changing what is promised."""

    case: Case
    """The load, with the settings that others are set against."""
    factors: tuple[str, ...]
    """What was varied, in the order of the values."""
    max_time_s: float
    """Seconds that were given to it."""
    levels: tuple[TunedLevel, ...] = ()
    """What each value does."""
    designed: int = 0
    """Slices of the balanced design."""
    raced: tuple[TunedRow, ...] = ()
    """The settings that raced, the best first."""
    chosen: tuple[str, ...] = ()
    """The best settings beside the load's own, as options; empty where none are known."""
    pragmas: tuple[str, ...] = ()
    """The same as PRAGMAs, as far as they are some."""
    gain: Gain | None = None
    """What they do over the load's own settings, by pairs that did not choose them."""
    refused: tuple[str, ...] = ()
    """What SQLite did not take, and why."""
    seconds: float = 0.0
    """How long it took."""
    wrong: str | None = None
    """What was wrong with the data; None when nothing was."""
    error: str | None = None
    """Why it ended early; None when it did not, or was interrupted."""


# What a comparison of presets adds to a report: each preset, what it gains, and what it risks.
#
# The slices themselves are the runs of the report; their `arm` is the preset.


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
