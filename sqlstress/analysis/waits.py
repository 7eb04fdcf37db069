"""What waiting for a lock did, whatever the experiment: uneven shares, long waits, what was counted of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, longest_wait_ns
from sqlstress.analysis.wording import duration, finite, listing, places, rounded
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_S

UNFAIR_UNDER = 0.9
"""Jain's index under which the shares are called uneven."""
LONG_WAIT_NS = NS_PER_S
"""A wait over this is called starvation,"""
UNUSUAL = 10
"""if it is so many times the median of operations: else they take that long."""


def starvation(group: Group, remedy: Callable[[list[Case]], str]) -> Iterator[Finding]:
    """Yield where the shares were uneven, or a wait long; `remedy` says what helps there, in a sentence.

    Nothing of a rate: it is chance that gives a process more, and the queue that one waits in.
    """
    if group.case.arrivals:
        return
    uneven: list[tuple[Case, float]] = []
    waited: list[tuple[Case, float]] = []
    for run, trial in group.measured():
        if run.case.concurrency == 1:
            continue
        if _is_uneven(run):
            uneven.append((run.case, finite(trial.fairness) or 0.0))
        if longest_wait_ns(run) > max(LONG_WAIT_NS, UNUSUAL * _usual_ns(run)):
            waited.append((run.case, longest_wait_ns(run)))
    if not uneven and not waited:
        return
    what = []
    if uneven:
        lowest = rounded(min(jain for _, jain in uneven), 2)
        what.append(f"the shares were uneven (Jain's index down to {lowest}; 1 is equal)")
    if waited:
        what.append(f"an operation waited up to {duration(max(wait for _, wait in waited))}")
    cases = [case for case, _ in uneven + waited]
    yield Finding("starvation", f"Starvation at {places(cases)}: {listing(what)}. {remedy(cases)}")


def _usual_ns(run: Run) -> float:
    """Return the median of the slowest kind of operation; 0 without any."""
    medians = [finite(one.p50_ns) for trial in run.valid for one in trial.latency.values()]
    return max(filter(None, medians), default=0.0)


def fewer_processes(_cases: list[Case]) -> str:
    """Return what helps at a server."""
    return "Try fewer processes: rows, the processor or the disk are waited for."


def _is_uneven(run: Run) -> bool:
    """Return whether the shares of every pass were uneven: those of one alone may be an accident."""
    found = [finite(trial.fairness) for trial in run.valid]
    return bool(found) and all(jain is not None and jain < UNFAIR_UNDER for jain in found)


def tally(group: Group, count: Callable[[Trial], int | None]) -> tuple[int, list[Case]]:
    """Return how many of something all trials of a group counted, and in which cases."""
    counted = [(run.case, sum(count(trial) or 0 for trial in run.trials)) for run in group.runs]
    found = [(case, number) for case, number in counted if number > 0]
    return sum(number for _, number in found), [case for case, _ in found]
