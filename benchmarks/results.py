"""What is kept of a run: rows in sections, with the command and the fingerprint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.pairs import Spread
from sqlstress.report import Environment

AT_LEAST, AT_MOST = "at least", "at most"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of every pair, and what it is to reach."""

    name: str
    values: tuple[float, ...]
    """One for each pair, by round."""
    target: float | None = None
    bound: str = AT_LEAST
    """Which side of the target is good."""

    @property
    def spread(self) -> Spread:
        """The median of the pairs, and the smallest and largest."""
        return Spread.of(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median reaches the target; None without one."""
        if self.target is None:
            return None
        found = self.spread.median
        return found >= self.target if self.bound == AT_LEAST else found <= self.target


@dataclass(frozen=True, slots=True)
class Row:
    """One cell measured."""

    labels: dict[str, str]
    """What was measured: column → value."""
    figures: dict[str, float] = field(default_factory=dict)
    """Medians, for context: column with its unit → value."""
    comparisons: tuple[Comparison, ...] = ()
    samples: dict[str, list[float]] = field(default_factory=dict)
    """Every measurement behind it, by round."""
    error: str | None = None
    """Why the cell could not be measured."""

    @property
    def short(self) -> bool:
        """Whether a target is missed, or nothing was measured."""
        return self.error is not None or any(comparison.met is False for comparison in self.comparisons)


@dataclass(frozen=True, slots=True)
class Task:
    """A cell to measure."""

    labels: dict[str, str]
    run: Callable[[], Row]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sub-command is going to measure."""

    title: str
    notes: tuple[str, ...]
    """How to read it, and what could not be measured here."""
    tasks: tuple[Task, ...]


@dataclass(slots=True)
class Section:
    """What a sub-command measured."""

    name: str
    title: str
    notes: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Document:
    """What is written to --output."""

    command: tuple[str, ...]
    """The command line, from the checkout."""
    created: str
    """When it began: ISO 8601, UTC."""
    revision: str
    """What `git describe --always --dirty` says of the checkout; empty outside of one."""
    compiler: str
    """The C compiler and its flags; empty where none was used."""
    load_average: float
    """Of the minute before it began: over 1, something else was running."""
    environment: Environment
    sections: list[Section] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether a cell could not be measured."""
        return any(row.error is not None for section in self.sections for row in section.rows)
