"""What an application with the usual busy time-out would have seen, where a longer one hides it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, longest_wait_ns
from sqlstress.analysis.wording import duration, places, plural
from sqlstress.experiment import has_window
from sqlstress.report import Run, Trial
from sqlstress.statistics.histogram import bucket_of
from sqlstress.statistics.units import NS_PER_S
from sqlstress.target import takes

USUAL_S = 5
"""How long Python's sqlite3 waits for a lock by default, and most libraries that wrap SQLite."""
TOO_SHORT_S = 1.0
"""Of a window that is shorter it says nothing that one waited as long: shares that are uneven show it."""
LONG_ENOUGH_S = 4 * USUAL_S
"""A window in which such a wait is seen where it occurs."""


def usual_timeout(group: Group) -> Iterator[Finding]:
    """Yield how many operations waited longer than the usual time-out; or that the window hides it."""
    waits = takes(group.case.driver, "busy-timeout")
    if not waits or group.case.settings.busy_timeout_ms <= USUAL_S * 1000 or not group.writes:
        return
    shared = [run for run in group.runs if run.case.concurrency > 1]
    longer = [(run.case, number) for run in shared if (number := _longer(run))]
    hidden = [run for run in shared if _is_hidden(run)]
    if longer:
        number = sum(number for _, number in longer)
        # A transaction that is begun again waits several times, and each wait is shorter than their sum.
        would = "could" if group.case.spec.begin == "deferred" else "would"
        yield Finding(
            "usual-timeout",
            f"{plural(number, 'operation')} waited longer than {USUAL_S} s, at "
            f"{places(case for case, _ in longer)}. An application with the usual busy time-out of "
            f'{USUAL_S} s {would} have seen "database is locked": try --busy-timeout {USUAL_S}s.',
        )
    elif hidden:
        longest = duration(max(map(longest_wait_ns, hidden)))
        yield Finding(
            "usual-timeout",
            f"An operation at {places(run.case for run in hidden)} waited for the whole window, up to "
            f"{longest}. Whether it would have waited longer than the usual busy time-out of {USUAL_S} s, "
            f"--duration {LONG_ENOUGH_S}s shows.",
        )


def _longer(run: Run) -> int:
    """Return how many operations of a run waited longer: to their end, in vain, or still at the last."""
    found = sum(_completed_later(run, trial) + (trial.failed or 0) for trial in run.valid)
    return found or int(longest_wait_ns(run) > USUAL_S * NS_PER_S)


def _completed_later(run: Run, trial: Trial) -> int:
    least = bucket_of(USUAL_S * NS_PER_S)
    waiting = [latency for kind, latency in trial.latency.items() if _waits(run, kind)]
    return sum(count for latency in waiting for index, count in latency.buckets if index > least)


def _waits(run: Run, kind: str) -> bool:
    """Say whether operations of a kind wait for locks: readers of a WAL don't."""
    return kind != "get" or run.case.settings.journal_mode != "wal"


def _is_hidden(run: Run) -> bool:
    """Say whether an operation waited as long as its window, which is too short to show more."""
    window_s = run.case.duration_s
    can_be = has_window(run.case) and TOO_SHORT_S <= window_s < USUAL_S
    return can_be and longest_wait_ns(run) >= window_s * NS_PER_S
