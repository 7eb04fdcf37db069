"""Effects of the numbers of processes and buckets (files) on throughput and waits; saturation.

A layout is a number of buckets (database files that partition the keys). A run is all trials of a case, and a
group is the runs in one table. The longest wait is the latency of the slowest operation. A case is saturated
if it cannot keep up with a fixed rate of operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from sqlstress.analysis import sentences
from sqlstress.analysis.answers import is_conclusive, leaders, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import ERROR, Group, PairwiseTests, by_files, longest_wait_ns, noise
from sqlstress.analysis.sentences import LayoutChange, LayoutGain
from sqlstress.analysis.wording import buckets_label, layouts, places
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.compare import DIFFERENT, MIN_PASSES, NEAR, quantile, verdict
from sqlstress.statistics.units import NS_PER_S, finite, rounded

MAX_REPORTED_GAIN = 1.0
"""Largest upper bound of a gain, as a share (1.0 is 100%), that a finding states: "at most 50%"."""


def throughput_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on the best runs, and on the growth of throughput with buckets and processes.

    Yield nothing if all runs have equal numbers of processes and buckets, or at a fixed rate, because the
    rate decides the throughput.
    """
    runs = _comparable_runs(group)
    if not runs or group.case.rate:
        return
    tested = group.pairwise_tests(runs)
    if tested is None:
        best = max(runs, key=lambda run: run.median_tps() or 0.0)
        yield Finding(
            sentences.highest,
            rate=best.median_tps() or 0.0,
            unit=group.unit,
            where=places([best.case]),
            advice=more_trials(best.case),
        )
        return
    yield _best_finding(group, tested, runs)
    curves = _curves(tested, runs)
    (base_files, base), *others = curves.items()
    if gains := [gain for layout, curve in others if (gain := _layout_gain(base, layout, curve))]:
        yield Finding(sentences.layouts, base=base.layout_label(base_files), others=tuple(gains))
    yield from _scaling_findings(curves)


def _comparable_runs(group: Group) -> list[Run]:
    """Return the runs that can be compared; [] if all have equal numbers of processes and buckets."""
    runs = [run for run in group.runs if run.case.concurrency and group.is_comparable(run)]
    return runs if len({(run.case.buckets, run.case.concurrency) for run in runs}) > 1 else []


def _curves(tested: PairwiseTests, runs: Sequence[Run]) -> dict[int, Curve]:
    """Return a curve, throughput by number of processes, for each number of buckets (ascending)."""
    by_layout = by_files(runs, lambda run: run.case.buckets)
    return {layout: Curve(tested, layout_runs, len(by_layout)) for layout, layout_runs in by_layout.items()}


def _best_finding(group: Group, tested: PairwiseTests, runs: Sequence[Run]) -> Finding:
    lead = leaders(tested, runs)
    medians = sorted(run.median_tps() or 0.0 for run in lead.runs)
    is_several = len(lead.runs) > 1
    is_one_figure = lead.equal or rounded(medians[0]) == rounded(medians[-1])
    return Finding(
        sentences.best,
        rate=medians[-1] if is_one_figure else medians[0],
        most=None if is_one_figure else medians[-1],
        about=is_several and is_one_figure,
        unit=group.unit,
        where=group.short_places([run.case for run in lead.runs]),
        equal=lead.equal,
        unclear=lead.unclear,
    )


class Curve:
    """Throughput by number of processes at a fixed number of buckets, with tests of where it rises."""

    def __init__(self, tested: PairwiseTests, measured: Sequence[Run], divide_error_by: int) -> None:
        self.tested, self.divide_error_by = tested, divide_error_by
        self.runs = sorted({run.case.concurrency: run for run in measured}.values(), key=_count)
        """Runs in ascending order of the number of processes, one run for each number."""

    def layout_label(self, layout: int) -> str:
        """Return the label of a number of buckets, such as "20 buckets"."""
        return buckets_label(layout, [run.case for run in self.runs])

    @property
    def rising_runs(self) -> list[Run]:
        """First runs of the curve: beyond each of these, more processes raise throughput significantly.

        The runs are tested in ascending order, up to the first run without a rise. In a fixed order, each
        test may use the whole error probability.
        """
        rising = []
        for place, run in enumerate(self.runs[:-1], 1):
            if not self.tested.rises(run, self.runs[place:], self.divide_error_by):
                break
            rising.append(run)
        return rising

    @property
    def plateau_run(self) -> Run:
        """First run beyond which more processes gain significantly less than 10% (NEAR); else the last run.

        The gain of later runs is relative to the best run up to this run. The runs are tested from the last
        to the first, until a test cannot exclude a gain of 10%.
        """
        fewest = self.runs[-1]
        for place in range(len(self.runs) - 1, 0, -1):
            upto, later = self.runs[:place], self.runs[place:]
            if min(self._max_gain(run, later, len(upto)) for run in upto) >= 1 / (1 - NEAR):
                break
            fewest = upto[-1]
        return fewest

    def _max_gain(self, run: Run, later: Sequence[Run], divide_error_by: int = 1) -> float:
        """Return an upper bound of the throughput of any `later` run divided by that of `run`."""
        return max(self.tested.gain(run, other, self.divide_error_by * divide_error_by) for other in later)

    def scaling(self) -> Finding:
        """Return the finding on the number of processes beyond which throughput does not rise."""
        runs, tested, less = self.runs, self.tested, self.rising_runs
        if len(less) == len(runs) - 1:
            return Finding(sentences.still_rising, most=_count(runs[-1]))
        enough, first = self.plateau_run, runs[len(less)]
        if enough is runs[-1]:
            return self._unclear_scaling(less, first)
        best = tested.best(runs)
        after = ((run, tested.base_ratio(run, best)) for run in runs if _count(run) > _count(best))
        fallen = [
            run for run, ratio in after if verdict(ratio, NEAR) == DIFFERENT and ratio and ratio.is_above
        ]
        return Finding(
            sentences.plateau,
            enough=_count(enough),
            share=NEAR,
            most=_count(fallen[-1]) if fallen else None,
            fall=tested.base_ratio(best, fallen[-1]) if fallen else None,
            unclear=None if enough is first else _count(first),
        )

    def _unclear_scaling(self, rising: Sequence[Run], first: Run) -> Finding:
        """Return the finding that throughput rises beyond the runs `rising`, but maybe not beyond `first`."""
        later = self.runs[self.runs.index(first) + 1 :]
        most = max(self._max_gain(first, later) - 1, NEAR)
        return Finding(
            sentences.scaling_unclear,
            less=_count(rising[-1]) if rising else None,
            first=_count(first),
            most=None if most > MAX_REPORTED_GAIN else most,
            noise=noise(self.tested),
        )


def _count(run: Run) -> int:
    return run.case.concurrency


def _scaling_findings(curves: Mapping[int, Curve]) -> Iterator[Finding]:
    by_finding: dict[Finding, list[int]] = {}
    for layout, curve in curves.items():
        if len(curve.runs) > 1:
            by_finding.setdefault(curve.scaling(), []).append(layout)
    for finding, shared in by_finding.items():
        where = {"where": layouts(shared)} if len(curves) > 1 else {}
        yield Finding(finding.sentence, **where, **finding.facts)


def _layout_gain(base: Curve, layout: int, curve: Curve) -> LayoutGain | None:
    """Return the throughput of `curve` (on `layout` buckets) divided by that of the curve `base`.

    The two throughputs are for the largest number of processes that both curves have. None if there is no
    such number, or for too few trials.
    """
    base_runs = {_count(run): run for run in base.runs}
    common = [run for run in curve.runs if _count(run) in base_runs]
    base_run = base_runs[_count(common[-1])] if common else None
    ratio = curve.tested.base_ratio(base_run, common[-1]) if base_run else None
    if ratio is None:
        return None
    return LayoutGain(curve.layout_label(layout), _count(common[-1]), ratio, not is_conclusive(ratio))


MIN_WAIT_RATIO = 1.5
"""Smallest reported ratio between the longest waits (slowest operations) of two cases."""
MIN_FAIRNESS_CHANGE = 0.05
"""Smallest reported change of fairness (Jain's index of the processes' shares)."""


def waits(group: Group) -> Iterator[Finding]:
    """Yield a finding if the number of buckets significantly changes the longest wait, or fairness.

    The fewest and the most buckets are compared, at the largest number of processes that both have.
    """
    runs = _comparable_runs(group)
    tested = group.pairwise_tests(runs) if runs else None
    if tested is None or group.case.rate:
        return
    (base_files, base), *others = _curves(tested, runs).items()
    if not others:
        return
    layout, curve = others[-1]
    base_by_count, other_by_count = ({_count(run): run for run in side.runs} for side in (base, curve))
    most = max(base_by_count.keys() & other_by_count.keys(), default=1)
    if most > 1 and (
        changes := _wait_changes(base_by_count[most], other_by_count[most], ERROR / group.groups)
    ):
        layouts = LayoutChange(curve.layout_label(layout), base.layout_label(base_files))
        yield Finding(sentences.waits, change=layouts, most=most, **changes)


def _wait_changes(base: Run, other: Run, error: float) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    before, after = longest_wait_ns(base), longest_wait_ns(other)
    is_significant = _are_separate(_longest_waits(base), _longest_waits(other), error / 2)
    if is_significant and 0 < min(before, after) * MIN_WAIT_RATIO <= max(before, after):
        facts |= {"wait_before_ns": before, "wait_ns": after}
    was, now = base.valid_median_trial(), other.valid_median_trial()
    fair, fair_now = (was and finite(was.fairness)) or 0.0, (now and finite(now.fairness)) or 0.0
    is_compared = is_fairness_known(base.case) and is_fairness_known(other.case)
    is_significant = is_compared and _are_separate(_fairness(base), _fairness(other), error / 2)
    if is_significant and abs(fair_now - fair) >= MIN_FAIRNESS_CHANGE:
        facts |= {"fairness_before": fair, "fairness": fair_now}
    return facts


def _longest_waits(run: Run) -> list[float]:
    return [trial.longest_wait_ns or 0 for trial in run.valid]


def _fairness(run: Run) -> list[float]:
    return [jain for trial in run.valid if (jain := finite(trial.fairness)) is not None]


def _are_separate(base: Sequence[float], other: Sequence[float], error: float) -> bool:
    """Return whether all values of one run exceed all values of the other, and chance is excluded.

    `error` is the maximum probability of chance. The test is the extreme case of the Mann-Whitney test, which
    is valid for any distribution.
    """
    if 2 / math.comb(len(base) + len(other), len(base)) > error:
        return False
    return max(base) < min(other) or max(other) < min(base)


# Effects of waiting for a lock: uneven shares of the processes, long waits, and counts of busy errors.


MIN_FAIRNESS = 0.9
"""Fairness (Jain's index) below which the processes' shares are reported as uneven."""
LONG_WAIT_NS = NS_PER_S
"""Latency, in ns, above which an operation is starved, if it is also unusual (UNUSUAL_MULTIPLE)."""
UNUSUAL_MULTIPLE = 10
"""Multiple of the median latency (of the slowest kind of operation) above which a wait is unusual."""


FAIR_WINDOW_S = 1.0
"""Minimum length of a window (measured time) in which the processes' shares are judged, in seconds.

SQLite's busy handler sleeps up to 100 ms before it tries a lock again. In windows shorter than ten such
sleeps, shares are uneven by chance. Source: https://www.sqlite.org/c3ref/busy_timeout.html,
sqliteDefaultBusyCallback() in main.c
"""


def is_fairness_known(case: Case) -> bool:
    """Return whether fairness can be judged. With --ops, all processes do equal shares of the work."""
    return case.ops is None


def starvation(
    group: Group, remedy: Callable[[list[Case]], str | None] = lambda _: None
) -> Iterator[Finding]:
    """Yield a finding if the processes' shares of the operations were uneven, or a wait was long.

    `remedy` returns advice for the affected cases. Yield nothing at a fixed rate, where shares depend on
    chance, and a wait includes the time in the queue.
    """
    if group.case.rate:
        return
    uneven: list[tuple[Case, float]] = []
    waited: list[tuple[Case, float]] = []
    for run, trial in group.measured():
        if run.case.concurrency == 1:
            continue
        # Uneven shares in a single trial may be chance, so shares must be uneven in every trial to count.
        passes = run.all_valid if is_fairness_known(run.case) else ()
        shares = [finite(passed.fairness) for passed in passes if passed.seconds >= FAIR_WINDOW_S]
        if shares and all(jain is not None and jain < MIN_FAIRNESS for jain in shares):
            uneven.append((run.case, finite(trial.fairness) or 0.0))
        # A wait counts only if it is unusual even for the slowest kind of operation.
        medians = [finite(kind.p50_ns) for passed in run.valid for kind in passed.latency.values()]
        usual_ns = max(filter(None, medians), default=0.0)
        if longest_wait_ns(run) > max(LONG_WAIT_NS, UNUSUAL_MULTIPLE * usual_ns):
            waited.append((run.case, longest_wait_ns(run)))
    if not uneven and not waited:
        return
    cases = [case for case, _ in uneven + waited]
    yield Finding(
        sentences.starvation,
        where=places(cases),
        fairness=min((jain for _, jain in uneven), default=None),
        longest_ns=max((wait for _, wait in waited), default=None),
        remedy=remedy(cases),
    )


def tally(group: Group, count: Callable[[Trial], int | None]) -> tuple[int, list[Case]]:
    """Sum `count(trial)` over all trials of a group. Return the sum, and the cases with a sum above 0."""
    sums = [(run.case, sum(count(trial) or 0 for trial in run.trials)) for run in group.runs]
    above_0 = [(case, number) for case, number in sums if number > 0]
    return sum(number for _, number in above_0), [case for case, _ in above_0]


MIN_ACHIEVED_SHARE = 0.99
"""A case is saturated if significantly less than this share of the due operations was done."""
_DEVIATIONS = 3.0
"""Shortfall of operations, in standard deviations, that shows saturation in 1 or 2 trials."""
KEPT_UP, SATURATED, RATE_UNKNOWN = "kept up", "saturated", "cannot tell"
"""Verdicts at a fixed rate: almost all due operations were done; significantly too few; unclear."""


def achieved_share(trials: Sequence[Trial]) -> float | None:
    """Return operations done / operations due in the measured time of trials; None if none was due.

    The share can exceed 1: operations due in the warm-up may be done in the measured time.
    """
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return sum(trial.transactions for trial in trials if trial.arrived) / due if due else None


def saturation(trials: Sequence[Trial], error: float) -> str:
    """Return the verdict on trials at a fixed rate: KEPT_UP, SATURATED or RATE_UNKNOWN.

    A rate is not kept if too few of the due operations were done. But some are always in progress at the end
    of a trial, and their number depends on chance. For MIN_PASSES (3) or more trials, Student's t test allows
    for this chance, and `error` is the probability of a wrong SATURATED. For fewer trials, `error` is not
    used, see `saturation_of_few`.
    """
    share = achieved_share(trials)
    if share is None or share >= MIN_ACHIEVED_SHARE:
        return KEPT_UP
    shares = [part for trial in trials if (part := achieved_share([trial])) is not None]
    if len(shares) >= MIN_PASSES and min(shares) > 0:
        logs = [math.log(part) for part in shares]
        reach = quantile(1 - error, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
        return SATURATED if fmean(logs) + reach < math.log(MIN_ACHIEVED_SHARE) else RATE_UNKNOWN
    return saturation_of_few(trials)


def saturation_of_few(trials: Sequence[Trial]) -> str:
    """Return the verdict on a few trials at a fixed rate: KEPT_UP, SATURATED or RATE_UNKNOWN.

    For SATURATED, the shortfall from MIN_ACHIEVED_SHARE of the due operations must exceed 3 standard
    deviations (_DEVIATIONS).
    """
    share = achieved_share(trials)
    if share is None or share >= MIN_ACHIEVED_SHARE:
        return KEPT_UP
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return SATURATED if (MIN_ACHIEVED_SHARE - share) * due > _DEVIATIONS * math.sqrt(due) else RATE_UNKNOWN
