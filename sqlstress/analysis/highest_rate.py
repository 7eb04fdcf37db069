"""Search for the highest rate that keeps a latency promise, by windows (measured times of trials).

A rate is a number of operations due per second. A promise is a set of latency limits, such as "p99 within
10ms". The margin of a window is the logarithm of its latency divided by the limit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median_low
from typing import NamedTuple

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.scaling import SATURATED, saturation_of_few
from sqlstress.analysis.sentences import WindowCount
from sqlstress.analysis.wording import listing
from sqlstress.report import Latency, Report, Run, Trial
from sqlstress.report.study_results import LimitSearch, Promise
from sqlstress.statistics import histogram
from sqlstress.statistics.search import MAX_MARGIN, SearchAnswer, answer, mostly_kept
from sqlstress.statistics.units import NS_PER_S, finite, format_duration

SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
"""Share of the operations whose latency is below a percentile, by name of the percentile."""
MIN_OPERATIONS_ABOVE = 10
"""Minimum number of operations slower than a percentile, for a window to be judged by the percentile."""
MAX_LATE_SHARE = 0.5
"""Largest lateness of sqlstress itself, as a share of a broken limit, in a window that is judged."""
MIN_BROKEN_MARGIN = 1e-9
"""Minimum of ln(latency / limit) for a broken limit. Rounding could give 0, which means kept."""
FAILURES, FULL, NOTHING = "failures", "saturated", "nothing due"
"""Faults of a window, in addition to broken latency limits.

FAILURES: operations failed. FULL: the rate was not reached. NOTHING: no operation was due.
"""
HARNESS, FEW = "harness late", "too few operations"
"""Reasons not to judge a window: sqlstress itself started operations late; too few operations."""


def promise_clause(promise: Promise) -> str:
    """Return a promise as text, such as "p99 within 10ms"."""
    return listing([f"{name} within {format_duration(bound)}" for name, bound in promise.bounds.items()])


def min_operations(names: Iterable[str]) -> int:
    """Return the minimum number of operations to judge the percentiles `names`; 0 for only "max"."""
    return max(
        (round(MIN_OPERATIONS_ABOVE / (1 - SHARES[name])) for name in names if name in SHARES), default=0
    )


def latency_at(latency: Latency | None, name: str) -> float | None:
    """Return the percentile `name`, such as "p99", or the maximum ("max"), in ns; None without latencies."""
    if latency is None:
        return None
    return latency.max_ns if name == "max" else histogram.percentile(dict(latency.buckets), SHARES[name])


def faults_of(trial: Trial, promise: Promise) -> tuple[str, ...]:
    """Return the faults of a window: broken limits and other faults, such as ("p99", "saturated")."""
    latency = trial.arrived.all_kinds if trial.arrived else None
    if latency is None:
        return (NOTHING,)
    faults = [FAILURES] * bool(trial.failed)
    faults += [FULL] * (saturation_of_few([trial]) == SATURATED)
    for name, bound in promise.bounds.items():
        ns = latency_at(latency, name)
        if ns is None or ns > bound * NS_PER_S:
            faults.append(name)
    return tuple(faults)


def skip_reason(trial: Trial, promise: Promise) -> str:
    """Return the reason not to judge a window, such as "too few operations"; "" if there is none.

    The reason HARNESS (sqlstress itself was late) applies only to a window that broke a latency limit. A
    window is always judged if operations failed, if the rate was not reached, or if no operation was due.
    """
    faults, bounds = faults_of(trial, promise), promise.bounds
    if not trial.arrived or not bounds.keys() >= set(faults):
        return ""
    if trial.arrived.all_kinds and trial.arrived.all_kinds.count < min_operations(bounds):
        return FEW
    late = [
        (latency_at(trial.arrived.lateness, name) or 0.0) > MAX_LATE_SHARE * bounds[name] * NS_PER_S
        for name in faults
    ]
    return HARNESS if late and all(late) else ""


def margin(trial: Trial, promise: Promise) -> float:
    """Return the largest ln(latency / limit) of a window: at most 0 if it kept the promise.

    Else the margin is above 0. If operations failed, if the rate was not reached, or if no operation was due,
    the margin is at least MAX_MARGIN.
    """
    faults, latency = faults_of(trial, promise), trial.arrived.all_kinds if trial.arrived else None
    pairs = [(finite(latency_at(latency, name)), finite(bound)) for name, bound in promise.bounds.items()]
    ratios = [ns / (bound * NS_PER_S) for ns, bound in pairs if ns and bound and min(ns, bound) > 0]
    most = math.log(max(ratios)) if ratios and len(ratios) == len(pairs) else MAX_MARGIN
    if not faults:
        return min(most, 0.0)
    return max(most, MIN_BROKEN_MARGIN) if promise.bounds.keys() >= set(faults) else max(most, MAX_MARGIN)


class TriedRate(NamedTuple):
    """Rate (operations due per second) that a search tried, with its windows."""

    rate: int
    run: Run
    """Run whose trials are the windows at this rate."""
    judged: tuple[Trial, ...]
    """Valid windows at this rate that could be judged (see `skip_reason`)."""
    margins: tuple[float, ...]
    """ln(latency / limit) of each judged window, where 0 or less means that the promise was kept."""

    @property
    def kept_count(self) -> int:
        return sum(margin <= 0 for margin in self.margins)

    @property
    def fewest(self) -> int:
        """Smallest number of operations in a judged window; 0 if no window was judged."""
        latencies = [trial.arrived.all_kinds if trial.arrived else None for trial in self.judged]
        return min((latency.count if latency else 0 for latency in latencies), default=0)

    def typical(self, name: str) -> float | None:
        """Return the latency `name` ("p99" or "max"), in ns: the median of all judged windows, if any."""
        latencies = (trial.arrived.all_kinds for trial in self.judged if trial.arrived)
        values = [ns for latency in latencies if (ns := latency_at(latency, name)) is not None]
        return median_low(values) if values else None


def tried_rates(report: Report, search: LimitSearch) -> tuple[TriedRate, ...]:
    """Return the rates that a search tried, in ascending order, with their judged windows."""
    runs = sorted((run for run in report.runs if run.case.rate), key=lambda run: run.case.rate)
    rates = []
    for run in runs:
        judged = tuple(trial for trial in run.valid if not skip_reason(trial, search.promise))
        margins = tuple(margin(trial, search.promise) for trial in judged)
        rates.append(TriedRate(run.case.rate, run, judged, margins))
    return tuple(rates)


def answer_of(report: Report, search: LimitSearch) -> SearchAnswer:
    """Return the highest rate that keeps the latency promise, and the lowest that breaks it."""
    return answer(_margins_by_rate(tried_rates(report, search)))


def _margins_by_rate(rates: Sequence[TriedRate]) -> dict[int, list[float]]:
    windows: dict[int, list[float]] = {}
    for tried_rate in rates:
        if tried_rate.margins:
            windows.setdefault(tried_rate.rate, []).extend(tried_rate.margins)
    return windows


def is_complete(found: SearchAnswer) -> bool:
    """Return whether a search found the highest rate, or that even 1 operation/s breaks the promise."""
    return found.breaks is not None and (found.holds is not None or found.breaks == 1)


def conclusion(report: Report, search: LimitSearch) -> tuple[Finding, ...]:
    """Return the findings of a search: its answer, the reason for an early end, and windows not judged."""
    rates, best_known = tried_rates(report, search), answer_of(report, search)
    findings = [_answer_finding(best_known, rates, search)]
    if search.ended and not is_complete(best_known):
        findings.append(Finding(sentences.ended_early, reason=search.ended.removesuffix(".")))
    findings += _window_findings(rates, search.promise)
    return tuple(findings)


def _answer_finding(best_known: SearchAnswer, rates: Sequence[TriedRate], search: LimitSearch) -> Finding:
    windows, promise_text = _margins_by_rate(rates), promise_clause(search.promise)
    holds, breaks = best_known.holds, best_known.breaks
    if holds is not None and breaks is not None:
        return Finding(
            sentences.limit, promise=promise_text, holds=holds, breaks=breaks, about=best_known.about or holds
        )
    if holds is not None:
        return Finding(sentences.limit, promise=promise_text, holds=holds, tried=max(windows))
    if breaks is not None:
        return Finding(sentences.limit, promise=promise_text, breaks=breaks, tried=min(windows))
    longer = _longer_time_limit(search) if windows else None
    return Finding(sentences.limit_unknown, promise=promise_text, **_bounds(windows), longer=longer)


def _bounds(windows: dict[int, list[float]]) -> dict[str, WindowCount]:
    """Return the arguments `kept` and `broken` of `sentences.limit_unknown`: counts of windows at two rates.

    "kept" is the highest rate at which most windows kept the promise, and "broken" the lowest rate at which
    not most windows did. An argument without a rate is left out. `windows` has ln(latency / limit) of each
    window, by rate: 0 or less means that the window kept the promise.
    """
    kept = [rate for rate, margins in windows.items() if mostly_kept(margins)]
    bounds = {"kept": max(kept, default=None), "broken": min(windows.keys() - kept, default=None)}
    return {
        name: WindowCount(rate, sum(margin <= 0 for margin in windows[rate]), len(windows[rate]))
        for name, rate in bounds.items()
        if rate is not None
    }


_DEFAULT_MAX_TIME_S = 300.0
"""Time limit of a search, in seconds, that is assumed if the report does not have the limit."""


def _longer_time_limit(search: LimitSearch) -> str:
    minutes = math.ceil(2 * (search.max_time_s or _DEFAULT_MAX_TIME_S) / 60)
    return f"--max-time {minutes}m"


def _window_findings(rates: Sequence[TriedRate], promise: Promise) -> Iterator[Finding]:
    reasons = Counter(skip_reason(trial, promise) for rate in rates for trial in rate.run.valid)
    if reasons[HARNESS]:
        yield Finding(sentences.limit_not_judged, windows=reasons[HARNESS], late=MAX_LATE_SHARE)
    if reasons[FEW]:
        names = [name for name in promise.bounds if name in SHARES]
        name = max(names, key=lambda name: SHARES[name])
        yield Finding(
            sentences.limit_not_judged, windows=reasons[FEW], name=name, enough=min_operations(names)
        )
