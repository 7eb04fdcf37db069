"""When the operations of a case are due, where they arrive at a rate: an open loop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlstress.options.option import SWEEP, either, option
from sqlstress.options.parsing import choice, duration_with_unit
from sqlstress.options.rates import MOST_RATE, rates

SPACINGS = ("poisson", "even")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When operations are due: from the common start on, whether or not those before them are done."""

    rate: int = option(
        rates,
        None,
        SWEEP,
        "Operations due in a second, all processes together: 2000, 500,1000 or 500-2000/500. "
        "Without it each process asks again when it has been answered.",
        metavar="LIST",
        varies=True,
        required=True,
        meaning=f"Operations due in a second, all processes together; 1 to {MOST_RATE:,}.",
    )
    spacing: str = option(
        choice(*SPACINGS),
        "poisson",
        SWEEP,
        f"When they are due: {either(SPACINGS)}. Poisson: as independent users arrive.",
        name="arrival",
        metavar="HOW",
        meaning="When they are due: poisson (as independent users arrive) or even (at equal distances).",
    )
    latency_limit_s: float | None = option(
        duration_with_unit(0.0001),
        None,
        SWEEP,
        "What is later than this when its turn comes is skipped, and counted.",
        name="latency-limit",
        metavar="TIME",
        meaning="How late an operation may be when its turn comes, in seconds; one that is later is skipped. "
        "None: nothing is skipped.",
    )

    @property
    def label(self) -> str:
        """The rate in words: "2,000/s"."""
        return f"{self.rate:,}/s"

    def at(self, rate: int) -> Arrivals:
        """Return the same at another rate."""
        return replace(self, rate=rate)
