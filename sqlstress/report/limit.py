"""What a search for the highest rate adds to a report: what was promised, and how long it took.

What was found is not said here: it follows from the runs, of which each is a rate that was tried.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlstress.options.option import option
from sqlstress.options.parsing import duration_with_unit

PROMISE = "What is promised"


def _bound(percentile: str, text: str) -> float | None:
    found: float | None = option(
        duration_with_unit(0.00001),
        None,
        PROMISE,
        f"{text} within so long of when it is due: 10ms.",
        name=percentile,
        metavar="TIME",
        meaning=f"{text} within so many seconds of when it is due; None: nothing is promised of it.",
    )
    return found


@dataclass(frozen=True, slots=True)
class Promise:
    """How soon operations are to be done; besides, none may fail, and what is due is to be done."""

    p50_s: float | None = _bound("p50", "Half of the operations are done")
    p99_s: float | None = _bound("p99", "Of 100 operations 99 are done")
    p999_s: float | None = _bound("p999", "Of 1,000 operations 999 are done")
    max_s: float | None = _bound("max", "Every operation is done")

    @property
    def bounds(self) -> dict[str, float]:
        """What is promised: p50, p99, p99.9 or max → seconds."""
        names = dict(zip((one.name for one in fields(self)), ("p50", "p99", "p99.9", "max"), strict=True))
        return {name: bound for field, name in names.items() if (bound := getattr(self, field)) is not None}


@dataclass(frozen=True, slots=True)
class LimitSearch:
    """A search for the highest rate that holds a promise. What was tried are the runs that have a rate."""

    promise: Promise
    """What is to hold."""
    max_time_s: float | None = None
    """Seconds after which no other window was begun."""
    seconds: float = 0.0
    """How long the search took, the closed loop before it included."""
    ended: str | None = None
    """Why it ended before the answer was whole; None when it did not, or was interrupted."""
