"""Comparison: what reports say about each other, as data; and why they can't be compared, if so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.analysis import sentences
from sqlstress.analysis.differences import Difference, Table, differences, match
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import rate_of
from sqlstress.analysis.sentences import Claim, Growth, RateRatio, RateRatios
from sqlstress.experiment import rate_units_of
from sqlstress.report import Report, Run, Trial
from sqlstress.statistics.compare import (
    DIFFERENT,
    EQUAL,
    NEAR,
    TOO_FEW,
    UNCLEAR,
    Ratio,
    needed,
    unpaired,
    verdict,
    without_interval,
)
from sqlstress.statistics.units import finite, plural, rounded

ALPHA = 0.05
"""How often at most one of a comparison's intervals misses what it is about."""
MOST_TRIALS = 300
"""So many trials of a case are looked at; a report can hold any number."""


def rate_verdict(ratio: Ratio | None) -> str:
    """Return what can be said of two reports' rates: a difference is one, as small as it may be."""
    return verdict(ratio, NEAR, slight=DIFFERENT)


def logarithms(run: Run | None) -> list[float]:
    """Return the logarithms of the rates of a run's trials; none where one of them has no rate.

    To leave out a trial that stood still would flatter the case.
    """
    if run is None or rate_of(run) is None:
        return []
    trials = run.valid[:MOST_TRIALS]
    found = [rate for trial in trials if (rate := rate_of(replace(run, trials=(trial,))))]
    return [math.log(rate) for rate in found] if len(found) == len(trials) else []


@dataclass(frozen=True, slots=True)
class Compared:
    """Cases of several reports, what they differ in, and how their figures compare."""

    table: Table
    """The cases, a row each, and what each report has of them."""
    differences: tuple[Difference, ...]
    """What the reports differ in, what bars a ratio first."""
    anyway: bool
    """Whether ratios are shown even where they mean nothing."""
    alpha: float = ALPHA
    """How often an interval misses its ratio: so seldom that all claims of a comparison hold together."""

    def reasons(self, place: int) -> tuple[str, ...]:
        """Return why a part's figures can't be set in a ratio to the first one's; none if they can."""
        return tuple(reason for each in self.differences if (reason := each.barred[place]))

    def shows_ratio(self, place: int) -> bool:
        """Return whether a part has ratios to show."""
        return place > 0 and (self.anyway or not self.reasons(place))

    def run(self, row: int, place: int) -> Run | None:
        """Return what a part has in a row."""
        return self.table.parts[place].runs[row]

    def trial(self, row: int, place: int) -> Trial | None:
        """Return the trial that stands for a case; None if it was not done, or its data is wrong."""
        run = self.run(row, place)
        trial = run.typical() if run and run.verdict.status != "failed" else None
        return trial if trial and trial.error is None and trial.outcome == "done" else None

    def rate(self, row: int, place: int) -> float | None:
        """Return what a case is compared by, more being better; None without one.

        That is TPS, in cycles the cycles a second, and in the other experiments the rows a second.
        """
        run = self.run(row, place)
        return rate_of(run) if run else None

    def ratio(self, row: int, place: int) -> float | None:
        """Return a part's rate over the first one's; None where there is none, or none to be shown."""
        found = self.estimate(row, place) if self.shows_ratio(place) else None
        return found.estimate if found else None

    def estimate(self, row: int, place: int) -> Ratio | None:
        """Return how a part's rate compares with the first one's; None where one has none.

        Trials are what is independent, so a case of one trial has no interval.
        """
        own, other = (logarithms(self.run(row, part)) for part in (0, place))
        if own and other:
            return unpaired(own, other, 1 - self.alpha)
        ratio = _over(self.rate(row, place), self.rate(row, 0))  # where a trial came to no end: no interval
        return None if ratio is None else without_interval(ratio)

    def shape(self, row: int, place: int) -> float | None:
        """Return a part's rate over its own with one process on the same layout; None without that."""
        alone = self._alone(row)
        return None if alone is None else _over(self.rate(row, place), self.rate(alone, place))

    def _alone(self, row: int) -> int | None:
        """Return the row with one process on the same layout; None without it."""
        key = (*self.table.keys[row][:-1], 1)
        return self.table.keys.index(key) if self.table.sweeps and key in self.table.keys else None

    def grown(self) -> list[tuple[int, dict[int, float]]]:
        """Return of each layout the row of the most processes that two parts have, and the shapes there."""
        found: dict[object, tuple[int, dict[int, float]]] = {}
        for row, (*layout, count) in enumerate(self.table.keys):
            places = range(len(self.table.parts))
            shapes = {place: shape for place in places if (shape := self.shape(row, place))}
            if len(shapes) > 1 and count != 1:
                found[tuple(layout)] = row, shapes
        return list(found.values())

    def claims(self) -> int:
        """Return how many ratios and shapes are held against the noise of their trials."""
        ratios = sum(
            self.rate(row, 0) is not None and self.rate(row, place) is not None
            for place in range(1, len(self.table.parts))
            if not self.reasons(place)
            for row in range(len(self.table.keys))
        )
        return ratios + sum(len(shapes) - 1 for _, shapes in self.grown())

    def shapes(self, row: int, place: int) -> list[float]:
        """Return the logarithms of a part's shapes, trial by trial: those of the same number."""
        alone = self._alone(row)
        if alone is None:
            return []
        pairs = zip(*(logarithms(self.run(number, place)) for number in (alone, row)), strict=False)
        return [rate - base for base, rate in pairs]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several reports side by side, the first being the one that the others are compared with."""

    names: tuple[str, ...]
    """What each report is known by, such as its file."""
    reports: tuple[Report, ...]
    """Two or more, called by the letters of LETTERS."""
    tables: tuple[Compared, ...]
    """What the first one has in common with the others."""

    def shown(self) -> tuple[int, ...]:
        """Return how many cases of each report are in a table."""
        parts = [part for compared in self.tables for part in compared.table.parts]
        return tuple(
            sum(len(list(part.measured())) for part in parts if part.report is report)
            for report in self.reports
        )


def compare(named: Sequence[tuple[str, Report]], anyway: bool = False) -> Comparison:
    """Set reports side by side: two to 26, each with its name."""
    names, reports = zip(*named, strict=True)
    tables = [Compared(table, differences(table.parts), anyway) for table in match(reports)]
    alpha = ALPHA / max(1, sum(table.claims() for table in tables))
    return Comparison(names, reports, tuple(replace(table, alpha=alpha) for table in tables))


def _over(rate: float | None, base: float | None) -> float | None:
    return finite(rate / base) if rate is not None and base is not None else None


# Conclusions: what a comparison means.


def conclude(compared: Compared) -> Iterator[Finding]:
    """Yield how the others compare with the first, and how the shapes compare."""
    table = compared.table
    for place in range(1, len(table.parts)):
        # Of each layout the most processes say it; in the other experiments every row stands for itself.
        rows = {
            key[:-1] if table.sweeps else key: row
            for row, key in enumerate(table.keys)
            if compared.rate(row, 0) and compared.rate(row, place)
        }
        if rows:
            yield _against_first(compared, place, list(rows.values()))
    for row, shapes in compared.grown():
        yield _shapes(compared, row, shapes)


def _against_first(compared: Compared, place: int, rows: Sequence[int]) -> Finding:
    reasons, letters = compared.reasons(place), _letters(compared, place)
    if not reasons:
        return Finding(sentences.comparison, claims=tuple(_claims(compared, place, rows)))
    if compared.anyway:
        ratios = _ratios(compared, place, rows)
        return Finding(sentences.reports_not_comparable, **letters, ratios=ratios, reasons=reasons)
    # The two figures of the last row. The first has a unit if the units differ.
    (base, base_unit), (rate, unit) = (
        (compared.rate(rows[-1], part) or 0.0, _unit(compared, part)) for part in (0, place)
    )
    return Finding(
        sentences.reports_not_comparable,
        **letters,
        figures=(
            f"At {compared.table.row_name(rows[-1])}, {letters['a']} shows {rounded(base)}"
            f"{f' {base_unit}' if base_unit != unit else ''} and {letters['b']} {rounded(rate)} {unit}"
        ),
        reasons=reasons,
    )


def _letters(compared: Compared, place: int) -> dict[str, Any]:
    return {"a": compared.table.parts[0].letter, "b": compared.table.parts[place].letter}


def _claims(compared: Compared, place: int, rows: Sequence[int]) -> Iterator[Claim]:
    """Yield the claims about these rows, the firmest first."""
    table, found = compared.table, {row: compared.estimate(row, place) for row in rows}
    for said in (DIFFERENT, EQUAL, UNCLEAR, TOO_FEW):
        own = [row for row, ratio in found.items() if ratio and rate_verdict(ratio) == said]
        if not own:
            continue
        facts: dict[str, Any] = dict(_letters(compared, place))
        if said in (DIFFERENT, TOO_FEW):
            facts["ratios"] = _ratios(compared, place, own)
        elif len(own) > 1 and not table.sweeps:
            facts["where"] = (f"in {plural(len(own), 'case')}",)
        else:
            facts["where"] = tuple(f"at {table.row_name(row)}" for row in own)
        if said == TOO_FEW:
            facts["repeat"] = needed(compared.alpha / 2)
        # The interval of one row, or the widest of several: they hold together.
        elif ends := [(ratio.low, ratio.high) for row in own if (ratio := found[row]) and ratio.low]:
            lows, highs = zip(*ends, strict=True)
            facts |= {"low": min(lows), "high": max(highs), "several": len(ends) > 1}
        yield Claim(said, **facts)


def _ratios(compared: Compared, place: int, rows: Sequence[int]) -> RateRatios:
    """Return the ratios of a part in these rows, or the two ends of many cases that are no sweep."""
    whose, unit = compared.table.parts[0].letter, _unit(compared, 0)
    ratios = [RateRatio(compared.ratio(row, place) or 0.0, compared.table.row_name(row)) for row in rows]
    if not compared.table.sweeps and len(rows) > 1:
        ends = (min(ratios, key=lambda ratio: ratio.times), max(ratios, key=lambda ratio: ratio.times))
        return RateRatios(whose, unit, ends, len(rows))
    return RateRatios(whose, unit, tuple(ratios))


def _unit(compared: Compared, place: int) -> str:
    return f"{rate_units_of(compared.table.parts[place].case)} per second"


def _shapes(compared: Compared, row: int, shapes: Mapping[int, float]) -> Finding:
    """Return the growth of the totals of a layout, and its comparison with the first part's."""
    letters = {place: compared.table.parts[place].letter for place in shapes}
    first, *others = shapes
    verdicts: dict[str, list[str]] = {}
    for place in others:
        own = unpaired(compared.shapes(row, first), compared.shapes(row, place), 1 - compared.alpha)
        verdicts.setdefault(rate_verdict(own), []).append(letters[place])
    return Finding(
        sentences.shape,
        where=compared.table.row_name(row),
        totals={letters[place]: shape for place, shape in shapes.items()},
        growths=tuple(Growth(said, letters[first], tuple(own)) for said, own in verdicts.items()),
    )
