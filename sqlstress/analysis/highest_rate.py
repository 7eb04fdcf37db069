"""Highest rate that keeps a promise: the judgement of each window, and the conclusion from all windows.

A rate is the number of operations that are due per second. A promise is a set of upper bounds of latencies,
such as "p99 within 10ms". A window is the time in which a trial counts its operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median_low
from typing import NamedTuple

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.scaling import SATURATED, saturation
from sqlstress.analysis.sentences import WindowCount
from sqlstress.analysis.wording import listing
from sqlstress.report import Latency, Report, Run, Trial
from sqlstress.report.study_results import LimitSearch, Promise
from sqlstress.statistics import histogram
from sqlstress.statistics.search import MAX_MARGIN, SearchAnswer, answer, mostly_kept
from sqlstress.statistics.units import NS_PER_S, finite, format_duration

ERROR = 0.01
"""Maximum probability that a window counts as saturated although it kept up with its rate."""
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
"""Share of operations that are faster than a percentile, by name of the percentile."""
MIN_OPERATIONS_ABOVE = 10
"""Minimum number of operations that are slower than a percentile, for a window to be judged by it."""
MAX_LATE_SHARE = 0.5
"""Share of a promised latency by which sqlstress itself may delay operations of a judged window."""
MIN_BROKEN_MARGIN = 1e-9
"""Minimum margin of a window that broke its promise, even if its latencies in a report file are wrong."""
FAILURES, FULL, NOTHING = "failures", "saturated", "nothing due"
"""Faults of a window that break any promise: operations failed; not all were done; none was due."""
HARNESS, FEW = "harness late", "too few operations"
"""Reasons why a window is not judged: sqlstress started operations late; too few operations."""


def promise_clause(promise: Promise) -> str:
    """Return a promise as text, such as "p99 within 10ms"."""
    return listing([f"{name} within {format_duration(bound)}" for name, bound in promise.bounds.items()])


def enough(names: Iterable[str]) -> int:
    """Return the minimum number of operations with which a window can be judged by these bounds.

    The name of a bound is a percentile, such as "p99", or "max".
    """
    return max(
        (round(MIN_OPERATIONS_ABOVE / (1 - SHARES[name])) for name in names if name in SHARES), default=0
    )


def latency_at(latency: Latency | None, name: str) -> float | None:
    """Return the percentile `name` ("p99") or the "max" of latencies, in ns; None without latencies."""
    if latency is None:
        return None
    return latency.max_ns if name == "max" else histogram.percentile(dict(latency.buckets), SHARES[name])


def broken(trial: Trial, promise: Promise) -> tuple[str, ...]:
    """Return the bounds that a window broke, and its other faults; empty if it kept the promise."""
    latency = trial.arrived.all_kinds if trial.arrived else None
    if latency is None:
        return (NOTHING,)
    faults = [FAILURES] * bool(trial.failed)
    faults += [FULL] * (saturation([trial], ERROR) == SATURATED)
    for name, bound in promise.bounds.items():
        ns = latency_at(latency, name)
        if ns is None or ns > bound * NS_PER_S:
            faults.append(name)
    return tuple(faults)


def skip_reason(trial: Trial, promise: Promise) -> str:
    """Return the reason why a window is not judged, HARNESS or FEW; "" if it is judged.

    A window that kept the promise, or has one of the faults FAILURES, FULL and NOTHING, is always judged.
    """
    faults, bounds = broken(trial, promise), promise.bounds
    if not trial.arrived or not bounds.keys() >= set(faults):
        return ""
    if trial.arrived.all_kinds and trial.arrived.all_kinds.count < enough(bounds):
        return FEW
    late = [
        (latency_at(trial.arrived.lateness, name) or 0.0) > MAX_LATE_SHARE * bounds[name] * NS_PER_S
        for name in faults
    ]
    return HARNESS if late and all(late) else ""


def margin(trial: Trial, promise: Promise) -> float:
    """Return the logarithm of a window's largest ratio of a latency to the promised bound.

    The margin is at most 0 if the window kept the promise, else above 0. For the faults FAILURES, FULL and
    NOTHING, it is at least MAX_MARGIN.
    """
    faults, latency = broken(trial, promise), trial.arrived.all_kinds if trial.arrived else None
    pairs = [(finite(latency_at(latency, name)), finite(bound)) for name, bound in promise.bounds.items()]
    ratios = [ns / (bound * NS_PER_S) for ns, bound in pairs if ns and bound and min(ns, bound) > 0]
    most = math.log(max(ratios)) if ratios and len(ratios) == len(pairs) else MAX_MARGIN
    if not faults:
        return min(most, 0.0)
    return max(most, MIN_BROKEN_MARGIN) if promise.bounds.keys() >= set(faults) else max(most, MAX_MARGIN)


class TriedRate(NamedTuple):
    """Rate (due operations per second) that a search tried, with its windows."""

    rate: int
    run: Run
    """Run whose trials are the windows at this rate."""
    judged: tuple[Trial, ...]
    """Windows at this rate that are valid and judged (see `skip_reason`)."""
    margins: tuple[float, ...]
    """Margin of each judged window."""

    @property
    def kept_count(self) -> int:
        return sum(margin <= 0 for margin in self.margins)

    @property
    def fewest(self) -> int:
        """Smallest number of operations in a judged window; 0 if no window was judged."""
        latencies = [trial.arrived.all_kinds if trial.arrived else None for trial in self.judged]
        return min((latency.count if latency else 0 for latency in latencies), default=0)

    def typical(self, name: str) -> float | None:
        """Return the (lower) median of a latency figure, "p99" or "max", over the judged windows, in ns."""
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
    """Return the answer of a search: the highest rate that keeps the promise, the lowest that breaks it."""
    return answer(_windows(tried_rates(report, search)))


def _windows(rates: Sequence[TriedRate]) -> dict[int, list[float]]:
    """Return the margins of the judged windows, by rate, for rates with a judged window."""
    windows: dict[int, list[float]] = {}
    for tried_rate in rates:
        if tried_rate.margins:
            windows.setdefault(tried_rate.rate, []).extend(tried_rate.margins)
    return windows


def is_complete(found: SearchAnswer) -> bool:
    """Return whether an answer is final: both rates are known, or even a rate of 1/s breaks the promise."""
    return found.breaks is not None and (found.holds is not None or found.breaks == 1)


def conclusion(report: Report, search: LimitSearch) -> tuple[Finding, ...]:
    """Return the findings of a search: its answer, the reason of an early end, and the counts of windows."""
    rates, best_known = tried_rates(report, search), answer_of(report, search)
    findings = [_answer_finding(best_known, rates, search)]
    if search.ended and not is_complete(best_known):
        findings.append(Finding(sentences.ended_early, reason=search.ended.removesuffix(".")))
    findings += _window_findings(rates, search.promise)
    return tuple(findings)


def _answer_finding(best_known: SearchAnswer, rates: Sequence[TriedRate], search: LimitSearch) -> Finding:
    """Return the finding on the highest rate that keeps the promise, as far as it is known."""
    windows, promise_text = _windows(rates), promise_clause(search.promise)
    holds, breaks = best_known.holds, best_known.breaks
    if holds is not None and breaks is not None:
        return Finding(
            sentences.limit, promise=promise_text, holds=holds, breaks=breaks, about=best_known.about or holds
        )
    if holds is not None:
        return Finding(sentences.limit, promise=promise_text, holds=holds, tried=max(windows))
    if breaks is not None:
        return Finding(sentences.limit, promise=promise_text, breaks=breaks, tried=min(windows))
    longer = _longer(search) if windows else None
    return Finding(sentences.limit_unknown, promise=promise_text, **_bounds(windows), longer=longer)


def _bounds(windows: dict[int, list[float]]) -> dict[str, WindowCount]:
    """Return facts: the highest rate that kept the promise in most windows, and the lowest that did not."""
    kept = [rate for rate, margins in windows.items() if mostly_kept(margins)]
    bounds = {"kept": max(kept, default=None), "broken": min(windows.keys() - kept, default=None)}
    return {
        name: WindowCount(rate, sum(margin <= 0 for margin in windows[rate]), len(windows[rate]))
        for name, rate in bounds.items()
        if rate is not None
    }


_DEFAULT_S = 300.0
"""Time limit of a search if its report has no limit, in s."""


def _longer(search: LimitSearch) -> str:
    """Return the option that doubles the time limit of a search: "--max-time 10m"."""
    minutes = math.ceil(2 * (search.max_time_s or _DEFAULT_S) / 60)
    return f"--max-time {minutes}m"


def _window_findings(rates: Sequence[TriedRate], promise: Promise) -> Iterator[Finding]:
    """Yield findings on the numbers of windows that were not judged, by reason."""
    reasons = Counter(skip_reason(trial, promise) for rate in rates for trial in rate.run.valid)
    if reasons[HARNESS]:
        yield Finding(sentences.limit_not_judged, windows=reasons[HARNESS], late=MAX_LATE_SHARE)
    if reasons[FEW]:
        names = [name for name in promise.bounds if name in SHARES]
        name = max(names, key=lambda name: SHARES[name])
        yield Finding(sentences.limit_not_judged, windows=reasons[FEW], name=name, enough=enough(names))
