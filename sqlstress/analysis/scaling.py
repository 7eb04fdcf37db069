"""How the throughput grows with processes and buckets: only what the passes tell from their noise."""

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
    Tested,
    by_files,
    longest_wait_ns,
    noise,
    of_closed_loops,
)
from sqlstress.analysis.sentences import LayoutChange, LayoutGain
from sqlstress.analysis.wording import laid_out, layouts, places
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.compare import DIFFERENT, FEWEST, NEAR, quantile, verdict
from sqlstress.statistics.units import NS_PER_S, finite, rounded

WORTH_SAYING = 1.0
"""A gain of so much, if it can't be ruled out, leaves everything open."""


@of_closed_loops
def throughput(group: Group) -> Iterator[Finding]:
    """Yield what the totals of a group say; nothing of one point only."""
    runs = _compared(group)
    if not runs:
        return
    tested = group.tested(runs)
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
    yield _best(group, tested, runs)
    curves = _curves(tested, runs)
    (base_files, base), *others = curves.items()
    if compared := [found for layout, curve in others if (found := _against(base, layout, curve))]:
        yield Finding(sentences.layouts, base=base.laid_out(base_files), others=tuple(compared))
    yield from _scalings(curves)


def _compared(group: Group) -> list[Run]:
    """Return the runs whose figures count, and whose number of processes is known; none of one point."""
    runs = [run for run in group.runs if run.case.concurrency and group.is_believed(run)]
    return runs if len({(run.case.buckets, run.case.concurrency) for run in runs}) > 1 else []


def _curves(tested: Tested, runs: Sequence[Run]) -> dict[int, Curve]:
    by_layout = by_files(runs, lambda run: run.case.buckets)
    return {layout: Curve(tested, own, len(by_layout)) for layout, own in by_layout.items()}


def _best(group: Group, tested: Tested, runs: Sequence[Run]) -> Finding:
    """Return what the leading ones reached, as the table does: of those that can't be told apart from where
    to where, since the highest figure is one of the best only."""
    lead = leaders(tested, runs)
    medians = sorted(run.median_tps() or 0.0 for run in lead.runs)
    several = len(lead.runs) > 1
    alike = lead.equal or rounded(medians[0]) == rounded(medians[-1])
    return Finding(
        sentences.best,
        rate=medians[-1] if alike else medians[0],
        most=None if alike else medians[-1],
        about=several and alike,
        unit=group.unit,
        where=group.short_places([run.case for run in lead.runs]),
        equal=lead.equal,
        unclear=lead.unclear,
    )


class Curve:
    """The runs of one layout."""

    def __init__(self, tested: Tested, measured: Sequence[Run], layouts: int) -> None:
        self.tested, self.layouts = tested, layouts
        self.runs = sorted({run.case.concurrency: run for run in measured}.values(), key=_count)
        """In ascending order of processes, one of each."""

    def laid_out(self, layout: int) -> str:
        """Return what the layout is called: "20 buckets"."""
        return laid_out(layout, [run.case for run in self.runs])

    @property
    def less(self) -> list[Run]:
        """Those at the beginning of which a larger number reaches more, beyond doubt.

        One is asked after the other, up to the first that it is not so of: each may err as if it were alone.
        """
        found = []
        for place, run in enumerate(self.runs[:-1], 1):
            if not self.tested.rises(run, self.runs[place:], self.layouts):
                break
            found.append(run)
        return found

    @property
    def enough(self) -> Run:
        """The fewest processes to whose best more of them add less than NEAR, beyond doubt.

        They are asked from the most to the fewest, in the same way: what is so of some is so of more.
        """
        found = self.runs[-1]
        for place in range(len(self.runs) - 1, 0, -1):
            upto, later = self.runs[:place], self.runs[place:]
            if min(self._gain(run, later, len(upto)) for run in upto) >= 1 / (1 - NEAR):
                break
            found = upto[-1]
        return found

    def _gain(self, run: Run, later: Sequence[Run], asked: int = 1) -> float:
        """Return by which factor any of later runs exceeds one at most, if this is asked of so many."""
        return max(self.tested.gain(run, other, self.layouts * asked) for other in later)

    def scaling(self) -> Finding:
        """Return at how many processes the total of a layout stops rising."""
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
        """Return how much more processes gain at most, where that may be NEAR or more."""
        later = self.runs[self.runs.index(first) + 1 :]
        most = max(self._gain(first, later) - 1, NEAR)
        return Finding(
            sentences.scaling_unclear,
            less=_count(less[-1]) if less else None,
            first=_count(first),
            most=None if most > WORTH_SAYING else most,
            noise=noise(self.tested),
        )


def _count(run: Run) -> int:
    return run.case.concurrency


def _scalings(curves: Mapping[int, Curve]) -> Iterator[Finding]:
    """Yield at how many processes the totals stop rising; what layouts share is said once."""
    said: dict[Finding, list[int]] = {}
    for layout, curve in curves.items():
        if len(curve.runs) > 1:
            said.setdefault(curve.scaling(), []).append(layout)
    for finding, own in said.items():
        where = {"where": layouts(own)} if len(curves) > 1 else {}
        yield Finding(finding.sentence, **where, **finding.facts)


def _against(base: Curve, layout: int, curve: Curve) -> LayoutGain | None:
    """Return the gain of a layout at the largest concurrency that both have."""
    of_base = {_count(run): run for run in base.runs}
    common = [run for run in curve.runs if _count(run) in of_base]
    base_run = of_base[_count(common[-1])] if common else None
    ratio = curve.tested.beside(base_run, common[-1]) if base_run else None
    if ratio is None:
        return None
    return LayoutGain(curve.laid_out(layout), _count(common[-1]), ratio, not is_conclusive(ratio))


# How long processes waited, and how evenly they shared, where passes show a change.


LONGER = 1.5
"""Smallest ratio of longest waits that is reported."""
FAIRER = 0.05
"""Smallest difference of fairness (Jain's index) that is reported."""


@of_closed_loops
def waits(group: Group) -> Iterator[Finding]:
    """Yield how waits and fairness differ between the layouts of the fewest and the most buckets, at the most
    processes that both have; with one layout, between the fewest and the most processes."""
    runs = _compared(group)
    tested = group.tested(runs) if runs else None
    if tested is None:
        return
    (base_files, base), *others = _curves(tested, runs).items()
    if not others:
        first, last = base.runs[0], base.runs[-1]
        if changed := _changed(first, last, ERROR / group.groups):
            yield Finding(sentences.waits, least=_count(first), most=_count(last), **changed)
        return
    layout, curve = others[-1]
    of_base, of_other = ({_count(run): run for run in one.runs} for one in (base, curve))
    most = max(of_base.keys() & of_other.keys(), default=1)
    if most > 1 and (changed := _changed(of_base[most], of_other[most], ERROR / group.groups)):
        layouts = LayoutChange(curve.laid_out(layout), base.laid_out(base_files))
        yield Finding(sentences.waits, change=layouts, most=most, **changed)


def _changed(base: Run, other: Run, error: float) -> dict[str, Any]:
    """Return how the longest wait and the fairness changed, as the table shows them, if the passes show it.

    Each is wrong with half of this probability at most.
    """
    found: dict[str, Any] = {}
    before, after = longest_wait_ns(base), longest_wait_ns(other)
    apart = _are_apart(_longest(base), _longest(other), error / 2)
    if apart and 0 < min(before, after) * LONGER <= max(before, after):
        found |= {"wait_before_ns": before, "wait_ns": after}
    was, now = base.shown(), other.shown()
    fair, fair_now = (was and finite(was.fairness)) or 0.0, (now and finite(now.fairness)) or 0.0
    is_compared = is_fairness_known(base.case) and is_fairness_known(other.case)
    apart = is_compared and _are_apart(_fairness(base), _fairness(other), error / 2)
    if apart and abs(fair_now - fair) >= FAIRER:
        found |= {"fairness_before": fair, "fairness": fair_now}
    return found


def _longest(run: Run) -> list[float]:
    return [trial.longest_wait_ns or 0 for trial in run.valid]


def _fairness(run: Run) -> list[float]:
    return [jain for trial in run.valid if (jain := finite(trial.fairness)) is not None]


def _are_apart(one: Sequence[float], other: Sequence[float], error: float) -> bool:
    """Say whether all figures of one side are beyond all of the other, unless chance is likelier than this.

    That holds for any distribution (the extreme case of Mann-Whitney); that of a longest wait is unknown.
    """
    if 2 / math.comb(len(one) + len(other), len(one)) > error:
        return False
    return max(one) < min(other) or max(other) < min(one)


# What waiting for a lock did, whatever the experiment: uneven shares, long waits, what was counted of it.


UNFAIR_UNDER = 0.9
"""Jain's index under which the shares are called uneven."""
LONG_WAIT_NS = NS_PER_S
"""A wait over this is called starvation,"""
UNUSUAL = 10
"""if it is so many times the median of operations: else they take that long."""


def is_fairness_known(case: Case) -> bool:
    """Return whether the shares of processes show fairness: of a fixed number all do the same."""
    return case.ops is None


def starvation(
    group: Group, remedy: Callable[[list[Case]], str | None] = lambda _: None
) -> Iterator[Finding]:
    """Yield where the shares were uneven, or a wait long.

    `remedy` returns what helps there; None if the cause was not measured.

    Nothing of a rate: it is chance that gives a process more, and the queue that one waits in.
    """
    if group.case.rate:
        return
    uneven: list[tuple[Case, float]] = []
    waited: list[tuple[Case, float]] = []
    for run, trial in group.measured():
        if run.case.concurrency == 1:
            continue
        # Those of every pass: those of one alone may be an accident.
        shares = [finite(passed.fairness) for passed in run.valid if is_fairness_known(run.case)]
        if shares and all(jain is not None and jain < UNFAIR_UNDER for jain in shares):
            uneven.append((run.case, finite(trial.fairness) or 0.0))
        # Beside the median of the slowest kind of operation.
        medians = [finite(kind.p50_ns) for passed in run.valid for kind in passed.latency.values()]
        usual_ns = max(filter(None, medians), default=0.0)
        if longest_wait_ns(run) > max(LONG_WAIT_NS, UNUSUAL * usual_ns):
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
    """Return how many of something all trials of a group counted, and in which cases."""
    counted = [(run.case, sum(count(trial) or 0 for trial in run.trials)) for run in group.runs]
    found = [(case, number) for case, number in counted if number > 0]
    return sum(number for _, number in found), [case for case, _ in found]


# Whether what was due at a rate was done: how much of it, and beyond which doubt.


ACHIEVED = 0.99
"""Under this share of what was due, a case was saturated."""
_DEVIATIONS = 3.0
KEPT_UP, SATURATED, RATE_UNKNOWN = "kept up", "saturated", "cannot tell"


def achieved(trials: Sequence[Trial]) -> float | None:
    """Return which share of what was due in the windows was done in them; None where nothing was due.

    It is more than 1 where what was left from the warm-up was done too.
    """
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return sum(trial.transactions for trial in trials if trial.arrived) / due if due else None


def saturation(trials: Sequence[Trial], error: float) -> str:
    """Say whether a case kept up with its rate; `error`: with which probability it may be called saturated.

    What is under way when the window opens, and when it closes, is chance: several windows say how much of it
    (Student's t). Of fewer, the shortfall must lie far beyond that of independent arrivals.
    """
    share = achieved(trials)
    if share is None or share >= ACHIEVED:
        return KEPT_UP
    shares = [one for trial in trials if (one := achieved([trial])) is not None]
    if len(shares) >= FEWEST and min(shares) > 0:
        logs = [math.log(each) for each in shares]
        reach = quantile(1 - error, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
        return SATURATED if fmean(logs) + reach < math.log(ACHIEVED) else RATE_UNKNOWN
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return SATURATED if (ACHIEVED - share) * due > _DEVIATIONS * math.sqrt(due) else RATE_UNKNOWN
