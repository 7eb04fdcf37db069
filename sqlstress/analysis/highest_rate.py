"""The highest rate that holds a promise: what each window says of it, and what all of them say together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median_low
from typing import Any, NamedTuple

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.scaling import SATURATED, saturation
from sqlstress.analysis.sentences import WindowCount
from sqlstress.analysis.wording import listing
from sqlstress.report import Latency, Report, Run, Trial
from sqlstress.report.study_results import LimitSearch, Promise
from sqlstress.statistics import histogram
from sqlstress.statistics.search import FARTHEST, Answer, answer, mostly_kept
from sqlstress.statistics.units import NS_PER_S, finite, format_duration

ERROR = 0.01
"""With this probability at most a window that kept up is said to be saturated."""
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
BEYOND = 10
"""Operations that lie beyond a percentile in a window that it is judged from, at least."""
LATE = 0.5
"""A harness that begins operations later than this share of what is promised breaks the promise itself."""
NEVER = 1e-9
"""A margin of what is broken at least: a file may hold figures that say otherwise."""
FAILURES, FULL, NOTHING = "failures", "saturated", "nothing due"
"""What breaks any promise."""
HARNESS, FEW = "harness late", "too few operations"
"""Why a window is not judged."""


def promised(promise: Promise) -> str:
    """Write what is promised: "p99 within 10ms"."""
    return listing([f"{name} within {format_duration(bound)}" for name, bound in promise.bounds.items()])


# One window: whether it can be judged, what it broke, and by how much.


def enough(names: Iterable[str]) -> int:
    """Return how many operations a window must have, so that its percentiles of these names say something."""
    return max((round(BEYOND / (1 - SHARES[name])) for name in names if name in SHARES), default=0)


def reached(latency: Latency | None, name: str) -> float | None:
    """Return a percentile, or the maximum, in nanoseconds."""
    if latency is None:
        return None
    return latency.max_ns if name == "max" else histogram.percentile(dict(latency.buckets), SHARES[name])


def broken(trial: Trial, promise: Promise) -> tuple[str, ...]:
    """Return what of a promise a window broke, as a column names it; nothing if the window kept all of it."""
    latency = trial.arrived.whole if trial.arrived else None
    if latency is None:
        return (NOTHING,)
    found = [FAILURES] * bool(trial.failed)
    found += [FULL] * (saturation([trial], ERROR) == SATURATED)
    for name, bound in promise.bounds.items():
        ns = reached(latency, name)
        if ns is None or ns > bound * NS_PER_S:
            found.append(name)
    return tuple(found)


def unjudged(trial: Trial, promise: Promise) -> str:
    """Return why a window says nothing of a promise: HARNESS or FEW; "" where it says something."""
    found, bounds = broken(trial, promise), promise.bounds
    if not trial.arrived or not bounds.keys() >= set(found):
        return ""
    if trial.arrived.whole and trial.arrived.whole.count < enough(bounds):
        return FEW
    late = [(reached(trial.arrived.lateness, name) or 0.0) > LATE * bounds[name] * NS_PER_S for name in found]
    return HARNESS if late and all(late) else ""


def margin(trial: Trial, promise: Promise) -> float:
    """Return by what factor, as a logarithm, a window exceeds what is promised; 0 or less if it kept it."""
    found, latency = broken(trial, promise), trial.arrived.whole if trial.arrived else None
    known = [(finite(reached(latency, name)), finite(bound)) for name, bound in promise.bounds.items()]
    ratios = [ns / (bound * NS_PER_S) for ns, bound in known if ns and bound and min(ns, bound) > 0]
    most = math.log(max(ratios)) if ratios and len(ratios) == len(known) else FARTHEST
    if not found:
        return min(most, 0.0)
    return max(most, NEVER) if promise.bounds.keys() >= set(found) else max(most, FARTHEST)


# All windows: the rates that were tried, and the answer.


class Tried(NamedTuple):
    """A rate that was tried."""

    rate: int
    run: Run
    judged: tuple[Trial, ...]
    """Its valid windows that say something of the promise."""
    margins: tuple[float, ...]
    """Of each of them."""

    @property
    def kept(self) -> int:
        """How many of them kept the promise."""
        return sum(margin <= 0 for margin in self.margins)

    @property
    def fewest(self) -> int:
        """How many operations each of them had at least."""
        wholes = [trial.arrived.whole if trial.arrived else None for trial in self.judged]
        return min((whole.count if whole else 0 for whole in wholes), default=0)

    def typical(self, name: str) -> float | None:
        """Return a percentile, or the maximum, that half of the judged windows stay within, in ns."""
        latencies = (trial.arrived.whole for trial in self.judged if trial.arrived)
        known = [ns for latency in latencies if (ns := reached(latency, name)) is not None]
        return median_low(known) if known else None


def tried(report: Report, search: LimitSearch) -> tuple[Tried, ...]:
    """Return the rates that were tried, in ascending order."""
    runs = sorted((run for run in report.runs if run.case.rate), key=lambda run: run.case.rate)
    found = []
    for run in runs:
        judged = tuple(trial for trial in run.valid if not unjudged(trial, search.promise))
        margins = tuple(margin(trial, search.promise) for trial in judged)
        found.append(Tried(run.case.rate, run, judged, margins))
    return tuple(found)


def answered(report: Report, search: LimitSearch) -> Answer:
    """Return the highest rate that holds, and the lowest that does not, as far as they are known."""
    return answer(_windows(tried(report, search)))


def _windows(rates: Sequence[Tried]) -> dict[int, list[float]]:
    windows: dict[int, list[float]] = {}
    for each in rates:
        if each.margins:
            windows.setdefault(each.rate, []).extend(each.margins)
    return windows


def is_whole(found: Answer) -> bool:
    """Say whether both ends of the answer are known; a promise that not even one a second holds has none."""
    return found.breaks is not None and (found.holds is not None or found.breaks == 1)


def conclusion(report: Report, search: LimitSearch) -> tuple[Finding, ...]:
    """Return the answer: what holds, what does not, what can't be told, and from which windows."""
    rates, found = tried(report, search), answered(report, search)
    findings = [_answer(found, rates, search)]
    if search.ended and not is_whole(found):
        findings.append(Finding(sentences.ended_early, reason=search.ended.removesuffix(".")))
    findings += _judged(rates, search.promise)
    return tuple(findings)


def _answer(found: Answer, rates: Sequence[Tried], search: LimitSearch) -> Finding:
    windows, what = _windows(rates), promised(search.promise)
    holds, breaks = found.holds, found.breaks
    if holds is not None and breaks is not None:
        return Finding(sentences.limit, promise=what, holds=holds, breaks=breaks, about=found.about or holds)
    if holds is not None:
        return Finding(sentences.limit, promise=what, holds=holds, tried=max(windows))
    if breaks is not None:
        return Finding(sentences.limit, promise=what, breaks=breaks, tried=min(windows))
    longer = _longer(search) if windows else None
    return Finding(sentences.limit_unknown, promise=what, **_around(windows), longer=longer)


def _around(windows: dict[int, list[float]]) -> dict[str, Any]:
    """Return the bounds that the windows show: the highest rate that mostly held, the lowest that did not."""
    kept = [rate for rate, margins in windows.items() if mostly_kept(margins)]
    broken = [rate for rate in windows if rate not in kept]
    bounds = {"kept": max(kept, default=None), "broken": min(broken, default=None)}
    return {name: _counted(rate, windows[rate]) for name, rate in bounds.items() if rate is not None}


def _counted(rate: int, margins: Sequence[float]) -> WindowCount:
    """Return the number of windows at a rate that kept the promise."""
    return WindowCount(rate, sum(each <= 0 for each in margins), len(margins))


_USUAL_S = 300.0
"""Time limit of a search whose report has none, in s."""


def _longer(search: LimitSearch) -> str:
    """Return the option that gives an undecided search twice the time."""
    minutes = math.ceil(2 * (search.max_time_s or _USUAL_S) / 60)
    return f"--max-time {minutes}m"


def _judged(rates: Sequence[Tried], promise: Promise) -> Iterator[Finding]:
    """Yield from how many windows the answer follows, and how many were not judged, and why."""
    if judged := [each for each in rates if each.judged]:
        count = sum(len(each.judged) for each in judged)
        yield Finding(sentences.limit_judged, windows=count, fewest=min(each.fewest for each in judged))
    whys = Counter(unjudged(trial, promise) for rate in rates for trial in rate.run.valid)
    if whys[HARNESS]:
        yield Finding(sentences.limit_not_judged, windows=whys[HARNESS], late=LATE)
    if whys[FEW]:
        names = [name for name in promise.bounds if name in SHARES]
        name = max(names, key=lambda name: SHARES[name])
        yield Finding(sentences.limit_not_judged, windows=whys[FEW], name=name, enough=enough(names))
