"""A small report of a search for the highest rate, made by hand from the example of rates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlstress.report import LimitSearch, Promise, Report, Run
from sqlstress.report.case import Case
from tests.example_report import example_report
from tests.rate_report import EXAMPLE, PROCESSES, rate_run, rate_trial

PROMISE = Promise(p99_s=0.002)
SEARCH = LimitSearch(PROMISE, max_time_s=300.0, seconds=150.0)
FAST = 4_000.0
"""Capacity, in operations per second, of a store that keeps the promise at all of these rates."""
TRIED: Mapping[int, Sequence[bool]] = {
    1_000: [True],
    1_500: [True] * 6,
    1_600: [True, True, False],
    1_800: [False] * 6,
    2_400: [False],
}


def limit_run(rate: int, kept: Sequence[bool]) -> Run:
    """Return a rate whose windows kept the promise, or did not."""
    run = rate_run(rate, 1)
    trials = (rate_trial(rate, FAST if ok else rate / 2, number) for number, ok in enumerate(kept))
    return replace(run, case=replace(run.case, repeat=1), trials=tuple(trials), harness_ns=None)


def limit_report(tried: Mapping[int, Sequence[bool]] = TRIED, search: LimitSearch = SEARCH) -> Report:
    """Return a report of these windows, after a closed loop."""
    of_closed = example_report().runs[6].trials[0]
    closed = Run(Case(concurrency=PROCESSES, duration_s=2.0, seed=7), (of_closed,))
    runs = (closed, *(limit_run(rate, kept) for rate, kept in tried.items()))
    command = ("sqlstress", "limit", "--p99", "2ms")
    return replace(EXAMPLE, runs=runs, planned=len(runs), command=command, limit=search)
