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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from random import Random
from typing import Any, NamedTuple

from sqlstress.errors import UsageError
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.compare import Passes, Ratio, quantile
from sqlstress.statistics.search import Fit, Row, design, fit, runs_of, survivors, winner

# What the balanced design tells: what each level of a factor does, and what any row of the grid promises.
#
# Least squares of logarithms. Each pass has a level of its own: what drifts is no effect.


RatesOfRows = Mapping[Row, Mapping[int, float]]
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


def effects(rates: RatesOfRows, error: float) -> list[Effect]:
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


def promise(rates: RatesOfRows) -> Callable[[Row], float] | None:
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

    def __init__(self, rates: RatesOfRows) -> None:
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
        raise UsageError(f"--buckets names {len(buckets)} numbers: choose among {MOST_BUCKETS} at most.")
    found = [factor for factor in FACTORS if not _is_settled(factor, given, case)]
    if len(buckets) > 1:
        files = ((str(count), {"buckets": str(count)}) for count in buckets[1:])
        found.append(Factor("buckets", (("", {}), *files)))
    if not found:
        raise UsageError("nothing is left to be searched: every option of it was given. Leave some out.")
    return tuple(found)


def _is_settled(factor: Factor, given: Mapping[str, Any], case: Case) -> bool:
    names = {name for _, options in factor.levels for name in options}
    if names & given.keys():
        return True
    if factor is CHECKPOINTS:
        return case.settings.journal_mode != "wal"
    # Whoever is alone waits for nobody.
    return factor.name == "busy" and case.concurrency == 1


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
