"""What waiting for the lock did: starvation, operations given up, transactions begun again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, longest_wait_ns, of_closed_loops
from sqlstress.analysis.scaling import LONG_WAIT_NS, UNFAIR_UNDER, fewer_processes, starvation, tally
from sqlstress.analysis.wording import finite, place, places
from sqlstress.experiment import face_of, has_window
from sqlstress.report import Check, Run, Trial
from sqlstress.report.case import Case
from sqlstress.report.server import ISOLATIONS
from sqlstress.statistics.histogram import bucket_of
from sqlstress.statistics.units import NS_PER_S, format_duration
from sqlstress.target import takes

# What an application with the usual busy time-out would have seen, where a longer one hides it.


USUAL_S = 5
"""How long Python's sqlite3 waits for a lock by default, and most libraries that wrap SQLite."""
TOO_SHORT_S = 1.0
"""Of a window that is shorter it says nothing that one waited as long: shares that are uneven show it."""
LONG_ENOUGH_S = 4 * USUAL_S
"""A window in which such a wait is seen where it occurs."""


@of_closed_loops
def usual_timeout(group: Group) -> Iterator[Finding]:
    """Yield how many operations waited longer than the usual time-out; or that the window hides it."""
    waits = takes(group.case.driver, "busy-timeout")
    if not waits or group.case.settings.busy_timeout_ms <= USUAL_S * 1000 or not group.writes:
        return
    shared = [run for run in group.runs if run.case.concurrency > 1]
    longer = [(run.case, number) for run in shared if (number := _longer(run))]
    hidden = [run for run in shared if _is_hidden(run)]
    if longer:
        yield Finding(
            "usual-timeout",
            count=sum(number for _, number in longer),
            usual_s=USUAL_S,
            where=places(case for case, _ in longer),
            # A transaction that is begun again waits several times, and each wait is shorter than their sum.
            again=group.case.spec.begin == "deferred",
        )
    elif hidden:
        yield Finding(
            "usual-timeout-hidden",
            where=places(run.case for run in hidden),
            longest_ns=max(map(longest_wait_ns, hidden)),
            usual_s=USUAL_S,
            window_s=LONG_ENOUGH_S,
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


# What waiting did at a server: transactions that it refused, operations given up, uneven shares.


def at_server(group: Group) -> Iterator[Finding]:
    """Yield what waiting did to the runs of a group."""
    yield from _lost(group)
    yield from _given_up_at_server(group)
    yield from starvation(group, fewer_processes)
    yield from _begun_again(group)


def _lost(group: Group) -> Iterator[Finding]:
    lost = [run.case for run in group.runs if any(map(_is_lost, run.verdict.checks))]
    unlocked = [case for case in lost if case.server and case.spec.begin == "deferred"]
    if any(case.server and case.server.isolation == ISOLATIONS[0] for case in unlocked):
        yield Finding("lost-updates")


def _is_lost(check: Check) -> bool:
    return check.name == "lost updates" and check.status == "failed"


def _given_up_at_server(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.failed)
    if number:
        timeout = format_duration(group.case.settings.busy_timeout_ms / 1000)
        yield Finding("given-up-at-server", timeout=timeout, count=number, where=places(cases))


def _begun_again(group: Group) -> Iterator[Finding]:
    refused, where = tally(group, lambda trial: trial.busy_snapshot)
    locked, also = tally(group, lambda trial: trial.busy)
    if refused or locked:
        yield Finding("begun-again", where=places([*where, *also]), refused=refused, locked=locked)


USEFUL_BUCKETS = 20
"""The fewest buckets to try: every process then finds a free file most of the time."""
NEAR_BEST = 0.95
"""More files that reach less than this share of what fewer reach are no remedy."""
MANY_FILES = 500
"""More files than this are no remedy: each costs every process a connection."""


def waiting(group: Group) -> Iterator[Finding]:
    """Yield what waiting did to the runs of a group."""
    if group.case.server:
        yield from at_server(group)
        return
    yield from _given_up(group)
    # At a rate it is the queue that one waits in, most of the time.
    yield from usual_timeout(group)
    yield from starvation(group, lambda cases: _remedy(group, cases))
    yield from _stall(group)
    yield from _snapshots(group)


def _remedy(group: Group, cases: Sequence[Case]) -> Finding:
    return Finding("try", ways=_ways(group, cases)) if group.writes else Finding("overloaded")


def _ways(group: Group, cases: Sequence[Case]) -> tuple[Finding, ...]:
    """Return what shortens the waits of the processes of these cases."""
    ways = []
    if group.case.settings.busy != "fair" and takes(group.case.driver, "busy"):
        ways.append(Finding("way-fair", without_preset=face_of(group.case).behaviour.whole_script))
    most = max(case.buckets for case in cases)
    files = max(USEFUL_BUCKETS, 2 * most)
    if most < MANY_FILES and not _in_vain(group, cases, files):
        ways.append(Finding("way-files", files=files))
    return *ways, Finding("way-processes")


def _in_vain(group: Group, cases: Sequence[Case], files: int) -> bool:
    """Return whether more files were measured where these cases waited, and were slower or no fairer.

    What speaks of this many files is the layout that comes nearest, from above if there is one.
    """
    believed = {(point.files, point.processes) for point in group.points()}
    for processes in sorted({case.concurrency for case in cases}, reverse=True):
        runs = {
            run.case.buckets: run
            for run in group.runs
            if run.case.concurrency == processes and (run.case.buckets, processes) in believed
        }
        if len(runs) > 1:
            nearest = min((layout for layout in runs if layout >= files), default=max(runs))
            return not _relieved(runs[min(runs)], runs[nearest])
    return False


def _relieved(few: Run, many: Run) -> bool:
    """Return whether more files shared more evenly, or where that was no trouble waited less, for no loss."""
    if (many.median_tps() or 0) < NEAR_BEST * (few.median_tps() or 0):
        return False
    before, after = _fairness(few), _fairness(many)
    return after > before if before < UNFAIR_UNDER else longest_wait_ns(many) < longest_wait_ns(few)


def _fairness(run: Run) -> float:
    trial = run.typical()
    jain = finite(trial.fairness) if trial else None
    return 1.0 if jain is None else jain


@of_closed_loops
def _stall(group: Group) -> Iterator[Finding]:
    stalls = [
        (run.case, longest_wait_ns(run))
        for run, _ in group.measured()
        if run.case.concurrency == 1 and longest_wait_ns(run) > LONG_WAIT_NS
    ]
    if stalls:
        longest = max(wait for _, wait in stalls)
        yield Finding("stall", where=places(case for case, _ in stalls), longest_ns=longest)


def _given_up(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.failed)
    if number:
        timeout = format_duration(group.case.settings.busy_timeout_ms / 1000)
        most = max(group.runs, key=Run.failed_share)
        yield Finding(
            "given-up",
            timeout=timeout,
            count=number,
            where=places(cases),
            share=most.failed_share(),
            most=place(most.case),
            ways=(Finding("way-timeout"), *_ways(group, cases)),
        )


def _snapshots(group: Group) -> Iterator[Finding]:
    if group.case.spec.begin != "deferred":
        return
    number, cases = tally(group, lambda trial: trial.busy_snapshot)
    # With fair waits BUSY is counted whenever somebody looks again for the lock: it is no refusal there.
    waits = group.case.settings.busy == "fair"
    refused, others = (0, []) if waits else tally(group, lambda trial: trial.busy)
    if number or refused:
        where = places([*cases, *others])
        yield Finding("busy-snapshot", count=number, refused=refused or None, where=where)
