"""A small report of rates, made by hand: it keeps up at two of them, is at its end at the third, and is
saturated at the fourth.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from statistics import NormalDist

from sqlstress.report import Arrived, Latency, Report, Run, Trial
from sqlstress.report.case import Arrivals, Case
from sqlstress.statistics.histogram import Recorder
from tests.example_report import example_report

EXAMPLE = example_report()
PROCESSES = 4
CAPACITY = 3_000.0
"""Operations a second that are done at most."""
SERVICE_NS = 300_000


def rate_report(rates: tuple[int, ...] = (500, 1_000, 2_900, 6_000), passes: int = 5) -> Report:
    """Return a run at each of these rates."""
    runs = tuple(rate_run(rate, passes) for rate in rates)
    return replace(EXAMPLE, runs=runs, planned=len(runs), command=("sqlstress", "-c", "4", "--rate", "500"))


def rate_run(rate: int, passes: int, capacity: float = CAPACITY, noise: float = 0.01) -> Run:
    """Return a run at a rate, whose passes differ by some noise."""
    case = Case(concurrency=PROCESSES, duration_s=2.0, repeat=passes, seed=7, arrivals=Arrivals(rate))
    draw = Random(rate)
    trials = (rate_trial(rate, capacity * math.exp(draw.gauss(0, noise)), number) for number in range(passes))
    return Run(case, tuple(trials), harness_ns=812.0)


def rate_trial(rate: int, capacity: float, number: int = 0, seconds: float = 2.0) -> Trial:
    """Return a trial at a rate, of a store with a capacity of `capacity` operations per second."""
    due = round(rate * seconds)
    done = min(due, round(capacity * seconds))
    share = min(rate / capacity, 0.99)
    latency_ns = round(SERVICE_NS / (1 - share)) if done == due else round((due - done) / capacity * 1e9)
    latency = {"replace": _around(latency_ns, done)}
    if due > done:
        latency["queued"] = _around(latency_ns, due - done)
    base = EXAMPLE.runs[6].trials[0]
    each = done // PROCESSES
    workers = tuple(
        replace(worker, transactions=each, rows=each, operations={"replace": each}, seconds=seconds)
        for worker in base.workers
    )
    return replace(
        base,
        index=number,
        seconds=seconds,
        transactions=done,
        rows=done,
        tps=done / seconds,
        rows_per_s=done / seconds,
        fairness=1.0,
        longest_wait_ns=6 * latency_ns,
        latency={"replace": _around(SERVICE_NS, done)},
        workers=workers,
        effective={**base.effective, "wal_autocheckpoint": "1000"},
        half_ratio=1.0,
        arrived=Arrived(due, 0, due - done, latency, _around(2_000, due), polled_share=0.03),
    )


def late(window: Trial, seconds: float) -> Trial:
    """Return a window in which the harness began operations about `seconds` later than possible."""
    assert window.arrived
    lateness = _around(round(seconds * 1e9), window.arrived.due)
    return replace(window, arrived=replace(window.arrived, lateness=lateness))


def _around(ns: int, count: int) -> Latency:
    buckets: Mapping[int, int] = histogram_around(ns, 0.5, count)
    return Latency.from_buckets(buckets, 6 * ns)


def histogram_around(median_ns: int, sigma: float, count: int) -> dict[int, int]:
    """Return a histogram of `count` operations, log-normal, cut to nine points so that files stay small."""
    points = 9
    recorder = Recorder()
    for place in range(points):
        deviation = NormalDist().inv_cdf((place + 0.5) / points)
        share = count * (place + 1) // points - count * place // points
        recorder.record([round(median_ns * 2.718281828 ** (sigma * deviation))] * share)
    return recorder.buckets()
