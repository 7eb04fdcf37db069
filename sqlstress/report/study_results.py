"""Results of an A/B test and of a search for the highest rate, as reports store them.

An A/B test compares the variants (arms) A and B. A pair is a trial of A and a trial of B, one after the
other. A look is an interim test of the pairs so far. A promise is a set of latency limits, such as "p99
within 10ms".
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlstress.options.option import option
from sqlstress.options.parsing import duration_with_unit
from sqlstress.report.environment import SqliteBuild

A, B = ARMS = ("A", "B")
"""Names of the arms: A is the baseline, B is compared with A."""
DRAWN, TURNS = ORDERS = ("drawn", "turns")
"""Rules for the arm that begins a pair: drawn at random, or A and B in turns."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Arm (variant A or B) of an A/B test. Its runs have its name in the field `arm`."""

    name: str
    """Name of the arm: A (the baseline) or B."""
    options: tuple[str, ...] = ()
    """Options that only this arm has, as words of the command line."""
    python: str | None = None
    """Path of this arm's Python interpreter; None for the interpreter that runs sqlstress."""
    version: str = ""
    """Implementation and version of the interpreter in `python`; empty if `python` is null."""
    tool_version: str = ""
    """Version of sqlstress that measured this arm; empty if `python` is null."""
    builds: tuple[SqliteBuild, ...] = ()
    """SQLite library of each driver in this arm; empty if `python` is null."""


@dataclass(frozen=True, slots=True)
class Look:
    """Interim result of an A/B test after some pairs of trials, averaged over all cases."""

    pairs: int
    """Number of pairs (a trial of A and a trial of B) so far."""
    alpha: float
    """Maximum probability that the true ratio is better than `bound`, and that it is worse than `worst`."""
    ratio: float
    """B's figure (TPS or p99) divided by A's: Hodges-Lehmann estimate."""
    low: float | None
    """Lower end of the ratio's 95% interval (exact signed-rank test); None for too few pairs."""
    high: float | None
    """Upper end of the ratio's 95% interval; None for too few pairs."""
    bound: float | None
    """Best plausible ratio: upper bound for TPS, lower bound for p99; None for too few pairs."""
    verdict: str
    """Verdict of this look: fail, pass, inconclusive, or undecided (if more pairs are needed)."""
    worst: float | None = None
    """Worst plausible ratio: lower bound for TPS, upper bound for p99; None for too few pairs."""
    seconds: float | None = None
    """Time from the start of the first trial to this look, in seconds; None if unknown."""


@dataclass(frozen=True, slots=True)
class AbTest:
    """A/B test: two variants (arms) measured in pairs of trials, with one seed for each pair."""

    metric: str
    """Compared figure: tps (transactions per second) or p99 (99th percentile of latency)."""
    max_drop: float
    """Share by which tps may fall or p99 may rise from A to B, 0 to 1."""
    arms: tuple[Arm, Arm]
    """Arms A and B."""
    first: str
    """Arm that was measured first in the first pair of trials: A or B."""
    looks: tuple[Look, ...] = ()
    """Interim results, in order."""
    verdict: str = "undecided"
    """Result of the test: fail, pass, inconclusive, or undecided if the test was stopped early."""
    reason: str | None = None
    """Reason for a verdict that does not follow from the pairs, such as wrong data; else None."""
    order: str = TURNS
    """Rule for the arm that begins later pairs: drawn (at random) or turns (A and B alternate)."""
    max_pairs: int | None = None
    """Maximum number of pairs; None if unknown."""
    max_time_s: float | None = None
    """Time limit, in seconds: no pair is started that would end later; None without a limit."""


# A search for the highest rate. The report has a run for each tried rate. The highest rate follows from these
# runs, so it is not stored.


PROMISE = "Promise"


def _limit_option(name: str, text: str) -> float | None:
    limit_s: float | None = option(
        duration_with_unit(0.00001),
        None,
        PROMISE,
        f"{text} within TIME of their due time: 10ms.",
        name=name,
        metavar="TIME",
        meaning=f"{text} within this many seconds of their due time; None: no promise.",
    )
    return limit_s


@dataclass(frozen=True, slots=True)
class Promise:
    """Upper limits of latencies at a rate. All due operations must also be done, without failures."""

    p50_s: float | None = _limit_option("p50", "50% of operations finish")
    p99_s: float | None = _limit_option("p99", "99% of operations finish")
    p999_s: float | None = _limit_option("p999", "99.9% of operations finish")
    max_s: float | None = _limit_option("max", "All operations finish")

    @property
    def bounds(self) -> dict[str, float]:
        """Limits in seconds, by label: p50, p99, p99.9 or max. Labels without a limit are left out."""
        labels = dict(
            zip((field.name for field in fields(self)), ("p50", "p99", "p99.9", "max"), strict=True)
        )
        return {label: bound for name, label in labels.items() if (bound := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class LimitSearch:
    """Search for the highest rate (operations due per second) at which a promise holds."""

    promise: Promise
    """Upper limits of latency."""
    max_time_s: float | None = None
    """Time limit, in seconds, after which no window is started; None without a limit."""
    seconds: float = 0.0
    """Duration of the search, in seconds, including the first measurement, which is a closed loop."""
    ended: str | None = None
    """Reason why the search ended early; None if it was completed, or interrupted by the user."""
