"""Growth of throughput with processes and buckets, as far as it is significant; waits; saturation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from sqlstress.analysis import sentences
from sqlstress.analysis.answers import is_conclusive, leaders, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import (
    ERROR,
    Group,
    PairwiseTests,
    by_files,
    closed_loop_only,
    longest_wait_ns,
    noise,
)
from sqlstress.analysis.sentences import LayoutChange, LayoutGain
from sqlstress.analysis.wording import buckets_label, layouts, places
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.compare import DIFFERENT, MIN_PASSES, NEAR, quantile, verdict
from sqlstress.statistics.units import NS_PER_S, finite, rounded

MAX_REPORTED_GAIN = 1.0
"""Largest upper bound of a gain that is reported. A larger bound says nothing useful."""


@closed_loop_only
def throughput_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on the throughput of a group with several numbers of processes or buckets."""
    runs = _comparable_runs(group)
    if not runs:
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
        yield Finding(sentences.layouts, base=base.laid_out(base_files), others=tuple(gains))
    yield from _scaling_findings(curves)


def _comparable_runs(group: Group) -> list[Run]:
    """Return the comparable runs with a known number of processes; empty if all are of the same point."""
    runs = [run for run in group.runs if run.case.concurrency and group.is_believed(run)]
    return runs if len({(run.case.buckets, run.case.concurrency) for run in runs}) > 1 else []


def _curves(tested: PairwiseTests, runs: Sequence[Run]) -> dict[int, Curve]:
    by_layout = by_files(runs, lambda run: run.case.buckets)
    return {layout: Curve(tested, layout_runs, len(by_layout)) for layout, layout_runs in by_layout.items()}


def _best_finding(group: Group, tested: PairwiseTests, runs: Sequence[Run]) -> Finding:
    """Return the finding on the best runs.

    If several runs lead and their medians differ, it has the range of the medians, as the table does:
    the highest is not significantly better than the others.
    """
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
    """Runs of one layout, by number of processes."""

    def __init__(self, tested: PairwiseTests, measured: Sequence[Run], layouts: int) -> None:
        self.tested, self.layouts = tested, layouts
        self.runs = sorted({run.case.concurrency: run for run in measured}.values(), key=_count)
        """Runs in ascending order of processes, one for each number."""

    def laid_out(self, layout: int) -> str:
        """Return the label of the layout: "20 buckets"."""
        return buckets_label(layout, [run.case for run in self.runs])

    @property
    def less(self) -> list[Run]:
        """First runs of the curve from which throughput rises significantly with more processes.

        The runs are tested in order, up to the first negative result, so each test may use the whole error
        probability.
        """
        rising = []
        for place, run in enumerate(self.runs[:-1], 1):
            if not self.tested.rises(run, self.runs[place:], self.layouts):
                break
            rising.append(run)
        return rising

    @property
    def enough(self) -> Run:
        """Run with the fewest processes beyond which any gain is significantly smaller than NEAR.

        The gain is relative to the best run up to that number. Numbers of processes are tested in descending
        order, up to the first negative result: if the gain beyond a number is small, so it is beyond larger
        numbers.
        """
        fewest = self.runs[-1]
        for place in range(len(self.runs) - 1, 0, -1):
            upto, later = self.runs[:place], self.runs[place:]
            if min(self._max_gain(run, later, len(upto)) for run in upto) >= 1 / (1 - NEAR):
                break
            fewest = upto[-1]
        return fewest

    def _max_gain(self, run: Run, later: Sequence[Run], bases: int = 1) -> float:
        """Return an upper bound of the gain from `run` to any later run, as a factor.

        `bases` is the number of runs from which the gain is bounded.
        """
        return max(self.tested.gain(run, other, self.layouts * bases) for other in later)

    def scaling(self) -> Finding:
        """Return the finding on the number of processes at which throughput stops rising."""
        runs, tested, less = self.runs, self.tested, self.less
        if len(less) == len(runs) - 1:
            return Finding(sentences.still_rising, most=_count(runs[-1]))
        enough, first = self.enough, runs[len(less)]
        if enough is runs[-1]:
            return self._unclear(less, first)
        best = tested.best(runs)
        after = ((run, tested.beside(run, best)) for run in runs if _count(run) > _count(best))
        fallen = [
            run for run, ratio in after if verdict(ratio, NEAR) == DIFFERENT and ratio and ratio.is_above
        ]
        return Finding(
            sentences.plateau,
            enough=_count(enough),
            share=NEAR,
            most=_count(fallen[-1]) if fallen else None,
            fall=tested.beside(best, fallen[-1]) if fallen else None,
            unclear=None if enough is first else _count(first),
        )

    def _unclear(self, less: Sequence[Run], first: Run) -> Finding:
        """Return the finding for a gain beyond `first` that may be NEAR or more, with its upper bound."""
        later = self.runs[self.runs.index(first) + 1 :]
        most = max(self._max_gain(first, later) - 1, NEAR)
        return Finding(
            sentences.scaling_unclear,
            less=_count(less[-1]) if less else None,
            first=_count(first),
            most=None if most > MAX_REPORTED_GAIN else most,
            noise=noise(self.tested),
        )


def _count(run: Run) -> int:
    return run.case.concurrency


def _scaling_findings(curves: Mapping[int, Curve]) -> Iterator[Finding]:
    """Yield the findings of the curves; layouts with equal findings share one."""
    by_finding: dict[Finding, list[int]] = {}
    for layout, curve in curves.items():
        if len(curve.runs) > 1:
            by_finding.setdefault(curve.scaling(), []).append(layout)
    for finding, shared in by_finding.items():
        where = {"where": layouts(shared)} if len(curves) > 1 else {}
        yield Finding(finding.sentence, **where, **finding.facts)


def _layout_gain(base: Curve, layout: int, curve: Curve) -> LayoutGain | None:
    """Return the ratio of a layout to the base layout, at the most processes that both have."""
    base_runs = {_count(run): run for run in base.runs}
    common = [run for run in curve.runs if _count(run) in base_runs]
    base_run = base_runs[_count(common[-1])] if common else None
    ratio = curve.tested.beside(base_run, common[-1]) if base_run else None
    if ratio is None:
        return None
    return LayoutGain(curve.laid_out(layout), _count(common[-1]), ratio, not is_conclusive(ratio))


# Significant changes of the longest wait and of fairness between layouts.


MIN_WAIT_RATIO = 1.5
"""Smallest ratio of longest waits that is reported."""
MIN_FAIRNESS_CHANGE = 0.05
"""Smallest difference of fairness (Jain's index) that is reported."""


@closed_loop_only
def waits(group: Group) -> Iterator[Finding]:
    """Yield the significant changes of the longest wait and of fairness with the number of buckets.

    The layouts with the fewest and with the most buckets are compared, at the most processes that both have.
    """
    runs = _comparable_runs(group)
    tested = group.pairwise_tests(runs) if runs else None
    if tested is None:
        return
    (base_files, base), *others = _curves(tested, runs).items()
    if not others:
        return
    layout, curve = others[-1]
    base_by_count, other_by_count = ({_count(run): run for run in side.runs} for side in (base, curve))
    most = max(base_by_count.keys() & other_by_count.keys(), default=1)
    if most > 1 and (changes := _changes(base_by_count[most], other_by_count[most], ERROR / group.groups)):
        layouts = LayoutChange(curve.laid_out(layout), base.laid_out(base_files))
        yield Finding(sentences.waits, change=layouts, most=most, **changes)


def _changes(base: Run, other: Run, error: float) -> dict[str, Any]:
    """Return the significant changes of the longest wait and of fairness, as facts, as the table shows them.

    Each of the two uses half of the error probability.
    """
    facts: dict[str, Any] = {}
    before, after = longest_wait_ns(base), longest_wait_ns(other)
    is_significant = _are_separate(_longest(base), _longest(other), error / 2)
    if is_significant and 0 < min(before, after) * MIN_WAIT_RATIO <= max(before, after):
        facts |= {"wait_before_ns": before, "wait_ns": after}
    was, now = base.valid_median_trial(), other.valid_median_trial()
    fair, fair_now = (was and finite(was.fairness)) or 0.0, (now and finite(now.fairness)) or 0.0
    is_compared = is_fairness_known(base.case) and is_fairness_known(other.case)
    is_significant = is_compared and _are_separate(_fairness(base), _fairness(other), error / 2)
    if is_significant and abs(fair_now - fair) >= MIN_FAIRNESS_CHANGE:
        facts |= {"fairness_before": fair, "fairness": fair_now}
    return facts


def _longest(run: Run) -> list[float]:
    return [trial.longest_wait_ns or 0 for trial in run.valid]


def _fairness(run: Run) -> list[float]:
    return [jain for trial in run.valid if (jain := finite(trial.fairness)) is not None]


def _are_separate(base: Sequence[float], other: Sequence[float], error: float) -> bool:
    """Return whether the values of two runs do not overlap, significantly at the error rate `error`.

    The test is the extreme case of Mann-Whitney. It is valid for any distribution, which is needed because
    the distribution of longest waits is unknown.
    """
    if 2 / math.comb(len(base) + len(other), len(base)) > error:
        return False
    return max(base) < min(other) or max(other) < min(base)


# Effects of waiting for a lock, in any experiment: uneven shares, long waits, counted events.


MIN_FAIRNESS = 0.9
"""Value of Jain's index below which the shares are reported as uneven."""
LONG_WAIT_NS = NS_PER_S
"""Shortest wait that is reported as starvation, in ns, if it is also unusual."""
UNUSUAL_MULTIPLE = 10
"""Multiple of the median operation's time that an unusual wait exceeds."""


def is_fairness_known(case: Case) -> bool:
    """Return whether shares show fairness. If the number of operations is fixed, all shares are equal."""
    return case.ops is None


def starvation(
    group: Group, remedy: Callable[[list[Case]], str | None] = lambda _: None
) -> Iterator[Finding]:
    """Yield a finding if shares were uneven or a wait was long.

    `remedy` returns the advice for these cases, or None if the cause was not measured.

    There is no finding at a fixed rate: the shares of processes are a matter of chance, and the waits include
    the queue.
    """
    if group.case.rate:
        return
    uneven: list[tuple[Case, float]] = []
    waited: list[tuple[Case, float]] = []
    for run, trial in group.measured():
        if run.case.concurrency == 1:
            continue
        # Shares must be uneven in every pass, because in a single pass that may be an accident.
        shares = [finite(passed.fairness) for passed in run.valid if is_fairness_known(run.case)]
        if shares and all(jain is not None and jain < MIN_FAIRNESS for jain in shares):
            uneven.append((run.case, finite(trial.fairness) or 0.0))
        # The wait is compared with the median of the slowest kind of operation.
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
    """Return the sum of a count over all trials of a group, and the cases in which it is above 0."""
    sums = [(run.case, sum(count(trial) or 0 for trial in run.trials)) for run in group.runs]
    above_0 = [(case, number) for case, number in sums if number > 0]
    return sum(number for _, number in above_0), [case for case, _ in above_0]


# Saturation: whether the due operations of a case at a fixed rate were done.


MIN_ACHIEVED_SHARE = 0.99
"""Share of the due operations below which a case is saturated."""
_DEVIATIONS = 3.0
"""Standard deviations of independent arrivals that a shortfall must exceed if there are few windows."""
KEPT_UP, SATURATED, RATE_UNKNOWN = "kept up", "saturated", "cannot tell"
"""Verdicts on a case at a fixed rate."""


def achieved_share(trials: Sequence[Trial]) -> float | None:
    """Return the share of the operations due in the windows that was done in them; None if none was due.

    The share exceeds 1 if operations left over from the warm-up were done in the window, too.
    """
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return sum(trial.transactions for trial in trials if trial.arrived) / due if due else None


def saturation(trials: Sequence[Trial], error: float) -> str:
    """Return KEPT_UP, SATURATED or RATE_UNKNOWN. `error` is the probability of a wrong SATURATED.

    The number of operations under way when a window opens or closes is a matter of chance. The scatter of
    several windows shows its size (Student's t). If there are too few windows, the shortfall must be far
    larger than that of independent arrivals.
    """
    share = achieved_share(trials)
    if share is None or share >= MIN_ACHIEVED_SHARE:
        return KEPT_UP
    shares = [part for trial in trials if (part := achieved_share([trial])) is not None]
    if len(shares) >= MIN_PASSES and min(shares) > 0:
        logs = [math.log(part) for part in shares]
        reach = quantile(1 - error, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
        return SATURATED if fmean(logs) + reach < math.log(MIN_ACHIEVED_SHARE) else RATE_UNKNOWN
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return SATURATED if (MIN_ACHIEVED_SHARE - share) * due > _DEVIATIONS * math.sqrt(due) else RATE_UNKNOWN
