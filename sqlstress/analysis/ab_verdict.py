"""The verdict of an A/B test in words: what was found, what is left possible, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.ab import NAMES, cells, differences, estimate, signed
from sqlstress.analysis.more_pairs import what_would_help
from sqlstress.analysis.possible import noun, what_is_possible
from sqlstress.analysis.wording import percent, place, plural, times
from sqlstress.report import AbTest, Look, Report
from sqlstress.statistics.gate import (
    ALPHA,
    FAIL,
    INCONCLUSIVE,
    PASS,
    clears,
    fail_share,
    falls,
    geometric_means,
    tolerance,
)
from sqlstress.statistics.paired import bounds, hodges_lehmann

Part = tuple[str, list[float]]
"""What is judged: a cell, by the clause that names it, or the mean of all of them; and its differences."""


def conclusion(report: Report, test: AbTest) -> str:
    """Return the verdict, what was found, and what to do next."""
    if test.reason:
        return f"FAIL: {test.reason}. No figure counts before that is explained."
    means = _means(report, test)
    if not means:
        return "Undecided: not one pair was measured."
    found, allowed = found_change(report, test), percent(test.max_drop)
    if test.verdict == FAIL:
        return f"FAIL: {found}. At most {allowed} is allowed: find out why before you take B."
    if test.verdict == PASS:
        return f"PASS{_passed(means, report, test)}. {found}."
    if test.verdict == INCONCLUSIVE:
        change = _change(judged := _judged(means, test), test, _both(judged))
        return (
            f"INCONCLUSIVE: {found}, {allowed} is allowed. {change}. {what_would_help(means, report, test)}"
        )
    return f"Undecided: so far {found}. That is too little to conclude anything from."


def error_rate(test: AbTest) -> float:
    """Return the error rate of the last look, by which the verdict was found."""
    alpha = test.looks[-1].alpha if test.looks else ALPHA
    return alpha if 0 < alpha < 0.5 else ALPHA


def found_change(report: Report, test: AbTest) -> str:
    """Return what was found, as a clause of its own; "" when not one pair was measured."""
    means = _means(report, test)
    if not means:
        return ""
    if test.verdict == FAIL and not test.reason:
        return "; ".join(_changes(report, test))
    found = _judged(means, test)
    if test.verdict == INCONCLUSIVE:
        return what_is_possible(found.worst, found.bound, test.metric)
    if test.verdict == PASS and _is_clear(means, test) and found.worst is not None:
        return _change(found, test, f"at worst {signed(found.worst)}")
    if test.verdict == PASS:
        return _change(found, test, _both(found))
    ends = ""
    if found.low is not None and found.high is not None:
        ends = f"95% interval {signed(found.low)} to {signed(found.high)}"
    return _change(found, test, ends)


def _means(report: Report, test: AbTest) -> list[float]:
    """Return the differences of the mean of all cells; none where not one pair was measured."""
    found = differences(report, test)
    return geometric_means(found) if found else []


def _judged(means: list[float], test: AbTest) -> Look:
    return estimate(means, test.metric, error_rate(test))


def _is_clear(means: list[float], test: AbTest) -> bool:
    return clears(bounds(means, error_rate(test)), tolerance(test.metric, test.max_drop))


def _passed(means: list[float], report: Report, test: AbTest) -> str:
    """Return what a pass rules out. Reports passed by their estimate alone, once: then what they don't."""
    several = len(cells(report))
    mean = f" in the mean of {several} cells" if several > 1 else ""
    if _is_clear(means, test):
        return f": no {noun(test.metric)} of more than {percent(test.max_drop)}{mean}"
    found = _judged(means, test)
    return f", but only by its estimate: {what_is_possible(found.worst, found.bound, test.metric)}{mean}"


def _changes(report: Report, test: AbTest) -> Iterator[str]:
    """Yield what fails: the mean of all cells, or the single cells that do."""
    mean, *single = _parts(report, test)
    failing, share = _failing([mean, *single], test)
    for name, found in [mean] if mean in failing else failing or [mean]:
        change = estimate(found, test.metric, share)
        best = "" if change.bound is None else f"at best {signed(change.bound)}"
        yield f"{name}{_change(change, test, best)}"


def _failing(parts: list[Part], test: AbTest) -> tuple[list[Part], float]:
    """Return what fails of the mean and the cells, and at which error rate."""
    alpha, allowed = error_rate(test), tolerance(test.metric, test.max_drop)
    share = fail_share(max(1, len(parts) - 1), alpha)
    if found := [part for part in parts if falls(bounds(part[1], share), allowed)]:
        return found, share
    # Once, an estimate that was not allowed failed where B was worse at all beyond doubt.
    worse = [part for part in parts if falls(bounds(part[1], alpha), 0.0)]
    return [part for part in worse if hodges_lehmann(part[1]) < allowed], alpha


def _parts(report: Report, test: AbTest) -> list[Part]:
    """Return the mean of all cells, then each of several cells."""
    found = differences(report, test)
    mean: Part = ("", geometric_means(found))
    if len(found) == 1:
        return [mean]
    named = zip(cells(report), found, strict=True)
    return [mean, *((f"at {place(a.case)} ", cell) for (a, _), cell in named)]


def _both(found: Look) -> str:
    if found.worst is None or found.bound is None:
        return ""
    low, high = sorted((found.worst, found.bound))
    return f"{signed(low)} to {signed(high)}"


def _change(found: Look, test: AbTest, ends: str) -> str:
    """Return how B differs from A, with what is possible and the number of pairs."""
    beside = ", ".join(filter(None, (ends, plural(found.pairs, "pair"))))
    return f"B's {NAMES[test.metric]} is {_relation(found.ratio)} ({beside})"


def _relation(ratio: float) -> str:
    if ratio >= 2:
        return f"{times(ratio)} A's"
    if signed(ratio) == "0%":
        return "the same as A's"
    return f"{percent(abs(ratio - 1))} {'higher' if ratio > 1 else 'lower'} than A's"
