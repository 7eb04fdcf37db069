"""What a search for better settings adds to a report: what each does, what raced, and what won by how much.

The slices themselves are the runs of the report; their `arm` is the stage of the search.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.report.case import Case
from sqlstress.report.gain import Gain


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
