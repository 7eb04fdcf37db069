"""What waiting for the lock did: starvation, operations given up, transactions begun again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, longest_wait_ns
from sqlstress.analysis.waits import LONG_WAIT_NS, UNFAIR_UNDER, starvation, tally
from sqlstress.analysis.wording import duration, finite, listing, percent, place, places, whole
from sqlstress.experiment import face_of
from sqlstress.experiments.kv.shown.at_server import at_server
from sqlstress.experiments.kv.shown.usual_timeout import usual_timeout
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.statistics.units import format_duration
from sqlstress.target import takes

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
    if group.case.arrivals is None:  # at a rate it is the queue that one waits in, most of the time
        yield from usual_timeout(group)
        yield from starvation(group, lambda cases: _remedy(group, cases))
        yield from _stall(group)
    yield from _snapshots(group)


def _remedy(group: Group, cases: Sequence[Case]) -> str:
    if not group.writes:
        return "Nothing here waits for the write lock: the processor or the disk is overloaded."
    return f"Try {listing(_ways(group, cases), 'or')}."


def _ways(group: Group, cases: Sequence[Case]) -> list[str]:
    """Return what shortens the waits of the processes of these cases."""
    ways = []
    if group.case.settings.busy != "fair" and takes(group.case.driver, "busy"):
        ways.append(f"--busy fair{' without the preset' * face_of(group.case).whole_script}")
    most = max(case.buckets for case in cases)
    files = max(USEFUL_BUCKETS, 2 * most)
    if most < MANY_FILES and not _in_vain(group, cases, files):
        ways.append(f"more files (--buckets {files})")
    return [*ways, "fewer processes"]


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


def _stall(group: Group) -> Iterator[Finding]:
    stalls = [
        (run.case, longest_wait_ns(run))
        for run, _ in group.measured()
        if run.case.concurrency == 1 and longest_wait_ns(run) > LONG_WAIT_NS
    ]
    if stalls:
        yield Finding(
            "stall",
            f"With nobody else to wait for, an operation of {places(case for case, _ in stalls)} took up to "
            f"{duration(max(wait for _, wait in stalls))}: a checkpoint or the disk held it up.",
        )


def _given_up(group: Group) -> Iterator[Finding]:
    number, cases = tally(group, lambda trial: trial.failed)
    if number:
        timeout = format_duration(group.case.settings.busy_timeout_ms / 1000)
        most = max(group.runs, key=Run.failed_share)
        ways = ["a longer --busy-timeout", *_ways(group, cases)]
        yield Finding(
            "given-up",
            f"Operations given up after the busy time-out of {timeout}: {whole(number)}, at {places(cases)}; "
            f"up to {percent(most.failed_share())} of all (at {place(most.case)}). An application sees them "
            f'as "database is locked", and they count in no figure: try {listing(ways, "or")}.',
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
        more = f", and after a BUSY that came at once: {whole(refused)}" if refused else ""
        yield Finding(
            "busy-snapshot",
            f"Transactions begun again after BUSY_SNAPSHOT: {whole(number)}{more}, at {where}. "
            "A deferred transaction that has read can't wait for its turn to write: "
            "use BEGIN IMMEDIATE (--begin immediate).",
        )
