"""Failed operations of runs (all trials of a case): shares, and times to failure.

A trial is a timed execution of a case. A group is the runs in one table of the report. Times are compared
with SQLite's busy timeout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import FailureTime
from sqlstress.report import Failures, Run
from sqlstress.report.results import merged
from sqlstress.statistics.histogram import bin_of
from sqlstress.statistics.units import NS_PER_MS

WHOLE_TIMEOUT_SHARE = 0.9
"""Smallest time to failure, as a share of the busy timeout, that counts as the whole timeout."""
IMMEDIATE_SHARE = 0.1
"""Largest median time to failure, as a share of the busy timeout, that counts as "at once"."""


def failures_of(runs: Iterable[Run]) -> Iterator[Failures]:
    """Yield the failures of the runs' valid trials: failed operations, grouped by kind and error."""
    return (failures for run in runs for trial in run.all_valid for failures in trial.failures)


def failure_time_of(failures: Iterable[Failures], timeout_ms: int | None) -> FailureTime | None:
    """Return the median and longest time until operations failed; None if no time was recorded.

    `timeout_ms` is the busy timeout; None if it is unknown or differs between connections.
    """
    latency = merged([failure.latency for failure in failures])
    if latency is None or not latency.count:
        return None
    median_ns, timeout_ns = latency.p50_ns or 0.0, (timeout_ms or 0) * NS_PER_MS
    least = bin_of(round(WHOLE_TIMEOUT_SHARE * timeout_ns))
    waited = sum(count for bucket, count in latency.buckets if timeout_ns and bucket >= least)
    return FailureTime(
        median_ns=median_ns,
        longest_ns=latency.max_ns,
        timeout_ms=timeout_ms,
        failures=latency.count,
        waited=waited,
        at_once=bool(timeout_ns) and not waited and median_ns <= IMMEDIATE_SHARE * timeout_ns,
    )


def shares_by_kind(runs: Iterable[Run]) -> dict[str, float]:
    """Return the share of failed operations by kind of operation, largest first, without shares of 0."""
    failed: dict[str, int] = {}
    done: dict[str, int] = {}
    for run in runs:
        for trial in run.all_valid:
            for failures in trial.failures:
                failed[failures.kind] = failed.get(failures.kind, 0) + failures.latency.count
            for worker in trial.workers:
                for kind, count in worker.operations.items():
                    done[kind] = done.get(kind, 0) + count
    shares = {kind: count / (count + done.get(kind, 0)) for kind, count in failed.items() if kind and count}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def too_many_failed_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on the cases in which more operations failed than --max-failed allows."""
    runs = [run for run in group.runs if run.failed_too_many]
    if runs:
        yield Finding(
            sentences.too_many_failed,
            where=group.places(run.case for run in runs),
            several=len(runs) > 1,
            share=max(run.failed_share() for run in runs),
            most=f"{100 * runs[0].case.max_failed:.3g}%",
        )
