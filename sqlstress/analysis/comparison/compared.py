"""Compared: a table of several reports with its differences, and the figures that may be shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlstress.analysis.comparison.differences import Difference, barriers, remarks
from sqlstress.analysis.comparison.estimates import ALPHA, Estimate, estimate, logarithms
from sqlstress.analysis.comparison.matching import Table, match
from sqlstress.analysis.group import rate_of
from sqlstress.analysis.wording import finite
from sqlstress.report import Report, Run, Trial


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
        return tuple(reason for one in self.differences if (reason := one.barred[place]))

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
        return found.ratio if found else None

    def estimate(self, row: int, place: int) -> Estimate | None:
        """Return how a part's rate compares with the first one's; None where one has none."""
        rates = self.rate(row, 0), self.rate(row, place)
        own, other = (logarithms(self.run(row, one)) for one in (0, place))
        if own and other:
            return estimate(own, other, 1 - self.alpha)
        ratio = _over(rates[1], rates[0])  # where a trial came to no end: no interval
        return None if ratio is None else Estimate(ratio, None, None)

    def shape(self, row: int, place: int) -> float | None:
        """Return a part's rate over its own with one process on the same layout; None without that."""
        alone = self.alone(row)
        return None if alone is None else _over(self.rate(row, place), self.rate(alone, place))

    def alone(self, row: int) -> int | None:
        """Return the row with one process on the same layout; None without it."""
        *layout, _ = self.table.keys[row]
        key = (*layout, 1)
        return self.table.keys.index(key) if self.table.sweeps and key in self.table.keys else None

    def grown(self) -> list[tuple[int, dict[int, float]]]:
        """Return of each layout the row of the most processes that two parts have, and the shapes there."""
        found: dict[object, tuple[int, dict[int, float]]] = {}
        for row, (*layout, processes) in enumerate(self.table.keys):
            places = range(len(self.table.parts))
            shapes = {place: shape for place in places if (shape := self.shape(row, place))}
            if len(shapes) > 1 and processes != 1:
                found[tuple(layout)] = row, shapes
        return list(found.values())

    def claims(self) -> int:
        """Return how many ratios and shapes are held against the noise of their trials."""
        places = [place for place in range(1, len(self.table.parts)) if not self.reasons(place)]
        rows = range(len(self.table.keys))
        ratios = sum(
            self.rate(row, 0) is not None and self.rate(row, place) is not None
            for row in rows
            for place in places
        )
        return ratios + sum(len(shapes) - 1 for _, shapes in self.grown())

    def shapes(self, row: int, place: int) -> list[float]:
        """Return the logarithms of a part's shapes, trial by trial: those of the same number."""
        alone = self.alone(row)
        if alone is None:
            return []
        pairs = zip(*(logarithms(self.run(one, place)) for one in (alone, row)), strict=False)
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
    tables = [Compared(table, _differences(table), anyway) for table in match(reports)]
    alpha = ALPHA / max(1, sum(table.claims() for table in tables))
    return Comparison(names, reports, tuple(replace(table, alpha=alpha) for table in tables))


def _differences(table: Table) -> tuple[Difference, ...]:
    return tuple(one for one in (*barriers(table.parts), *remarks(table.parts)) if one.is_one)


def _over(rate: float | None, base: float | None) -> float | None:
    return finite(rate / base) if rate is not None and base is not None else None
