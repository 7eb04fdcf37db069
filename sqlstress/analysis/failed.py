"""Failed operations: their share, and the time until they failed, compared with the busy timeout.

The busy timeout is the time for which SQLite waits for a lock before an operation fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import FailureTime
from sqlstress.report import Failures, Latency, Run
from sqlstress.report.results import merged
from sqlstress.statistics.histogram import bucket_of
from sqlstress.statistics.units import NS_PER_MS

WHOLE_TIMEOUT_SHARE = 0.9
"""Share of the busy timeout from which a failed operation counts as a wait for the whole timeout."""
IMMEDIATE_SHARE = 0.1
"""Share of the busy timeout. Operations failed at once if their median time to a failure is at most this
share."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Times from the begin of operations to their failure, and the busy timeout in force."""

    latency: Latency
    timeout_ms: int | None
    """Busy timeout in ms; None if it is unknown or differs between connections."""

    @property
    def waited_count(self) -> int:
        """Number of operations that failed after the whole timeout; 0 if the timeout is unknown."""
        if not self.timeout_ms:
            return 0
        least = bucket_of(round(WHOLE_TIMEOUT_SHARE * self.timeout_ms * NS_PER_MS))
        return sum(count for bucket, count in self.latency.buckets if bucket >= least)

    @property
    def is_at_once(self) -> bool:
        """Whether operations failed at once (see IMMEDIATE_SHARE) and none waited for the whole timeout."""
        median_ns = self.latency.p50_ns or 0.0
        return bool(self.timeout_ms) and not self.waited_count and median_ns <= self._short_ns

    @property
    def _short_ns(self) -> float:
        return IMMEDIATE_SHARE * (self.timeout_ms or 0) * NS_PER_MS

    def failure_time(self) -> FailureTime:
        """Return the time that the operations took to fail, as a fact for a sentence."""
        return FailureTime(
            median_ns=self.latency.p50_ns or 0.0,
            longest_ns=self.latency.max_ns,
            timeout_ms=self.timeout_ms,
            failures=self.latency.count,
            waited=self.waited_count,
            at_once=self.is_at_once,
        )


def failures_of(runs: Iterable[Run]) -> Iterator[Failures]:
    """Yield the records of failed operations in the valid trials of `runs`."""
    return (failures for run in runs for trial in run.valid for failures in trial.failures)


def latency_of(failures: Iterable[Failures]) -> Latency | None:
    """Return the latencies of all failed operations together; None if no operation failed."""
    return merged([failure.latency for failure in failures])


def wait_of(group: Group, timeout_ms: int | None) -> Wait | None:
    """Return the time until operations of a group failed; None if none failed, or no times were recorded."""
    latency = latency_of(failures_of(group.runs))
    return Wait(latency, timeout_ms) if latency and latency.count else None


def shares_by_kind(runs: Iterable[Run]) -> dict[str, float]:
    """Return the share of a kind's operations that failed, by kind with failures, the largest share first."""
    failed: dict[str, int] = {}
    done: dict[str, int] = {}
    for run in runs:
        for trial in run.valid:
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
