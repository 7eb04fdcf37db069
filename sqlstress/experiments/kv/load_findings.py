"""What there is to say of key-value loads: what waiting for the lock did, what became of the WALs, and where
the time of the slowest operations went.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.disturbances import disturbed
from sqlstress.analysis.failed import wait_of
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, longest_wait_ns, of_closed_loops
from sqlstress.analysis.scaling import (
    LONG_WAIT_NS,
    UNFAIR_UNDER,
    is_fairness_known,
    starvation,
    tally,
)
from sqlstress.analysis.wording import listing, place, places
from sqlstress.experiment import has_window
from sqlstress.experiments.kv import sentences
from sqlstress.experiments.kv.spec import USUAL_S, companions_of
from sqlstress.report import Run, Trial, WorkerResult, results
from sqlstress.report.case import ISOLATIONS, Case
from sqlstress.statistics import series
from sqlstress.statistics.histogram import bucket_of
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_S, finite, format_duration
from sqlstress.target import takes

TOO_SHORT_S = 1.0
"""Of a window that is shorter it says nothing that one waited as long: shares that are uneven show it."""
LONG_ENOUGH_S = 4 * USUAL_S
"""A window in which such a wait is seen where it occurs."""
FAR_BELOW = 10
"""Waits so many times shorter than that are no sign of such a wait."""
COMMITS, GETS = ("replace", "update"), ("get", "pair")
"""Kinds of operations: those that only write or do so at last, and the others."""
USEFUL_BUCKETS = 20
"""The fewest buckets to try: every process then finds a free file most of the time."""
NEAR_BEST = 0.95
"""More files that reach less than this share of what fewer reach are no remedy."""
MANY_FILES = 500
"""More files than this are no remedy: each costs every process a connection."""


def given_up(group: Group) -> Iterator[Finding]:
    """Yield how many operations failed because the database was locked, after which time, and the cure."""
    number, cases = tally(group, lambda trial: trial.failed)
    if group.case.server or not number:
        return
    most = max(group.runs, key=Run.failed_share)
    wait = wait_of(group, group.case.settings.busy_timeout_ms)
    # A failure at once has nothing to do with the length of the timeout, or with the next process.
    ways = ("a longer --busy-timeout", *_ways(group, cases)) if wait and wait.waited_count else ()
    yield Finding(
        shared.given_up,
        count=number,
        what="operation",
        where=places(cases),
        share=most.failed_share(),
        most=place(most.case) if len(cases) > 1 else None,
        time=wait.failure_time() if wait else None,
        remedy=_try(ways) if ways else None,
    )


def waiting(group: Group) -> Iterator[Finding]:
    """Yield what waiting did to the runs of a group."""
    if group.case.server:
        yield from _at_server(group)
        return
    # At a rate it is the queue that one waits in, most of the time.
    yield from _usual_timeout(group)
    yield from starvation(group, lambda cases: _remedy(group, cases))
    alone = [run for run, _ in group.measured() if run.case.concurrency == 1 and not run.case.rate]
    yield from _flattered(group)
    stalls = [run for run in alone if longest_wait_ns(run) > LONG_WAIT_NS]
    if stalls and not group.met_quota:
        where = places(run.case for run in stalls)
        yield Finding(sentences.stall, where=where, longest_ns=max(map(longest_wait_ns, stalls)))
    if group.case.spec.begin == "deferred":
        number, cases = tally(group, lambda trial: trial.busy_snapshot)
        refused, others = tally(group, lambda trial: trial.busy)
        if number or refused:
            where = places([*cases, *others])
            yield Finding(
                shared.busy_snapshot, where=where, count=number, retried=True, refused=refused or None
            )


def _remedy(group: Group, cases: Sequence[Case]) -> str | None:
    """Return the remedy for starvation, if the report shows that the write lock caused it.

    Uneven shares show it. Of a long wait alone only an account of the time does.
    """
    runs = [run for run in group.runs if run.case in cases]
    uneven = any(is_fairness_known(run.case) and _fairness(run) < UNFAIR_UNDER for run in runs)
    locked = any(
        sum(shares(run).get(part, 0.0) for part in (results.HELD, results.FREE)) >= MUCH for run in runs
    )
    return _try(_ways(group, cases)) if group.writes and (uneven or locked) else None


def worst_p99_ns(run: Run, kind: str) -> float | None:
    """Return the largest p99 of a kind in a process of any pass.

    The p99 of all operations is dominated by the few processes that got the lock, where shares are uneven.
    None if they are even, or unknown, and if a pass has no figures of each process. All passes count, as in
    the p99 of all operations, so that the result is never below it.
    """
    workers = [trial.workers for trial in run.valid]
    is_known = workers and all(any(worker.p99_ns for worker in each) for each in workers)
    if not is_known or run.case.rate or not is_fairness_known(run.case) or _fairness(run) >= UNFAIR_UNDER:
        return None
    return max(_p99_ns(worker, kind) for each in workers for worker in each)


def _p99_ns(worker: WorkerResult, kind: str) -> float:
    # Who has written nothing has waited for it.
    return finite(worker.p99_ns.get(kind, worker.longest_wait_ns if kind in COMMITS else 0.0)) or 0.0


def _flattered(group: Group) -> Iterator[Finding]:
    """Yield what the p99 of all writes hides of the process that waited most, where that is worst."""
    found = [
        (worst_ns, own.p99_ns, kind, run.case)
        for run, _ in group.measured()
        for kind in COMMITS
        if (own := run.latency(kind)) and own.p99_ns and (worst_ns := worst_p99_ns(run, kind))
    ]
    if found:
        worst_ns, all_ns, kind, case = max(found, key=lambda each: each[0])
        yield Finding(sentences.p99_uneven, where=place(case), kind=kind, all_ns=all_ns, worst_ns=worst_ns)


def _timeout(group: Group) -> str:
    return format_duration(group.case.settings.busy_timeout_ms / 1000)


_AT_SERVER = (
    "SELECT ... FOR UPDATE (--begin immediate) to wait for them, or --isolation repeatable-read to refuse "
    "them"
)


def _at_server(group: Group) -> Iterator[Finding]:
    """Yield what waiting did at a server: it refused transactions, gave up operations, shared unevenly."""
    for run in group.runs:
        lost = any(check.name == "lost updates" and check.status == "failed" for check in run.verdict.checks)
        server = run.case.server
        if lost and server and server.isolation == ISOLATIONS[0] and run.case.spec.begin == "deferred":
            yield Finding(shared.read_committed, ways=_AT_SERVER)
            break
    number, cases = tally(group, lambda trial: trial.failed)
    if number:
        yield Finding(
            sentences.given_up_at_server, timeout=_timeout(group), count=number, where=places(cases)
        )
    yield from starvation(group)
    refused, where = tally(group, lambda trial: trial.busy_snapshot)
    locked, also = tally(group, lambda trial: trial.busy)
    if refused or locked:
        both = places([*where, *also])
        yield Finding(shared.refused, where=both, refused=refused, locked=locked, retried=True)


@of_closed_loops
def _usual_timeout(group: Group) -> Iterator[Finding]:
    """Yield how many operations waited longer than an application with the usual busy time-out would have
    waited, where a longer one hides it; or that the window hides it."""
    waits = takes(group.case.driver, "busy-timeout")
    if not waits or group.case.settings.busy_timeout_ms <= USUAL_S * 1000 or not group.writes:
        return
    shared = [run for run in group.runs if run.case.concurrency > 1]
    longer = [(run.case, number) for run in shared if (number := _longer(run))]
    # An operation waited as long as its window, which is too short to show more.
    short = [run for run in shared if has_window(run.case) and TOO_SHORT_S <= run.case.duration_s < USUAL_S]
    hidden = [run for run in short if longest_wait_ns(run) >= run.case.duration_s * NS_PER_S]
    usual: dict[str, Any] = {"usual_s": USUAL_S, "window_s": LONG_ENOUGH_S}
    if longer:
        yield Finding(
            sentences.usual_timeout,
            **usual,
            count=sum(number for _, number in longer),
            where=places(case for case, _ in longer),
            longest_ns=max(map(longest_wait_ns, shared)),
            # A transaction that is begun again waits several times, and each wait is shorter than their sum.
            again=group.case.spec.begin == "deferred",
        )
    elif hidden:
        yield Finding(
            sentences.usual_timeout,
            **usual,
            where=places(run.case for run in hidden),
            longest_ns=max(map(longest_wait_ns, hidden)),
        )


def longer_window(group: Group) -> Iterator[Finding]:
    """Yield whether one would have waited longer than is usual, by a window that is longer than the others.

    Such a wait does not fit into it, but begins there: while a process waits, each further look for the lock
    is as likely to find it taken as the one before.
    """
    for run in group.runs:
        trial = run.longer
        if trial is None or trial.error is not None or longest_wait_ns(run) > USUAL_S * NS_PER_S:
            continue
        extra_ns, table_ns = trial.longest_wait_ns or 0, longest_wait_ns(run)
        starved = sum(worker.longest_wait_ns >= trial.seconds * NS_PER_S for worker in trial.workers)
        yield Finding(
            sentences.longer_window,
            usual_s=USUAL_S,
            where=place(run.case),
            window_s=trial.seconds,
            starved=starved,
            extra_ns=extra_ns,
            table_ns=table_ns,
            no_sign=max(extra_ns, table_ns) * FAR_BELOW < USUAL_S * NS_PER_S,
            enough_s=LONG_ENOUGH_S,
        )


def _longer(run: Run) -> int:
    """Return how many operations of a run waited longer: to their end, in vain, or still at the last."""
    least, number = bucket_of(USUAL_S * NS_PER_S), 0
    for trial in run.valid:
        if trial.failures:
            times = chain.from_iterable(each.latency.buckets for each in trial.failures)
            number += sum(count for bucket, count in times if bucket > least)
        else:  # an older report
            number += trial.failed or 0
        for kind, latency in trial.latency.items():
            if kind != "get" or run.case.settings.journal_mode != "wal":  # readers of a WAL wait for no lock
                number += sum(count for bucket, count in latency.buckets if bucket > least)
    return number or int(longest_wait_ns(run) > USUAL_S * NS_PER_S)


# Ways to shorten the waits.


FEWER_PROCESSES = "fewer processes"


def _ways(group: Group, cases: Sequence[Case]) -> tuple[str, ...]:
    """Return ways to shorten the waits of these cases, unless the report speaks against them."""
    if group.met_quota:
        return "a higher CPU quota", FEWER_PROCESSES
    most = max(case.buckets for case in cases)
    files = max(USEFUL_BUCKETS, 2 * most)
    if most >= MANY_FILES or _in_vain(group, cases, files):
        return (FEWER_PROCESSES,)
    return f"more buckets (--buckets {files})", FEWER_PROCESSES


def _try(ways: Sequence[str]) -> str:
    return f"Try {listing(ways, 'or')}."


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


# What became of the WALs, where somebody watched them.


AUTOCHECKPOINT = 1000
"""Frames at which SQLite checkpoints by itself, unless it is told otherwise."""
PAGE_SIZE = 4096
LARGE = 4
"""A WAL of more than so many times the pages at which a checkpoint is due has got out of hand."""
STARVED = 3
"""So many checkpoints in a row that got no further are no accident."""


def series_of(trial: Trial, name: str) -> Series | None:
    """Return what was observed of the databases under a name; None when it was not."""
    return next((one for one in trial.series if one.name == name and one.worker is None), None)


def total(trial: Trial, name: str) -> int | None:
    """Return the sum of a series of that name; None when there is none."""
    seen = series_of(trial, name)
    return None if seen is None else sum(seen.values)


def most(trial: Trial, name: str) -> int | None:
    """Return the largest value of a series of that name; None when there is none."""
    seen = series_of(trial, name)
    return None if seen is None else max(seen.values, default=None)


def checkpoints(group: Group) -> Iterator[Finding]:
    """Yield what became of the WALs of a group, where somebody watched them."""
    beside = group.case.spec.checkpointing
    if beside is None:
        return
    seen = [(run.case, trial) for run, trial in group.measured()]
    in_a_row = [(case, most(trial, series.STUCK_CHECKPOINTS) or 0) for case, trial in seen]
    stuck = [(case, count) for case, count in in_a_row if count >= STARVED]
    if stuck:
        yield Finding(
            sentences.checkpoint_starvation,
            where=places(case for case, _ in stuck),
            stuck=max(count for _, count in stuck),
            pinned=beside.pinned_reader,
        )
    busy = [(case, trial) for case, trial in seen if total(trial, series.BUSY_CHECKPOINTS)]
    if busy and beside.mode != "passive":
        yield Finding(
            sentences.busy_checkpoints,
            made=sum(total(trial, series.CHECKPOINTS) or 0 for _, trial in busy),
            mode=beside.mode.upper(),
            busy=sum(total(trial, series.BUSY_CHECKPOINTS) or 0 for _, trial in busy),
            where=places(case for case, _ in busy),
            longest_ns=max(most(trial, series.LONGEST_CHECKPOINT) or 0 for _, trial in busy),
        )
    wals = [(case, most(trial, series.LARGEST_WAL) or 0, _limit(case, trial)) for case, trial in seen]
    large = [(case, largest) for case, largest, limit in wals if largest > limit]
    if large:
        snapshot = bool(stuck) or beside.pinned_reader
        yield Finding(
            sentences.large_wal,
            largest=max(largest for _, largest in large),
            where=places(case for case, _ in large),
            times=LARGE,
            frames=_autocheckpoint(large[0][0]),
            snapshot=snapshot,
            passive=not snapshot and beside.mode == "passive",
            seldom=not snapshot and beside.mode != "passive",
            stays=beside.mode != "truncate",
        )


def _autocheckpoint(case: Case) -> int:
    """Return the frames at which a checkpoint would be due, if nobody else saw to it."""
    return case.settings.wal_autocheckpoint or AUTOCHECKPOINT


def _limit(case: Case, trial: Trial) -> int:
    """Return the bytes of which a WAL that is larger has got out of hand."""
    answer = trial.effective.get("page_size", "")
    page_size = int(answer) if answer.isdecimal() and len(answer) < 9 else PAGE_SIZE
    return LARGE * _autocheckpoint(case) * page_size


# Where the time went: what the slowest operations waited for, and what would take that away.
#
# A remedy is named where every pass supports it, and only one whose effect is measured, as docs/where.md
# says.


LEAST_SHARE = 0.05
"""Parts of less than this share are not said one by one."""
MUCH = 0.2
"""From this share on a part is worth a remedy."""
MOSTLY = 0.6
_OF_THEIR_OWN = {
    results.FREE: "asleep while the lock was free",
    results.CHECKPOINT: "in their own checkpoints",
    results.SYNC: "in their own syncs",
    results.OWN: "in their other work, including waits for a processor",
}
_OTHERS = {
    results.COMMIT: "commits",
    results.SYNC: "syncs",
    results.CHECKPOINT: "checkpoints",
    results.READ: "reads",
}


def accounts_of(run: Run) -> list[results.Where]:
    """Return what the valid trials of a run tell."""
    return [trial.where for trial in run.valid if trial.where and trial.where.time_ns > 0]


def shares(run: Run) -> Mapping[str, float]:
    """Return which share of the time went into each part, all passes together; nothing if nobody tells."""
    accounts = accounts_of(run)
    total = sum(account.time_ns for account in accounts)
    parts: Counter[str] = Counter()
    for account in accounts:
        parts.update(account.parts)
    known = (
        part for part in results.PARTS if accounts and all(part in account.parts for account in accounts)
    )
    return {part: parts[part] / total for part in known}


def process_name(case: Case, process: int) -> str:
    """Return what a process is called: "process 3", or what it is beside the workers."""
    companions = companions_of(case)
    beyond = process - case.concurrency
    return companions[beyond - 1] if 0 < beyond <= len(companions) else f"process {process}"


def crowded(group: Group) -> Iterator[Finding]:
    """Yield where waiting for a processor is the largest part of the time, where that part is largest:
    there fewer processes are as good."""
    crowds = [(shares(run)[results.PROCESSOR], run.case) for run in group.runs if _is_crowded(run)]
    if crowds and not group.met_quota:
        share, case = max(crowds, key=lambda crowd: crowd[0])
        yield Finding(sentences.processor_wait, share=share, where=place(case))


def _is_crowded(run: Run) -> bool:
    """Return whether processes of ours take the processors from each other.

    Where other programs have them, fewer processes would get less of them; at a rate it is not the processes
    that make the load.
    """
    if run.case.concurrency == 1 or run.case.rate or disturbed(run):
        return False
    accounts = accounts_of(run)
    return bool(accounts) and all(
        account.parts.get(results.PROCESSOR, 0)
        > max((ns for part, ns in account.parts.items() if part != results.PROCESSOR), default=0)
        for account in accounts
    )


def went(group: Group) -> Iterator[Finding]:
    """Yield what the slowest operations waited for, where that is worst; nothing if a quota stopped them."""
    if group.met_quota:
        return

    def mean_ns(slow: Sequence[results.Slowest]) -> float:
        return sum(each.total_ns for each in slow) / sum(each.operations for each in slow)

    every = [
        (run, [account.slowest for account in accounts_of(run) if account.slowest]) for run in group.runs
    ]
    every = [(run, [each for each in slow if each.total_ns]) for run, slow in every]
    if slowest := [(run, slow) for run, slow in every if slow]:
        yield _waited_for(group, *max(slowest, key=lambda of_run: mean_ns(of_run[1])))


def _waited_for(group: Group, run: Run, slow: Sequence[results.Slowest]) -> Finding:
    """Return what the slowest operations of all passes waited for, and what would take that away."""
    total = sum(each.total_ns for each in slow)
    parts, behind = Counter[str](), Counter[str]()
    for each in slow:
        parts.update(each.parts)
        behind.update(each.behind)
    times = {
        f"waiting for {_OTHERS[what]} of {_whose(run, slow, what)}": ns
        for what, ns in behind.items()
        if what in _OTHERS
    }
    times |= {name: parts[part] for part, name in _OF_THEIR_OWN.items()}
    return Finding(
        sentences.slowest_operations,
        where=place(run.case),
        count=sum(each.operations for each in slow),
        fastest_ns=min(each.fastest_ns for each in slow),
        parts={
            name: ns / total
            for name, ns in sorted(times.items(), key=lambda time: time[1], reverse=True)
            if ns >= LEAST_SHARE * total
        },
        remedies=tuple(_remedies(group, run.case, slow)),
    )


def _whose(run: Run, slow: Sequence[results.Slowest], what: str) -> str:
    """Return who held the lock: the one that did so most of the time, if there is one."""
    held: Counter[int] = Counter()
    for each in slow:
        held.update({by.process: by.ns for by in each.held_by if by.what == what})
    if not held:
        return "others"
    process, ns = held.most_common(1)[0]
    is_worker = process <= run.case.concurrency
    # The third worker of one pass is not that of another.
    if ns < MOSTLY * held.total() or (is_worker and len(slow) > 1):
        return "others"
    return f"{'' if is_worker else 'the '}{process_name(run.case, process)}"


def _remedies(group: Group, case: Case, slow: Sequence[results.Slowest]) -> Iterator[str]:
    """Yield a remedy for each cause with a large share of the slowest operations' time in every pass."""

    def much(part: str, *, behind: bool = False) -> bool:
        return all(
            each.parts.get(part, 0) + behind * each.behind.get(part, 0) >= MUCH * each.total_ns
            for each in slow
        )

    wal = case.settings.journal_mode == "wal"
    if case.concurrency > 1 and much(results.FREE):
        yield f"To sleep less, use {listing(_ways(group, [case]), 'or')}."
    if wal and case.spec.checkpointing is None and much(results.CHECKPOINT):
        yield "Use --checkpointer passive to checkpoint in a separate process; the WAL grows meanwhile."
    if much(results.SYNC, behind=True):
        ways = ["more rows per transaction (--batch)"] * (case.spec.batch == 1)
        if wal and case.settings.synchronous in (None, "full", "extra"):
            ways.append("--synchronous normal (a power failure can then lose the last commits)")
        if ways:
            yield f"To sync less, use {listing(ways, 'or')}."
