"""A stored baseline against a report of today: the gate's verdicts, from trials that are not paired."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean, median

from sqlstress.analysis.ab import figure
from sqlstress.analysis.comparison import Compared, compare
from sqlstress.analysis.finding import called
from sqlstress.analysis.wording import listing
from sqlstress.errors import UsageError
from sqlstress.report import Report, Run
from sqlstress.statistics.compare import needed, unpaired, unpaired_bounds
from sqlstress.statistics.sequential import ALPHA, FAIL, INCONCLUSIVE, PASS, clears, falls, tolerance

_NEAR = 0.1
"""Of what is allowed: changes within it are about none, whatever their signs."""


@dataclass(frozen=True, slots=True)
class CaseCheck:
    """One case, in both reports."""

    name: str
    base: float
    """The baseline's figure: the median of its trials."""
    now: float
    ratio: float
    """Today's figure over the baseline's: the Hodges-Lehmann estimate of the logarithms."""
    low: float | None
    """Lower end of its 95 % interval; None for too few trials."""
    high: float | None
    worst: float | None
    """The ratio lies above it (p99: below it), at the error rate of a pass; None for too few trials."""
    best: float | None
    """The ratio lies below it (p99: above it), at the error rate of a failure; None for too few trials."""
    verdict: str
    """fail: more than is allowed, beyond doubt. pass: no more than is allowed, beyond doubt. inconclusive."""

    def agrees(self, metric: str, max_drop: float) -> bool:
        """Say whether the medians and the estimate tell of the same direction, or both of about no change."""
        changes = [_worse(ratio, metric) for ratio in (self.ratio, self.now / self.base)]
        near = _NEAR * abs(tolerance(metric, max_drop))
        return changes[0] * changes[1] >= 0 or max(map(abs, changes)) <= near


@dataclass(frozen=True, slots=True)
class Checked:
    """What a report says beside its baseline."""

    verdict: str
    """fail, pass or inconclusive."""
    cases: tuple[CaseCheck, ...] = ()
    ratio: float | None = None
    """The geometric mean of the cases' ratios."""
    wrong: str | None = None
    """What is wrong with the data of today's report; None when nothing is."""
    differing: tuple[str, ...] = ()
    """What the reports differ in, that does not bar a comparison."""
    left_out: int = 0
    """Cases of the baseline that today's report has not got."""


def check(baseline: Report, current: Report, metric: str, max_drop: float) -> Checked:
    """Check a report against its baseline. Raises UsageError where the two are not comparable."""
    wrong = next((run for run in current.runs if run.verdict.status == "failed"), None)
    if wrong:
        return Checked(FAIL, wrong=next(iter(wrong.verdict.counterexamples), wrong.case.label))
    if any(run.verdict.status == "failed" for run in baseline.runs):
        raise UsageError("the baseline's data was wrong, so its figures say nothing. Measure it again.")
    if baseline.ab or current.ab:
        raise UsageError("an A/B test has a verdict of its own: check the reports of kv, or of a plan.")
    if what := called((baseline, current)):
        raise UsageError(f"{what} has a verdict of its own: check the reports of kv, or of a plan.")
    tables = compare((("the baseline", baseline), ("the report", current))).tables
    _refuse(tables)
    pairs = [pair for table in tables for pair in _pairs(table)]
    if not pairs:
        raise UsageError("the reports have no case in common. Measure the baseline's cases again.")
    share = ALPHA / len(pairs)
    cases = tuple(_case(name, a, b, metric, share, max_drop) for name, a, b in pairs)
    ratio = math.exp(fmean(math.log(case.ratio) for case in cases))
    return Checked(
        _verdict(cases),
        cases,
        ratio,
        differing=tuple(
            dict.fromkeys(
                f"{one.subject} ({listing([value or 'unknown' for value in one.values])})"
                for table in tables
                for one in table.differences
            )
        ),
        left_out=len(baseline.runs) - len(pairs),
    )


def _refuse(tables: tuple[Compared, ...]) -> None:
    reasons = list(dict.fromkeys(reason for table in tables for reason in table.reasons(1)))
    if reasons:
        raise UsageError(
            f"these reports can't be compared: {listing(reasons)} (A is the baseline). "
            "Measure the baseline anew with the same options."
        )


def _pairs(compared: Compared) -> Iterator[tuple[str, Run, Run]]:
    """Yield each case that both reports have, by its name."""
    for row in range(len(compared.table.keys)):
        base, now = compared.run(row, 0), compared.run(row, 1)
        if base and now and base.case.buckets == now.case.buckets:
            yield compared.table.row_name(row), base, now


def _case(name: str, base: Run, now: Run, metric: str, share: float, max_drop: float) -> CaseCheck:
    """Return what one case says; it may fail at its share of the error rate.

    All cases must pass for the whole to pass: each may at the whole of it.
    """
    if error := base.error or now.error:
        # The trials that are left may be the lucky ones.
        raise UsageError(f"{name} was not wholly measured: {error.removesuffix('.')}. Measure it again.")
    before, after = (_logarithms(name, run, metric) for run in (base, now))
    enough = needed(share)
    if min(len(before), len(after)) < enough:
        raise UsageError(
            f"too few trials to conclude anything from: {name} has {len(before)} and {len(after)}, "
            f"{enough} in each report are needed. Measure with --repeat {enough}."
        )
    sign = -1 if metric == "p99" else 1
    judged = [sign * value for value in before], [sign * value for value in after]
    passing, failing = unpaired_bounds(*judged, ALPHA), unpaired_bounds(*judged, share)
    ratio = unpaired(before, after)
    if ratio is None:
        raise UsageError(f"the figures of {name} lie too far apart for a ratio. Measure it again.")
    found = CaseCheck(
        name,
        base=median(map(math.exp, before)),
        now=median(map(math.exp, after)),
        ratio=ratio.estimate,
        low=ratio.low if ratio.pairs else None,
        high=ratio.high if ratio.pairs else None,
        worst=math.exp(sign * passing[0]) if passing else None,
        best=math.exp(sign * failing[1]) if failing else None,
        verdict=INCONCLUSIVE,
    )
    allowed = tolerance(metric, max_drop)
    if falls(failing, allowed):
        return replace(found, verdict=FAIL)
    if clears(passing, allowed) and found.agrees(metric, max_drop):
        return replace(found, verdict=PASS)
    return found


def _worse(ratio: float, metric: str) -> float:
    """Return a ratio's difference, below zero where the figure became worse."""
    return -math.log(ratio) if metric == "p99" else math.log(ratio)


def _logarithms(name: str, run: Run, metric: str) -> list[float]:
    """Return the logarithms of a case's figures. To leave out a trial that stood still would flatter it."""
    figures = [figure(trial, metric) for trial in run.valid]
    if None in figures:
        raise UsageError(
            f"of {name} a trial has no figure to compare, as when nothing is completed in it. "
            "Measure again, with a longer --duration."
        )
    return [math.log(value) for value in figures if value]


def _verdict(cases: tuple[CaseCheck, ...]) -> str:
    """Return the verdict of all cases: one that fails is enough to fail, all must pass to pass."""
    found = {case.verdict for case in cases}
    return next(verdict for verdict in (FAIL, INCONCLUSIVE, PASS) if verdict in found)
