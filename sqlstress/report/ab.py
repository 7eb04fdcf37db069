"""What an A/B test adds to a report: its arms, what was asked, and what their pairs said at each look."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.report.environment import SqliteBuild

A, B = ARMS = ("A", "B")
"""The baseline, and what is compared with it."""
DRAWN, TURNS = ORDERS = ("drawn", "turns")
"""How it is decided which arm a pair begins with."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of an A/B test. What it measured are the runs that name it as their arm."""

    name: str
    """A, the baseline, or B."""
    options: tuple[str, ...] = ()
    """The options that only this arm has, as they were given."""
    python: str | None = None
    """The interpreter that was given for it; None: the one that sqlstress itself ran in."""
    version: str = ""
    """Implementation and version of its Python; empty where `python` is null."""
    tool_version: str = ""
    """Version of the sqlstress that measured it; empty where `python` is null."""
    builds: tuple[SqliteBuild, ...] = ()
    """Its SQLite libraries; empty where `python` is null: then they are those of the environment."""


@dataclass(frozen=True, slots=True)
class Look:
    """What so many pairs said, taken over the geometric mean of the cells."""

    pairs: int
    """Number of pairs."""
    alpha: float
    """One-sided error rate of this look, of each of its bounds."""
    ratio: float
    """B's figure over A's: the Hodges-Lehmann estimate."""
    low: float | None
    """Lower end of the 95 % interval of the ratio (exact signed-rank); None for too few pairs."""
    high: float | None
    """Its upper end."""
    bound: float | None
    """The ratio lies below it (p99: above it), at the error rate of this look; None for too few pairs."""
    verdict: str
    """fail, pass, inconclusive, or undecided: then more pairs were measured."""
    worst: float | None = None
    """The ratio lies above it (p99: below it), at the error rate of this look; None for too few pairs, and
    where it was not judged by."""
    seconds: float | None = None
    """From the first slice to this look; None where it is not known."""


@dataclass(frozen=True, slots=True)
class AbTest:
    """An A/B test: two arms measured in turns, in pairs of the same seed."""

    metric: str
    """What is compared: tps, or p99 (of all operations)."""
    max_drop: float
    """By what share TPS may fall, or p99 rise."""
    arms: tuple[Arm, Arm]
    """A and B."""
    first: str
    """Which arm the first pair began with."""
    looks: tuple[Look, ...] = ()
    """The looks so far, in order."""
    verdict: str = "undecided"
    """fail, pass, inconclusive; undecided when it was stopped before."""
    reason: str | None = None
    """What decided instead of the pairs, such as wrong data; None when the pairs did, or nothing yet."""
    order: str = TURNS
    """Which arm the others began with: drawn, each by the seed, or turns, never the one that began before."""
    max_pairs: int | None = None
    """Pairs after which it ended at the latest; None where it is not known."""
    max_time_s: float | None = None
    """Seconds after which no other pair was begun; None: none were said."""
