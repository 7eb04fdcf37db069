"""A stored baseline against a report of today: the gate's verdicts, from trials that are not paired."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean, median

from sqlstress.analysis.ab import figure
from sqlstress.analysis.comparison import compare
from sqlstress.analysis.study_parts import called
from sqlstress.analysis.wording import listing, percent, place
from sqlstress.errors import UsageError
from sqlstress.experiment import case_label
from sqlstress.report import Report, Run
from sqlstress.statistics.compare import needed, unpaired, unpaired_bounds
from sqlstress.statistics.sequential import ALPHA, FAIL, INCONCLUSIVE, PASS, UNDECIDED, judged, tolerance

NEAR = 0.1
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
        one, other = (math.log(ratio) for ratio in (self.ratio, self.now / self.base))
        return one * other >= 0 or max(abs(one), abs(other)) <= NEAR * abs(tolerance(metric, max_drop))


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
    failed: str | None = None
    """The share of today's operations that failed, if more failed than --max-failed allows; else None."""
    differing: tuple[str, ...] = ()
    """What the reports differ in, that does not bar a comparison."""
    left_out: int = 0
    """Cases of the baseline that today's report has not got."""


def check(baseline: Report, current: Report, metric: str, max_drop: float) -> Checked:
    """Check a report against its baseline. Raises UsageError where the two are not comparable."""
    wrong = next((run for run in current.runs if run.verdict.status == "failed"), None)
    if wrong:
        return Checked(FAIL, wrong=next(iter(wrong.verdict.counterexamples), case_label(wrong.case)))
    if any(run.verdict.status == "failed" for run in baseline.runs):
        raise UsageError("the data of the baseline was wrong, so its figures are invalid. Measure it again.")
    if baseline.ab or current.ab:
        raise UsageError("an A/B test has its own verdict. Check reports of kv or of a plan instead.")
    if what := called((baseline, current)):
        raise UsageError(f"{what} has its own verdict. Check reports of kv or of a plan instead.")
    if failed := next((run for run in baseline.runs if run.failed_too_many), None):
        raise UsageError(f"in the baseline, {_too_many_failed(failed)}. Measure it again.")
    if failed := next((run for run in current.runs if run.failed_too_many), None):
        return Checked(FAIL, failed=_too_many_failed(failed))
    tables = compare((("the baseline", baseline), ("the report", current))).tables
    if reasons := list(dict.fromkeys(reason for table in tables for reason in table.reasons(1))):
        raise UsageError(
            f"the reports are not comparable: {listing(reasons)} (A is the baseline). Measure the "
            "baseline again with the same options."
        )
    pairs = [
        (compared.table.row_name(row), base, now)
        for compared in tables
        for row in range(len(compared.table.keys))
        if (base := compared.run(row, 0)) and (now := compared.run(row, 1))
        if base.case.buckets == now.case.buckets
    ]
    if not pairs:
        raise UsageError("the reports have no case in common. Measure the baseline's cases again.")
    share = ALPHA / len(pairs)
    cases = tuple(_case(name, a, b, metric, share, max_drop) for name, a, b in pairs)
    verdicts = {case.verdict for case in cases}
    return Checked(
        # One case that fails is enough to fail, all must pass to pass.
        next(verdict for verdict in (FAIL, INCONCLUSIVE, PASS) if verdict in verdicts),
        cases,
        ratio=math.exp(fmean(math.log(case.ratio) for case in cases)),
        differing=tuple(
            dict.fromkeys(
                f"{differing.subject} ({listing([value or 'unknown' for value in differing.values])})"
                for table in tables
                for differing in table.differences
            )
        ),
        left_out=len(baseline.runs) - len(pairs),
    )


def _too_many_failed(run: Run) -> str:
    share, most = percent(run.failed_share()), percent(run.case.max_failed)
    return f"{share} of the operations failed at {place(run.case)}, and at most {most} may (--max-failed)"


def _case(name: str, base: Run, now: Run, metric: str, share: float, max_drop: float) -> CaseCheck:
    """Return what one case says; it may fail at its share of the error rate.

    All cases must pass for the whole to pass: each may at the whole of it.
    """
    if error := base.error or now.error:
        # The trials that are left may be the lucky ones.
        raise UsageError(f"{name} is incomplete: {error.removesuffix('.')}. Measure it again.")
    before, after = (_logarithms(name, run, metric) for run in (base, now))
    enough = needed(share)
    if min(len(before), len(after)) < enough:
        raise UsageError(
            f"too few trials: {name} has {len(before)} and {len(after)}, and each report needs {enough}. "
            f"Use --repeat {enough}."
        )
    sign = -1 if metric == "p99" else 1
    signed = [sign * value for value in before], [sign * value for value in after]
    passing, failing = unpaired_bounds(*signed, ALPHA), unpaired_bounds(*signed, share)
    ratio = unpaired(before, after)
    if ratio is None:
        raise UsageError(f"the figures of {name} are too far apart for a ratio. Measure it again.")
    verdict = judged(passing, [failing], tolerance(metric, max_drop))
    found = CaseCheck(
        name,
        base=median(map(math.exp, before)),
        now=median(map(math.exp, after)),
        ratio=ratio.estimate,
        low=ratio.low if ratio.pairs else None,
        high=ratio.high if ratio.pairs else None,
        worst=math.exp(sign * passing[0]) if passing else None,
        best=math.exp(sign * failing[1]) if failing else None,
        verdict=INCONCLUSIVE if verdict == UNDECIDED else verdict,
    )
    doubted = verdict == PASS and not found.agrees(metric, max_drop)
    return replace(found, verdict=INCONCLUSIVE) if doubted else found


def _logarithms(name: str, run: Run, metric: str) -> list[float]:
    """Return the logarithms of a case's figures. To leave out a trial that stood still would flatter it."""
    figures = [figure(trial, metric) for trial in run.valid]
    if None in figures:
        raise UsageError(
            f"a trial of {name} has no figure to compare; nothing may have completed in it. Use a longer "
            "--duration."
        )
    return [math.log(value) for value in figures if value]
