"""Comparison of several reports with the first: ratios of rates, or reasons why these mean nothing.

A run is all trials of a case in one report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.analysis import sentences
from sqlstress.analysis.differences import Difference, DifferencesTable, differences, match
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import rate_of
from sqlstress.analysis.sentences import Claim, RateRatio, RateRatios
from sqlstress.experiment import rate_units_of
from sqlstress.report import Report, Run, Trial
from sqlstress.statistics.compare import (
    DIFFERENT,
    EQUAL,
    NEAR,
    TOO_FEW,
    UNCLEAR,
    Ratio,
    min_sample_size,
    unpaired,
    verdict,
    without_interval,
)
from sqlstress.statistics.units import finite, plural, rounded

ALPHA = 0.05
"""Maximum probability that any interval of a comparison misses the true ratio."""
MAX_TRIALS = 300
"""Maximum number of trials of a case that are compared; later trials of the report are ignored."""


def rate_verdict(ratio: Ratio | None) -> str:
    """Return the verdict on a ratio of rates. A significant difference counts even below 10% (NEAR)."""
    return verdict(ratio, NEAR, slight=DIFFERENT)


def logarithms(run: Run | None) -> list[float]:
    """Return the logarithms of the rates of a run's first MAX_TRIALS trials; [] if any rate is unknown.

    A trial without a rate may be the slowest. If it were left out, the case would look too good.
    """
    if run is None or rate_of(run) is None:
        return []
    trials = run.valid[:MAX_TRIALS]
    rates = [rate for trial in trials if (rate := rate_of(replace(run, trials=(trial,))))]
    return [math.log(rate) for rate in rates] if len(rates) == len(trials) else []


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """Table of cases that several reports share, with rates compared to the first report.

    In all methods, `index` is the index of a report (0 is the first), and `row` is the index of a case.
    """

    table: DifferencesTable
    """Compared cases: a row for each case, with the trials of each report."""
    differences: tuple[Difference, ...]
    """Differences between the reports. Differences that make ratios meaningless come first."""
    anyway: bool
    """Whether the user requested ratios even of reports that are not comparable."""
    alpha: float = ALPHA
    """Probability that an interval misses the true ratio: ALPHA / number of intervals."""

    def reasons(self, index: int) -> tuple[str, ...]:
        """Return the reasons why the rates of this report and of the first report are not comparable."""
        return tuple(reason for difference in self.differences if (reason := difference.barred[index]))

    def shows_ratio(self, index: int) -> bool:
        """Return whether ratios of this report to the first are shown; False for the first report."""
        return index > 0 and (self.anyway or not self.reasons(index))

    def run(self, row: int, index: int) -> Run | None:
        """Return the report's run of the case in `row`; None if the report does not have the case."""
        return self.table.parts[index].runs[row]

    def trial(self, row: int, index: int) -> Trial | None:
        """Return the trial of median rate in the case; None if the trial failed or the data was wrong."""
        run = self.run(row, index)
        trial = run.typical() if run and run.verdict.status != "failed" else None
        return trial if trial and trial.error is None and trial.outcome == "done" else None

    def rate(self, row: int, index: int) -> float | None:
        """Return the report's rate of the case in `row`, per second; None if unknown."""
        run = self.run(row, index)
        return rate_of(run) if run else None

    def ratio(self, row: int, index: int) -> float | None:
        """Return the rate of report number `index` / the first report's; None if no ratio is to be shown.

        `row` is the number of a case in the table.
        """
        ratio = self.estimate(row, index) if self.shows_ratio(index) else None
        return ratio.estimate if ratio else None

    def estimate(self, row: int, index: int) -> Ratio | None:
        """Return the rate of report `index` / the first report's, with interval; None if a rate is unknown.

        The interval comes from the scatter of the trials. There is no interval for too few trials, or if any
        trial has no rate.
        """
        base, other = (logarithms(self.run(row, part)) for part in (0, index))
        if base and other:
            return unpaired(base, other, 1 - self.alpha)
        ratio = _quotient(self.rate(row, index), self.rate(row, 0))
        return None if ratio is None else without_interval(ratio)

    def shape(self, row: int, index: int) -> float | None:
        """Return the speedup: the rate / the rate with 1 process on as many files; None if unknown."""
        alone = self._single_process_row(row)
        return None if alone is None else _quotient(self.rate(row, index), self.rate(alone, index))

    def _single_process_row(self, row: int) -> int | None:
        key = (*self.table.keys[row][:-1], 1)
        return self.table.keys.index(key) if self.table.sweeps and key in self.table.keys else None

    def claims(self) -> int:
        """Return the number of meaningful ratios, among which the error probability ALPHA is divided."""
        return sum(
            self.rate(row, 0) is not None and self.rate(row, index) is not None
            for index in range(1, len(self.table.parts))
            if not self.reasons(index)
            for row in range(len(self.table.keys))
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of several reports with the first report."""

    names: tuple[str, ...]
    """Name of each report, such as its file name."""
    reports: tuple[Report, ...]
    """Two or more reports, labelled A, B, C and so on."""
    tables: tuple[ComparedTable, ...]
    """Tables of the cases that the first report shares with other reports."""

    def case_counts(self) -> tuple[int, ...]:
        """Return the number of compared cases of each report."""
        parts = [part for compared in self.tables for part in compared.table.parts]
        return tuple(
            sum(len(list(part.measured())) for part in parts if part.report is report)
            for report in self.reports
        )


def compare(named: Sequence[tuple[str, Report]], anyway: bool = False) -> Comparison:
    """Compare 2 to 26 reports, given as (name, report), with the first report.

    `anyway` is whether to show ratios even if differences between the reports make them meaningless. Raise
    UsageError for too many tables.
    """
    names, reports = zip(*named, strict=True)
    tables = [ComparedTable(table, differences(table.parts), anyway) for table in match(reports)]
    alpha = ALPHA / max(1, sum(table.claims() for table in tables))
    return Comparison(names, reports, tuple(replace(table, alpha=alpha) for table in tables))


def _quotient(rate: float | None, base: float | None) -> float | None:
    return finite(rate / base) if rate is not None and base is not None else None


def comparison_findings(compared: ComparedTable) -> Iterator[Finding]:
    """Yield a finding for each report after the first, which compares its rates with the first report's."""
    table = compared.table
    for index in range(1, len(table.parts)):
        # If the table varies the number of processes, only the row with the most processes is compared, for
        # each rate and number of files. In other tables, all rows are compared.
        rows = {
            key[:-1] if table.sweeps else key: row
            for row, key in enumerate(table.keys)
            if compared.rate(row, 0) and compared.rate(row, index)
        }
        if rows:
            yield _comparison_finding(compared, index, list(rows.values()))


def _comparison_finding(compared: ComparedTable, index: int, rows: Sequence[int]) -> Finding:
    reasons, letters = compared.reasons(index), _letters(compared, index)
    if not reasons:
        return Finding(sentences.comparison, claims=tuple(_claims(compared, index, rows)))
    if compared.anyway:
        ratios = _ratios(compared, index, rows)
        return Finding(sentences.reports_not_comparable, **letters, ratios=ratios, reasons=reasons)
    # The sentence shows both rates in the last row. If their units are equal, the unit is shown once.
    (base, base_unit), (rate, unit) = (
        (compared.rate(rows[-1], part) or 0.0, _unit(compared, part)) for part in (0, index)
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


def _letters(compared: ComparedTable, index: int) -> dict[str, Any]:
    return {"a": compared.table.parts[0].letter, "b": compared.table.parts[index].letter}


def _claims(compared: ComparedTable, index: int, rows: Sequence[int]) -> Iterator[Claim]:
    """Yield a claim for each verdict, such as EQUAL: a statement on all rows with this verdict."""
    table, ratios = compared.table, {row: compared.estimate(row, index) for row in rows}
    for outcome in (DIFFERENT, EQUAL, UNCLEAR, TOO_FEW):
        matching = [row for row, ratio in ratios.items() if ratio and rate_verdict(ratio) == outcome]
        if not matching:
            continue
        facts: dict[str, Any] = dict(_letters(compared, index))
        if outcome in (DIFFERENT, TOO_FEW):
            facts["ratios"] = _ratios(compared, index, matching)
        elif len(matching) > 1 and not table.sweeps:
            facts["where"] = (f"in {plural(len(matching), 'case')}",)
        else:
            facts["where"] = tuple(f"at {table.row_name(row)}" for row in matching)
        if outcome == TOO_FEW:
            facts["repeat"] = min_sample_size(compared.alpha / 2)
        # The stated range of a claim includes the intervals of all its rows. So if all intervals contain
        # their true ratios (probability 1 - ALPHA), the range contains all these ratios.
        elif ends := [(ratio.low, ratio.high) for row in matching if (ratio := ratios[row]) and ratio.low]:
            lows, highs = zip(*ends, strict=True)
            facts |= {"low": min(lows), "high": max(highs), "several": len(ends) > 1}
        yield Claim(outcome, **facts)


def _ratios(compared: ComparedTable, index: int, rows: Sequence[int]) -> RateRatios:
    """Return the rates of report `index` in `rows`, divided by the first report's.

    If the table does not vary the number of processes, there may be many rows, so the result has only the
    smallest and the largest ratio.
    """
    base_letter, unit = compared.table.parts[0].letter, _unit(compared, 0)
    ratios = [RateRatio(compared.ratio(row, index) or 0.0, compared.table.row_name(row)) for row in rows]
    if not compared.table.sweeps and len(rows) > 1:
        ends = (min(ratios, key=lambda ratio: ratio.times), max(ratios, key=lambda ratio: ratio.times))
        return RateRatios(base_letter, unit, ends, len(rows))
    return RateRatios(base_letter, unit, tuple(ratios))


def _unit(compared: ComparedTable, index: int) -> str:
    return f"{rate_units_of(compared.table.parts[index].case)} per second"
