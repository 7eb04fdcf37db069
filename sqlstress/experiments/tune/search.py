"""What is measured next, from what was found so far: a balanced design, a race of the best, and fresh pairs.

The design tells what each factor does: least squares of the logarithms, with what drifts from pass to pass
taken out. Those rows of the whole grid that promise most then race with the default, round by round. How much
the winner gains is said by pairs that are measured afterwards: those that chose it flatter it.

It measures nothing itself: it asks for slices one by one, and is sent their figures. So it can be tried on
machines that are made up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import product
from random import Random
from typing import NamedTuple

from sqlstress.experiments.tune.effects import Effect, effects, promise
from sqlstress.statistics.design import Row, design, runs_of
from sqlstress.statistics.race import survivors, winner
from sqlstress.statistics.ratios import Passes, Ratio

DESIGN, RACE, FRESH = STAGES = ("design", "race", "fresh")
LEARNT, RACED = 0.45, 0.75
"""Shares of the time after which the design, and the race, have had theirs."""
MOST_PASSES = 3
"""Of the design: more rounds of the race are worth more."""
RACERS = 5
"""Rows that race with the default."""
MOST_ROUNDS = 20
FEWEST_PAIRS, MOST_PAIRS = 5, 40
"""Fresh pairs, however long they take; and however short."""
ABOUT = 0.02
"""Rows that differ by less than this share in the race are equal: the one that changes least wins."""
ERROR = 0.05


class Slice(NamedTuple):
    """A trial that is asked for."""

    stage: str
    round: int
    """From 0, in its stage: slices of the same round are near each other in time."""
    row: Row
    """A level of each factor; 0 is that of the default."""


Slices = Generator[Slice, float | None, None]
"""Yields slices; is sent what each did in a second, or None where it could not be measured."""
Rates = dict[Row, dict[int, float]]
"""What was done in a second, by row and round."""


class Search:
    """A search among the rows of a grid. What was found can be read at any time."""

    def __init__(self, levels: Sequence[int], seed: int, spent: Callable[[], float]) -> None:
        """`levels` has how many levels each factor has; `spent` says which share of the time is over."""
        self.levels, self._seed, self._spent = tuple(levels), seed, spent
        self.default: Row = (0,) * len(self.levels)
        self.rates: dict[str, Rates] = {stage: {} for stage in STAGES}
        self._failed: list[Row] = []
        """Rows that could not be measured."""
        self.racing: list[Row] = []
        """Those that are still in the race."""
        self.chosen: Row | None = None
        """The row whose pairs with the default are fresh; None before it is known."""
        self._asked = 0

    def slices(self) -> Slices:
        """Ask for slices until the time is over; the last stage has a few pairs in any case."""
        yield from self._design()
        yield from self._race()
        yield from self._pairs()

    def effects(self) -> list[Effect]:
        """Return what each level does beside that of the default, as far as the design tells."""
        return effects(self.rates[DESIGN], ERROR)

    def gain(self) -> Ratio | None:
        """Return what the chosen row does over the default, by fresh pairs; None where they are too few."""
        rates = self.rates[FRESH]
        if self.chosen is None or not {self.chosen, self.default} <= rates.keys():
            return None
        return Passes(rates, ERROR).ratio(self.default, self.chosen)

    def raced(self) -> list[tuple[Row, int, Ratio | None]]:
        """Return the rows that raced, the best first: rounds, and what each did over the default."""
        rates = {row: own for row, own in self.rates[RACE].items() if own}
        passes = Passes(rates, ERROR)
        known = self.default in rates
        order = sorted(rates, key=passes.middle, reverse=True)
        return [(row, len(rates[row]), passes.ratio(self.default, row) if known else None) for row in order]

    def _design(self) -> Slices:
        for number in range(MOST_PASSES):
            if number and self._spent() * (number + 1) / number > LEARNT:
                return
            draw = Random(f"{self._seed}:design:{number}")
            for row in design(self.levels, runs_of(self.levels), draw):
                if self._spent() >= LEARNT:
                    return
                refused = self._refused()
                # With the default in its place, the levels of the other factors stay balanced.
                row = tuple(0 if place in refused else place[1] for place in enumerate(row))
                if row not in self._failed:
                    yield from self._ask(Slice(DESIGN, number, row))

    def _race(self) -> Slices:
        self.racing = [self.default, *self.candidates()]
        for number in range(MOST_ROUNDS):
            if len(self.racing) < 2 or (number and self._spent() >= RACED):
                return
            order = [*self.racing]
            Random(f"{self._seed}:race:{number}").shuffle(order)
            for row in order:
                if row in self.racing:
                    yield from self._ask(Slice(RACE, number, row))
            rates = self.rates[RACE]
            self.racing = survivors({row: rates[row] for row in self.racing if row in rates}, MOST_ROUNDS)

    def _pairs(self) -> Slices:
        rates = {
            row: own for row, own in self.rates[RACE].items() if row in self.racing or row == self.default
        }
        others = [row for row in rates if row != self.default and rates[row]]
        if not others:
            return
        self.chosen = winner(rates, sorted(others, key=self._changes), ABOUT)
        pairs = self._affordable_pairs()
        for number in range(pairs):
            order = [self.default, self.chosen]
            Random(f"{self._seed}:fresh:{number}").shuffle(order)
            for row in order:
                yield from self._ask(Slice(FRESH, number, row))

    def candidates(self) -> list[Row]:
        """Return the rows that promise most, the one first that changes only what seems to matter."""
        known = {(one.factor, one.level): one for one in self.effects()}
        promised = promise(self.rates[DESIGN]) if known else None
        if promised is None:
            return self._best_seen()
        grid = product(*(self._usable(factor, known) for factor in range(len(self.levels))))
        plain = tuple(self._worthwhile(factor, known) for factor in range(len(self.levels)))
        best = sorted(
            ((promised(row), row) for row in grid), key=lambda one: (-one[0], self._changes(one[1]))
        )
        order = dict.fromkeys([plain, *(row for _, row in best)])
        return [row for row in order if row != self.default and not self._fails(row)][:RACERS]

    def _best_seen(self) -> list[Row]:
        """Return the rows that did most, where nothing can be said of factors."""
        means = {row: max(own.values()) for row, own in self.rates[DESIGN].items() if row != self.default}
        return sorted(means, key=lambda row: -means[row])[:RACERS]

    def _usable(self, factor: int, known: Mapping[tuple[int, int], Effect]) -> list[int]:
        return [level for level in range(self.levels[factor]) if level == 0 or (factor, level) in known]

    def _worthwhile(self, factor: int, known: Mapping[tuple[int, int], Effect]) -> int:
        """Return the level that does most, if that is more than its own error; else the default."""
        own = [known[factor, level] for level in self._usable(factor, known) if level]
        best = max(own, key=lambda one: one.log, default=None)
        return best.level if best and best.log > best.error else 0

    def _affordable_pairs(self) -> int:
        each = self._spent() / self._asked if self._asked else 1.0
        left = max(0.0, 1.0 - self._spent())
        pairs = MOST_PAIRS if each <= 0 else math.floor(left / each / 2)
        return min(MOST_PAIRS, max(FEWEST_PAIRS, pairs))

    def _ask(self, wanted: Slice) -> Slices:
        rate = yield wanted
        self._asked += 1
        if rate:
            self.rates[wanted.stage].setdefault(wanted.row, {})[wanted.round] = rate
        else:
            self._failed.append(wanted.row)
            self.racing = [one for one in self.racing if one != wanted.row]

    def _refused(self) -> set[tuple[int, int]]:
        """Return the levels that can't be measured, as it seems: they failed twice, and never worked."""
        worked = {place for rates in self.rates.values() for done in rates for place in enumerate(done)}
        failed = Counter(place for one in self._failed for place in enumerate(one) if place not in worked)
        return {place for place, count in failed.items() if count > 1}

    def _fails(self, row: Row) -> bool:
        return row in self._failed or not self._refused().isdisjoint(enumerate(row))

    def _changes(self, row: Row) -> int:
        return sum(map(bool, row))
