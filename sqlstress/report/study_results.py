"""Results of an A/B test and of a search for the highest rate, as reports store them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlstress.options.option import option
from sqlstress.options.parsing import duration_with_unit
from sqlstress.report.environment import SqliteBuild

A, B = ARMS = ("A", "B")
"""Names of the arms: A is the baseline, B is compared with it."""
DRAWN, TURNS = ORDERS = ("drawn", "turns")
"""Rules for the arm that begins a pair: drawn at random, or in turns."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Arm of an A/B test. Its measurements are the runs with its name in `arm`."""

    name: str
    """A (the baseline) or B."""
    options: tuple[str, ...] = ()
    """Options that only this arm has, as on the command line."""
    python: str | None = None
    """Python interpreter set for this arm; None means the interpreter of sqlstress itself."""
    version: str = ""
    """Implementation and version of the interpreter in `python`; empty if `python` is null."""
    tool_version: str = ""
    """Version of sqlstress that measured this arm; empty if `python` is null."""
    builds: tuple[SqliteBuild, ...] = ()
    """SQLite libraries of this arm; empty if `python` is null, because they are in the environment."""


@dataclass(frozen=True, slots=True)
class Look:
    """Interim result of an A/B test after some pairs, on the geometric mean over all cells."""

    pairs: int
    """Number of pairs so far."""
    alpha: float
    """One-sided error rate of this look, for each bound."""
    ratio: float
    """Hodges-Lehmann estimate of the figure of B divided by that of A."""
    low: float | None
    """Lower end of the 95% interval of the ratio (exact signed-rank); None if there are too few pairs."""
    high: float | None
    """Upper end of the 95% interval of the ratio; None if there are too few pairs."""
    bound: float | None
    """Upper bound of the ratio (p99: lower bound) at the error rate of this look; None if there are too few
    pairs."""
    verdict: str
    """Result: fail, pass, inconclusive, or undecided. If undecided, more pairs were measured."""
    worst: float | None = None
    """Lower bound of the ratio (p99: upper bound) at the error rate of this look; None if there are too few
    pairs or the look was not judged by it."""
    seconds: float | None = None
    """Time from the first slice to this look, in seconds; None if unknown."""


@dataclass(frozen=True, slots=True)
class AbTest:
    """A/B test: two arms measured in turns, in pairs with the same seed."""

    metric: str
    """Compared figure: tps, or p99 of all operations."""
    max_drop: float
    """Share by which TPS may fall or p99 may rise, 0 to 1."""
    arms: tuple[Arm, Arm]
    """Arms A and B."""
    first: str
    """Arm that began the first pair."""
    looks: tuple[Look, ...] = ()
    """Looks so far, in order."""
    verdict: str = "undecided"
    """Result: fail, pass, inconclusive, or undecided if the test was stopped early."""
    reason: str | None = None
    """Reason for the verdict if it did not follow from the pairs, such as wrong data; else None."""
    order: str = TURNS
    """Rule that chose which arm begins each pair after the first: drawn (at random, by the seed), or turns (A
    and B alternate)."""
    max_pairs: int | None = None
    """Maximum number of pairs; None if unknown."""
    max_time_s: float | None = None
    """Time limit in seconds, after which no further pair was begun; None if there is no limit."""


# A search for the highest rate: its promise and duration.
#
# The rate that was found is not stored: it follows from the runs, one for each rate that was tried.


PROMISE = "Promise"


def _bound(percentile: str, text: str) -> float | None:
    bound: float | None = option(
        duration_with_unit(0.00001),
        None,
        PROMISE,
        f"{text} within TIME of their due time: 10ms.",
        name=percentile,
        metavar="TIME",
        meaning=f"{text} within this many seconds of their due time; None: no promise.",
    )
    return bound


@dataclass(frozen=True, slots=True)
class Promise:
    """Latency bounds that a rate must meet.

    In addition, no operation may fail, and all due operations must be done.
    """

    p50_s: float | None = _bound("p50", "50% of operations finish")
    p99_s: float | None = _bound("p99", "99% of operations finish")
    p999_s: float | None = _bound("p999", "99.9% of operations finish")
    max_s: float | None = _bound("max", "All operations finish")

    @property
    def bounds(self) -> dict[str, float]:
        """Bounds in seconds by label: p50, p99, p99.9 or max."""
        labels = dict(
            zip((field.name for field in fields(self)), ("p50", "p99", "p99.9", "max"), strict=True)
        )
        return {label: bound for name, label in labels.items() if (bound := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class LimitSearch:
    """Search for the highest rate that meets a promise.

    The runs with a rate are the rates that were tried.
    """

    promise: Promise
    """Latency bounds that a rate must meet."""
    max_time_s: float | None = None
    """Time limit in seconds, after which no further window was begun; None if there is no limit."""
    seconds: float = 0.0
    """Duration of the search, including the closed loop before it, in seconds."""
    ended: str | None = None
    """Reason why the search ended early; None if it was completed or interrupted."""
