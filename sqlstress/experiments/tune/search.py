"""What is measured next, from what was found so far: a balanced design, a race of the best, and fresh pairs.

The design tells what each factor does: least squares of the logarithms, with what drifts from pass to pass
taken out. Those rows of the whole grid that promise most then race with the default, round by round. How much
the winner gains is said by pairs that are measured afterwards: those that chose it flatter it.

It measures nothing itself: it asks for slices one by one, and their figures are entered. So it can be tried
on machines that are made up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from random import Random
from typing import Any, NamedTuple

from sqlstress.errors import UsageError
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.compare import Passes, Ratio, quantile, ratio_of
from sqlstress.statistics.search import Fit, Row, design, fit, runs_of, survivors, winner

# What the balanced design tells: what each level of a factor does, and what any row of the grid promises.
#
# Least squares of logarithms. Each pass has a level of its own: what drifts is no effect.


Rates = dict[Row, dict[int, float]]
"""What was done in a second, above 0, by row and round."""
Level = tuple[int, int]
"""A factor, and which of its levels; 0 is the default's."""
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
    levels = _levels(rates)
    found = _fitted(rates, [(level,) for level in levels], doubts=0)
    if found is None or not found.degrees:
        return []
    reach = quantile(1 - error / 2 / max(1, len(levels)), found.degrees)
    slices = sum(map(len, rates.values()))
    return [
        Effect(*level, log, own, ratio_of(log, reach * own, slices))
        for level, log, own in zip(levels, found.coefficients, found.errors, strict=True)
    ]


def promise(rates: Rates) -> Callable[[Row], float] | None:
    """Return what a row promises over the default, as a logarithm, from what was measured of other rows.

    Two levels may do more together than each alone: that is believed as far as several slices show it. None
    where nothing can be told. Rows have levels that were measured.
    """
    levels = _levels(rates)
    together = [pair for pair in combinations(levels, 2) if pair[0][0] != pair[1][0]]
    terms = [*((level,) for level in levels), *together]
    found = _fitted(rates, terms, doubts=len(together))
    if found is None:
        return None
    weights = found.coefficients
    return lambda row: math.fsum(
        weight for weight, term in zip(weights, terms, strict=True) if _holds(term, row)
    )


def _levels(rates: Rates) -> list[Level]:
    return sorted({level for row, own in rates.items() if own for level in enumerate(row) if level[1]})


def _fitted(rates: Rates, terms: Sequence[tuple[Level, ...]], doubts: int) -> Fit | None:
    """Return what each term adds, beside each pass; the last ones are doubted. None if that is open."""
    passes = sorted({number for own in rates.values() for number in own})
    rows, values = [], []
    for row, own in rates.items():
        for number, rate in own.items():
            of_pass = [float(number == each) for each in passes]
            rows.append([*of_pass, *(float(_holds(term, row)) for term in terms)])
            values.append(math.log(rate))
    width = len(passes) + len(terms)
    for column in range(width - doubts, width):  # a slice that says that this adds nothing
        rows.append([DOUBT * (place == column) for place in range(width)])
        values.append(0.0)
    try:
        found = fit(rows, values)
    except ValueError:
        return None
    first = len(passes)
    return Fit(found.coefficients[first:], found.errors[first:], found.degrees)


def _holds(term: tuple[Level, ...], row: Row) -> bool:
    return all(row[factor] == level for factor, level in term)


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
        self.entered = 0
        """How many slices were entered."""

    def slices(self) -> Iterator[Slice]:
        """Ask for slices until the time is over; the last stage has a few pairs in any case.

        What each has done is to be entered before the next one is asked for.
        """
        yield from self._design()
        yield from self._race()
        yield from self._pairs()

    def enter(self, measured: Slice, rate: float | None) -> None:
        """Enter what a slice did in a second; None where it could not be measured."""
        self.entered += 1
        if rate:
            self.rates[measured.stage].setdefault(measured.row, {})[measured.round] = rate
        else:
            self._failed.append(measured.row)
            self.racing = [row for row in self.racing if row != measured.row]

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

    def _design(self) -> Iterator[Slice]:
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
                    yield Slice(DESIGN, number, row)

    def _race(self) -> Iterator[Slice]:
        self.racing = [self.default, *self.candidates()]
        for number in range(MOST_ROUNDS):
            if len(self.racing) < 2 or (number and self._spent() >= RACED):
                return
            order = [*self.racing]
            Random(f"{self._seed}:race:{number}").shuffle(order)
            for row in order:
                if row in self.racing:
                    yield Slice(RACE, number, row)
            rates = self.rates[RACE]
            self.racing = survivors({row: rates[row] for row in self.racing if row in rates}, MOST_ROUNDS)

    def _pairs(self) -> Iterator[Slice]:
        rates = {
            row: own for row, own in self.rates[RACE].items() if row in self.racing or row == self.default
        }
        others = [row for row in rates if row != self.default and rates[row]]
        if not others:
            return
        self.chosen = winner(rates, sorted(others, key=_changes), ABOUT)
        each, left = self._spent() / self.entered if self.entered else 1.0, max(0.0, 1.0 - self._spent())
        affordable = MOST_PAIRS if each <= 0 else math.floor(left / each / 2)
        for number in range(min(MOST_PAIRS, max(FEWEST_PAIRS, affordable))):
            order = [self.default, self.chosen]
            Random(f"{self._seed}:fresh:{number}").shuffle(order)
            for row in order:
                yield Slice(FRESH, number, row)

    def candidates(self) -> list[Row]:
        """Return the rows that promise most, the one first that changes only what seems to matter."""
        known = {(effect.factor, effect.level): effect for effect in self.effects()}
        promised = promise(self.rates[DESIGN]) if known else None
        if promised is None:  # nothing can be said of factors
            means = {row: max(own.values()) for row, own in self.rates[DESIGN].items() if row != self.default}
            return sorted(means, key=lambda row: -means[row])[:RACERS]
        usable, plain = [], []
        for factor, count in enumerate(self.levels):
            own = [known[factor, level] for level in range(1, count) if (factor, level) in known]
            best = max(own, key=lambda effect: effect.log, default=None)
            usable.append([0, *(effect.level for effect in own)])
            plain.append(best.level if best and best.log > best.error else 0)
        promises = {row: promised(row) for row in product(*usable)}
        order = dict.fromkeys(
            [tuple(plain), *sorted(promises, key=lambda row: (-promises[row], _changes(row)))]
        )
        refused = self._refused()
        return [
            row
            for row in order
            if row != self.default and row not in self._failed and refused.isdisjoint(enumerate(row))
        ][:RACERS]

    def _refused(self) -> set[Level]:
        """Return the levels that can't be measured, as it seems: they failed twice, and never worked."""
        worked = {level for rates in self.rates.values() for row in rates for level in enumerate(row)}
        failed = Counter(level for row in self._failed for level in enumerate(row) if level not in worked)
        return {level for level, count in failed.items() if count > 1}


def _changes(row: Row) -> int:
    return sum(map(bool, row))


# What may be searched without changing what is promised, and what each choice of it means.
#
# Never among it: the journal mode, synchronous, and how much a transaction writes.


Options = Mapping[str, str]
"""Unparsed values by the names of options."""
MOST_BUCKETS = 6
"""Numbers of files among which is chosen: each is tried with everything else."""
_PRAGMAS = ("page_size", "wal_autocheckpoint", "cache_size", "mmap_size")
"""Those that are written, in the order in which SQLite takes them."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One thing that is varied."""

    name: str
    levels: tuple[tuple[str, Options], ...]
    """What each level is called, and its options; the first one is what the load has."""


def _values(name: str, *values: str) -> Factor:
    return Factor(name, (("", {}), *((value, {name: value}) for value in values)))


CHECKPOINTS = Factor(
    "checkpoints",
    (
        ("", {}),
        ("4000", {"wal-autocheckpoint": "4000"}),
        ("10000", {"wal-autocheckpoint": "10000"}),
        ("restart", {"checkpointer": "restart"}),
    ),
)
"""After how many frames a worker checkpoints, or that a process of its own does."""
FACTORS = (
    CHECKPOINTS,
    _values("page-size", "1024", "8192"),
    _values("cache-size", "-65536"),
    _values("mmap-size", "268435456"),
    _values("busy", "fair"),
)


def factors_of(given: Mapping[str, Any], case: Case, buckets: Sequence[int]) -> tuple[Factor, ...]:
    """Return what is varied for a load: what was given is kept, and what has no meaning there left alone.

    `buckets` are the numbers of files to choose from, the first of which the load has. Raises UsageError.
    """
    if len(buckets) > MOST_BUCKETS:
        raise UsageError(f"--buckets has {len(buckets)} numbers. Give at most {MOST_BUCKETS}.")
    found = []
    for factor in FACTORS:
        is_given = any(name in given for _, options in factor.levels for name in options)
        no_wal = factor is CHECKPOINTS and case.settings.journal_mode != "wal"
        alone = factor.name == "busy" and case.concurrency == 1  # who waits for nobody
        if not (is_given or no_wal or alone):
            found.append(factor)
    if len(buckets) > 1:
        found.append(_values("buckets", *map(str, buckets[1:])))
    if not found:
        raise UsageError("nothing is left to search, since you gave every option. Leave some out.")
    return tuple(found)


@dataclass(frozen=True)
class Space:
    """The grid of all settings, and the case of each."""

    factors: tuple[Factor, ...]
    plan: Callable[[Options], Case]
    """Returns the case of the load with further options."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many levels each factor has."""
        return tuple(len(factor.levels) for factor in self.factors)

    def options(self, row: Row) -> dict[str, str]:
        """Return the options of a row, beside those of the load."""
        chosen = (factor.levels[level][1] for factor, level in zip(self.factors, row, strict=True))
        return {name: value for options in chosen for name, value in options.items()}

    def words(self, row: Row) -> tuple[str, ...]:
        """Return the same as they are written on the command line."""
        return tuple(word for name, value in self.options(row).items() for word in (f"--{name}", value))

    def values(self, row: Row) -> tuple[str, ...]:
        """Return what each factor's level is called; "" for that of the load."""
        return tuple(factor.levels[level][0] for factor, level in zip(self.factors, row, strict=True))

    def case(self, row: Row) -> Case:
        """Return the case of a row."""
        return self.plan(self.options(row))


def pragmas(settings: Settings, base: Settings) -> tuple[str, ...]:
    """Return the PRAGMAs in which settings differ from others: "PRAGMA page_size = 1024"."""
    changed = [name for name in _PRAGMAS if getattr(settings, name) != getattr(base, name)]
    return tuple(f"PRAGMA {name} = {getattr(settings, name)}" for name in changed)
