"""What the balanced design tells: what each level of a factor does, and what any row of the grid promises.

Least squares of logarithms. Each pass has a level of its own: what drifts is no effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from sqlstress.statistics.design import Row
from sqlstress.statistics.least_squares import Fit, fit
from sqlstress.statistics.ratios import Ratio, quantile

Rates = Mapping[Row, Mapping[int, float]]
"""What was done in a second, above 0, by row and pass."""
Place = tuple[int, int]
"""A level of a factor."""
DOUBT = 1.0
"""How firmly two levels are taken to act as if alone: as firmly as one slice that says so."""


class Effect(NamedTuple):
    """A level beside the default of its factor, whatever the other factors are."""

    factor: int
    level: int
    log: float
    """Of its ratio."""
    error: float
    """Standard error of that."""
    ratio: Ratio
    """The same with an interval: all of them hold together."""


def effects(rates: Rates, error: float) -> list[Effect]:
    """Return the effects of the levels that were measured; nothing where they can't be told apart."""
    causes = _Causes(rates)
    found = causes.fitted([(place,) for place in causes.places], doubts=0)
    if found is None or not found.degrees:
        return []
    reach = quantile(1 - error / 2 / max(1, len(causes.places)), found.degrees)
    first = len(causes.passes)
    told = zip(causes.places, found.coefficients[first:], found.errors[first:], strict=True)
    return [
        Effect(*place, log, own, _ratio(log, reach * own, len(causes.values))) for place, log, own in told
    ]


def promise(rates: Rates) -> Callable[[Row], float] | None:
    """Return what a row promises over the default, as a logarithm, from what was measured of other rows.

    Two levels may do more together than each alone: that is believed as far as several slices show it. None
    where nothing can be told. Rows have levels that were measured.
    """
    causes = _Causes(rates)
    alone: list[tuple[Place, ...]] = [(place,) for place in causes.places]
    together = [pair for pair in combinations(causes.places, 2) if pair[0][0] != pair[1][0]]
    terms = [*alone, *together]
    found = causes.fitted(terms, doubts=len(together))
    if found is None:
        return None
    weights = found.coefficients[len(causes.passes) :]
    return lambda row: math.fsum(
        weight for weight, term in zip(weights, terms, strict=True) if _holds(term, row)
    )


class _Causes:
    """The slices of a design, and what may have caused what they did."""

    def __init__(self, rates: Rates) -> None:
        seen = [(number, row, rate) for row, own in rates.items() for number, rate in own.items()]
        self.passes = sorted({number for number, _, _ in seen})
        self.places = sorted({place for _, row, _ in seen for place in enumerate(row) if place[1]})
        self.values = [math.log(rate) for _, _, rate in seen]
        self._seen = seen

    def fitted(self, terms: Sequence[tuple[Place, ...]], doubts: int) -> Fit | None:
        """Return what each pass and each term adds; the last ones are doubted. None if that is open."""
        rows = [
            [*(float(number == one) for one in self.passes), *(float(_holds(term, row)) for term in terms)]
            for number, row, _ in self._seen
        ]
        try:
            return fit(
                [*rows, *_doubts(len(self.passes) + len(terms), doubts)], [*self.values, *[0.0] * doubts]
            )
        except ValueError:
            return None


def _holds(term: tuple[Place, ...], row: Row) -> bool:
    return all(row[factor] == level for factor, level in term)


def _doubts(width: int, count: int) -> Iterator[list[float]]:
    """Yield a row for each of the last columns, which says that it adds nothing."""
    for column in range(width - count, width):
        yield [DOUBT * (place == column) for place in range(width)]


def _ratio(log: float, reach: float, count: int) -> Ratio:
    return Ratio(_exp(log), _exp(log - reach), _exp(log + reach), count)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
