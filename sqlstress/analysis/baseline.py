"""Check of a report against a stored baseline report, which can fail a build in CI.

A run is all trials of a case. The trials of the two reports are not paired, unlike those of an A/B test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean, median

from sqlstress.analysis.ab import figure
from sqlstress.analysis.comparison import compare
from sqlstress.analysis.study_parts import first_study_label
from sqlstress.analysis.wording import listing, percent, place
from sqlstress.errors import UsageError
from sqlstress.experiment import case_label
from sqlstress.report import Report, Run
from sqlstress.statistics.compare import min_sample_size, unpaired, unpaired_bounds
from sqlstress.statistics.sequential import ALPHA, FAIL, INCONCLUSIVE, PASS, UNDECIDED, tolerance, verdict_of

NEAR_SHARE = 0.1
"""Share of --max-drop up to which `CaseCheck.agrees` treats a change as no change."""


@dataclass(frozen=True, slots=True)
class CaseCheck:
    """Comparison of one case in the current report and the baseline."""

    name: str
    base: float
    """Median figure (TPS, or p99 in ns) of the baseline's trials."""
    now: float
    """Median figure (TPS, or p99 in ns) of the current report's trials."""
    ratio: float
    """Current TPS or p99 divided by the baseline's (Hodges-Lehmann estimate)."""
    low: float | None
    """Lower end of the ratio's 95% interval; None for too few trials."""
    high: float | None
    """Upper end of the ratio's 95% interval; None for too few trials."""
    worst: float | None
    """Worst plausible ratio. The case passes if --max-drop allows it. None for too few trials."""
    best: float | None
    """Best plausible ratio. The case fails if --max-drop forbids it. None for too few trials."""
    verdict: str
    """fail (significantly worse than --max-drop allows), pass (significantly within it), or inconclusive."""

    def agrees(self, metric: str, max_drop: float) -> bool:
        """Return whether the estimate `ratio` and the medians show a change in one direction, or no change.

        If not, a verdict "pass" would contradict the medians `base` and `now`, which the report shows.
        """
        estimate, medians = (math.log(ratio) for ratio in (self.ratio, self.now / self.base))
        return estimate * medians >= 0 or max(abs(estimate), abs(medians)) <= NEAR_SHARE * abs(
            tolerance(metric, max_drop)
        )


@dataclass(frozen=True, slots=True)
class BaselineCheck:
    """Result of a check of a report against its baseline."""

    verdict: str
    """fail (wrong data, too many failed operations, or a case fails), pass (all cases), or inconclusive."""
    cases: tuple[CaseCheck, ...] = ()
    """Compared cases; empty if the current report has wrong data or too many failed operations."""
    ratio: float | None = None
    """Geometric mean of the ratios of all cases; None without cases."""
    wrong: str | None = None
    """Description of wrong data in the current report; None if all data is right."""
    failed: str | None = None
    """Clause on too many failed operations in the current report; None if --max-failed allows them."""
    differing: tuple[str, ...] = ()
    """Differences between the reports that may explain a change, as text."""
    left_out: int = 0
    """Number of the baseline's cases that are not compared, because the current report lacks them."""


def check(baseline: Report, current: Report, metric: str, max_drop: float) -> BaselineCheck:
    """Check a report against its baseline. Raise UsageError if they are not comparable.

    `metric` is "tps" or "p99". `max_drop` is the largest allowed change for the worse: 0.05 means 5%.
    """
    wrong_run = next((run for run in current.runs if run.verdict.status == "failed"), None)
    if wrong_run:
        return BaselineCheck(
            FAIL, wrong=next(iter(wrong_run.verdict.counterexamples), case_label(wrong_run.case))
        )
    if any(run.verdict.status == "failed" for run in baseline.runs):
        raise UsageError("the data of the baseline was wrong, so its figures are invalid. Measure it again.")
    if baseline.ab or current.ab:
        raise UsageError("an A/B test has its own verdict. Check reports of kv or of a plan instead.")
    if study_label := first_study_label((baseline, current)):
        raise UsageError(f"{study_label} has its own verdict. Check reports of kv or of a plan instead.")
    if failed_run := next((run for run in baseline.runs if run.failed_too_many), None):
        raise UsageError(f"in the baseline, {_too_many_failed(failed_run)}. Measure it again.")
    if failed_run := next((run for run in current.runs if run.failed_too_many), None):
        return BaselineCheck(FAIL, failed=_too_many_failed(failed_run))
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
    cases = tuple(_case_check(name, a, b, metric, share, max_drop) for name, a, b in pairs)
    verdicts = {case.verdict for case in cases}
    return BaselineCheck(
        # The worst verdict of any case is the verdict of the check.
        next(verdict for verdict in (FAIL, INCONCLUSIVE, PASS) if verdict in verdicts),
        cases,
        ratio=math.exp(fmean(math.log(case.ratio) for case in cases)),
        differing=tuple(
            dict.fromkeys(
                f"{difference.subject} ({listing([value or 'unknown' for value in difference.values])})"
                for table in tables
                for difference in table.differences
            )
        ),
        left_out=len(baseline.runs) - len(pairs),
    )


def _too_many_failed(run: Run) -> str:
    share, most = percent(run.failed_share()), percent(run.case.max_failed)
    return f"{share} of the operations failed at {place(run.case)}, and at most {most} may (--max-failed)"


def _case_check(name: str, base: Run, now: Run, metric: str, share: float, max_drop: float) -> CaseCheck:
    """Compare the trials of one case. Raise UsageError for an incomplete run or too few trials.

    `share` is the probability of a wrong verdict "fail": ALPHA divided by the number of cases, because a
    single case can fail the check. The probability of a wrong "pass" is ALPHA, because all cases must pass.
    """
    if error := base.error or now.error:
        # If only the fastest trials of a case were completed, the case would look too good.
        raise UsageError(f"{name} is incomplete: {error.removesuffix('.')}. Measure it again.")
    before, after = (_logarithms(name, run, metric) for run in (base, now))
    enough = min_sample_size(share)
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
    verdict = verdict_of(passing, [failing], tolerance(metric, max_drop))
    case_check = CaseCheck(
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
    is_doubtful = verdict == PASS and not case_check.agrees(metric, max_drop)
    return replace(case_check, verdict=INCONCLUSIVE) if is_doubtful else case_check


def _logarithms(name: str, run: Run, metric: str) -> list[float]:
    """Return the logarithm of each trial's TPS or p99. Raise UsageError if any of them is unknown.

    A trial without a figure may be the slowest. If it were left out, the case would look too good.
    """
    figures = [figure(trial, metric) for trial in run.valid]
    if None in figures:
        raise UsageError(
            f"a trial of {name} has no figure to compare; nothing may have completed in it. Use a longer "
            "--duration."
        )
    return [math.log(value) for value in figures if value]
