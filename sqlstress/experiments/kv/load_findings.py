"""Findings (sentences of the report with their facts) on key-value loads: waits, WALs, slowest operations.

A group is the runs that the report shows in one table. A case is a set of options. A trial measures a case
once, in a window of time. A run is a case with all its trials, one per pass (repetition).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.disturbances import disturbed
from sqlstress.analysis.failed import failure_time_of
from sqlstress.analysis.failed import failures_of as failures_in
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, longest_wait_ns
from sqlstress.analysis.scaling import LONG_WAIT_NS, MIN_FAIRNESS, is_fairness_known, starvation, tally
from sqlstress.analysis.wal_growth import AUTOCHECKPOINT, LARGE_FACTOR
from sqlstress.analysis.wording import listing, place, places
from sqlstress.experiment import has_window
from sqlstress.experiments.kv import sentences
from sqlstress.experiments.kv.spec import USUAL_BUSY_TIMEOUT_S, companion_names
from sqlstress.report import Run, Trial, WorkerResult, results
from sqlstress.report.case import ISOLATIONS, Case
from sqlstress.statistics import series
from sqlstress.statistics.histogram import bin_of
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_S, finite, format_duration
from sqlstress.target import takes
from sqlstress.user_work.call_findings import wal_growth_findings
from sqlstress.user_work.failure_records import failures_of
from sqlstress.user_work.failures_view import failure_findings

MIN_JUDGED_WINDOW_S = 1.0
"""Minimum length of a window, in seconds, for the report to mention waits that lasted the whole window."""
SUGGESTED_WINDOW_S = 4 * USUAL_BUSY_TIMEOUT_S
"""Length of a window, in seconds, that the report suggests to look for waits over the usual timeout."""
NO_SIGN_FACTOR = 10
"""Factor by which the usual timeout must exceed the longest wait, to report "no sign" of longer waits."""
COMMITS, GETS = ("replace", "update"), ("get", "pair")
"""Kinds of operations that write, and kinds that only read."""
MIN_SUGGESTED_BUCKETS = 20
"""Minimum number of database files to suggest. With 20 files, a process usually finds a free file."""
MIN_KEPT_THROUGHPUT = 0.95
"""Minimum ratio of the throughput with more database files to that with fewer, to suggest more files."""
MAX_SUGGESTED_FILES = 500
"""Number of database files from which no more are suggested: each process connects to every file."""


def given_up(group: Group) -> Iterator[Finding]:
    """Yield a finding on operations that failed with "database is locked", if any did."""
    number, cases = tally(group, lambda trial: trial.failed)
    if group.case.server or not number:
        return
    is_explained = any(finding.facts["explanation"] for finding in failure_findings(group))
    most = max(group.runs, key=Run.failed_share)
    time = failure_time_of(failures_in(group.runs), group.case.settings.busy_timeout_ms)
    # Longer timeouts and fewer processes do not prevent a failure without a wait, such as BUSY_SNAPSHOT.
    is_late = time and time.waited
    ways = ("a longer --busy-timeout", *_ways(group, cases)) if is_late and not is_explained else ()
    yield Finding(
        shared.given_up,
        count=number,
        what="operation",
        where=places(cases),
        share=most.failed_share(),
        most=place(most.case) if len(cases) > 1 else None,
        time=time,
        remedy=_try(ways) if ways else None,
    )


def waiting(group: Group) -> Iterator[Finding]:
    """Yield findings on long waits, starved processes, and retried transactions.

    SQLite refuses deferred transactions with BUSY or BUSY_SNAPSHOT, and sqlstress retries them.
    """
    if group.case.server:
        yield from _server_waits(group)
        return
    yield from _usual_timeout(group)
    yield from starvation(group, lambda cases: _remedy(group, cases))
    # With --rate, an operation may wait for earlier operations of its process, not for the database.
    alone = [run for run, _ in group.measured() if run.case.concurrency == 1 and not run.case.rate]
    yield from _hidden_p99(group)
    stalls = [run for run in alone if longest_wait_ns(run) > LONG_WAIT_NS]
    if stalls and not group.met_quota:
        where = places(run.case for run in stalls)
        yield Finding(sentences.stall, where=where, longest_ns=max(map(longest_wait_ns, stalls)))
    if group.case.spec.begin == "deferred":
        number, cases = tally(group, lambda trial: trial.busy_snapshot)
        refused, refused_cases = tally(group, lambda trial: trial.busy)
        if (number or refused) and not failures_of(group):
            where = places([*cases, *refused_cases])
            yield Finding(
                shared.busy_snapshot, where=where, count=number, retried=True, refused=refused or None
            )


def _remedy(group: Group, cases: Sequence[Case]) -> str | None:
    """Return a remedy for starved processes; None if nothing shows that the write lock is the cause.

    Signs of this cause are very unequal numbers of operations, and a large share of lock waits in --where.
    """
    runs = [run for run in group.runs if run.case in cases]
    uneven = any(is_fairness_known(run.case) and _fairness(run) < MIN_FAIRNESS for run in runs)
    locked = any(
        sum(shares(run).get(part, 0.0) for part in (results.HELD, results.FREE)) >= LARGE_SHARE
        for run in runs
    )
    return _try(_ways(group, cases)) if group.writes and (uneven or locked) else None


def worst_p99_ns(run: Run, kind: str) -> float | None:
    """Return the p99 latency of a kind of operation in the slowest process, in ns, or None.

    If a few processes get the lock most often, the p99 over all processes mostly describes these few. Return
    None if the processes did about equally many operations, with --rate, or if the numbers are unknown.
    """
    workers = [trial.workers for trial in run.valid]
    is_known = workers and all(any(worker.p99_ns for worker in trial) for trial in workers)
    if not is_known or run.case.rate or not is_fairness_known(run.case) or _fairness(run) >= MIN_FAIRNESS:
        return None
    return max(_p99_ns(worker, kind) for trial in workers for worker in trial)


def _p99_ns(worker: WorkerResult, kind: str) -> float:
    # A process that completed no write has no p99. It has waited for its first write all the time, so its
    # longest wait replaces the p99.
    return finite(worker.p99_ns.get(kind, worker.longest_wait_ns if kind in COMMITS else 0.0)) or 0.0


def _hidden_p99(group: Group) -> Iterator[Finding]:
    candidates = [
        (worst_ns, all_latency.p99_ns, kind, run.case)
        for run, _ in group.measured()
        for kind in COMMITS
        if (all_latency := run.latency(kind)) and all_latency.p99_ns and (worst_ns := worst_p99_ns(run, kind))
    ]
    if candidates:
        worst_ns, all_ns, kind, case = max(candidates, key=lambda candidate: candidate[0])
        yield Finding(sentences.p99_uneven, where=place(case), kind=kind, all_ns=all_ns, worst_ns=worst_ns)


def _timeout(group: Group) -> str:
    return format_duration(group.case.settings.busy_timeout_ms / 1000)


_AT_SERVER = (
    "SELECT ... FOR UPDATE (--begin immediate) to wait for them, or --isolation repeatable-read to refuse "
    "them"
)


def _server_waits(group: Group) -> Iterator[Finding]:
    """Yield findings on lost updates, failed and retried transactions, and starved processes at a server.

    A transaction is retried after a serialization failure or deadlock, and fails after the timeout.
    """
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
    refused, refused_cases = tally(group, lambda trial: trial.busy_snapshot)
    locked, locked_cases = tally(group, lambda trial: trial.busy)
    if refused or locked:
        where = places([*refused_cases, *locked_cases])
        yield Finding(shared.refused, where=where, refused=refused, locked=locked, retried=True)


def _usual_timeout(group: Group) -> Iterator[Finding]:
    """Yield a finding on waits that would fail with the default busy timeout of most libraries (5 s).

    This concerns groups with a longer timeout. If no wait exceeded 5 s, but the windows are too short to show
    such a wait, yield a finding on waits that lasted for a whole window.
    """
    waits = takes(group.case.driver, "busy-timeout") and not group.case.rate
    if not waits or group.case.settings.busy_timeout_ms <= USUAL_BUSY_TIMEOUT_S * 1000 or not group.writes:
        return
    shared = [run for run in group.runs if run.case.concurrency > 1]
    longer = [(run.case, number) for run in shared if (number := _count_longer_waits(run))]
    # The windows of these runs are too short to show waits beyond the usual timeout.
    short = [
        run
        for run in shared
        if has_window(run.case) and MIN_JUDGED_WINDOW_S <= run.case.duration_s < USUAL_BUSY_TIMEOUT_S
    ]
    hidden = [run for run in short if longest_wait_ns(run) >= run.case.duration_s * NS_PER_S]
    usual: dict[str, Any] = {"usual_s": USUAL_BUSY_TIMEOUT_S, "window_s": SUGGESTED_WINDOW_S}
    if longer:
        yield Finding(
            sentences.usual_timeout,
            **usual,
            count=sum(number for _, number in longer),
            where=places(case for case, _ in longer),
            longest_ns=max(map(longest_wait_ns, shared)),
            # After SQLITE_BUSY, sqlstress repeats a deferred transaction. The recorded time is then the sum
            # of several waits, and perhaps no single wait exceeded the usual timeout.
            again=group.case.spec.begin == "deferred",
        )
    elif hidden:
        yield Finding(
            sentences.usual_timeout,
            **usual,
            where=places(run.case for run in hidden),
            longest_ns=max(map(longest_wait_ns, hidden)),
        )


def longer_window_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on long waits for each case that was also measured in a longer window.

    With the default options, sqlstress measures the largest case once more in a longer window, after all
    other trials. Omit a case if its short windows already show a wait beyond the usual busy timeout, because
    another finding reports such waits.
    """
    for run in group.runs:
        trial = run.longer
        if trial is None or trial.error is not None or longest_wait_ns(run) > USUAL_BUSY_TIMEOUT_S * NS_PER_S:
            continue
        extra_ns, table_ns = trial.longest_wait_ns or 0, longest_wait_ns(run)
        starved = sum(worker.longest_wait_ns >= trial.seconds * NS_PER_S for worker in trial.workers)
        yield Finding(
            sentences.longer_window,
            usual_s=USUAL_BUSY_TIMEOUT_S,
            where=place(run.case),
            window_s=trial.seconds,
            starved=starved,
            extra_ns=extra_ns,
            table_ns=table_ns,
            no_sign=max(extra_ns, table_ns) * NO_SIGN_FACTOR < USUAL_BUSY_TIMEOUT_S * NS_PER_S,
            enough_s=SUGGESTED_WINDOW_S,
        )


def _count_longer_waits(run: Run) -> int:
    least, number = bin_of(USUAL_BUSY_TIMEOUT_S * NS_PER_S), 0
    # In WAL mode readers wait for no lock.
    unlocked = ("get",) if run.case.settings.journal_mode == "wal" else ()
    for trial in run.valid:
        latencies = [failure.latency for failure in trial.failures]
        latencies += [latency for kind, latency in trial.latency.items() if kind not in unlocked]
        number += sum(count for latency in latencies for bucket, count in latency.buckets if bucket > least)
        if not trial.failures:  # Reports of older versions do not have the latencies of failures.
            number += trial.failed or 0
    return number or int(longest_wait_ns(run) > USUAL_BUSY_TIMEOUT_S * NS_PER_S)


FEWER_PROCESSES = "fewer processes"


def _ways(group: Group, cases: Sequence[Case]) -> tuple[str, ...]:
    """Return ways to shorten waits, such as "fewer processes", except for ways that did not help here."""
    if group.met_quota:
        return "a higher CPU quota", FEWER_PROCESSES
    most = max(case.buckets for case in cases)
    files = max(MIN_SUGGESTED_BUCKETS, 2 * most)
    if most >= MAX_SUGGESTED_FILES or _are_more_files_useless(group, cases, files):
        return (FEWER_PROCESSES,)
    return f"more buckets (--buckets {files})", FEWER_PROCESSES


def _try(ways: Sequence[str]) -> str:
    return f"Try {listing(ways, 'or')}."


def _are_more_files_useless(group: Group, cases: Sequence[Case], files: int) -> bool:
    """Return whether the measurements show that `files` database files would not help.

    Of the runs with equally many processes, compare the run with the fewest files and the run with `files`
    files. If no run has exactly `files`, take the run with the next larger number, or else the largest.
    """
    valid = {(point.files, point.processes) for point in group.points()}
    for processes in sorted({case.concurrency for case in cases}, reverse=True):
        runs = {
            run.case.buckets: run
            for run in group.runs
            if run.case.concurrency == processes and (run.case.buckets, processes) in valid
        }
        if len(runs) > 1:
            nearest = min((layout for layout in runs if layout >= files), default=max(runs))
            return not _are_many_better(runs[min(runs)], runs[nearest])
    return False


def _are_many_better(few: Run, many: Run) -> bool:
    """Return whether the run with many files is better than the run with few, without loss of throughput.

    If the processes did very unequal numbers of operations in the run with few files, better means more equal
    numbers. Otherwise it means a shorter longest wait.
    """
    if (many.median_tps() or 0) < MIN_KEPT_THROUGHPUT * (few.median_tps() or 0):
        return False
    few_fairness, many_fairness = _fairness(few), _fairness(many)
    return (
        many_fairness > few_fairness
        if few_fairness < MIN_FAIRNESS
        else longest_wait_ns(many) < longest_wait_ns(few)
    )


def _fairness(run: Run) -> float:
    trial = run.typical()
    jain = finite(trial.fairness) if trial else None
    return 1.0 if jain is None else jain


PAGE_SIZE = 4096
MIN_STUCK_CHECKPOINTS = 3
"""Minimum number of consecutive checkpoints without progress to report."""


def series_of(trial: Trial, name: str) -> Series | None:
    """Return the trial's values over time called `name`, of all processes together; None if missing."""
    return next(
        (candidate for candidate in trial.series if candidate.name == name and candidate.worker is None), None
    )


def total(trial: Trial, name: str) -> int | None:
    """Return the sum of a trial's series `name`; None if the trial lacks it."""
    observed = series_of(trial, name)
    return None if observed is None else sum(observed.values)


def most(trial: Trial, name: str) -> int | None:
    """Return the largest value of a trial's series `name`; None if the trial lacks it."""
    observed = series_of(trial, name)
    return None if observed is None else max(observed.values, default=None)


def checkpoints(group: Group) -> Iterator[Finding]:
    """Yield findings on busy or stuck checkpoints and on large WALs."""
    checkpointing = group.case.spec.checkpointing
    if checkpointing is None:
        yield from wal_growth_findings(group)
        return
    measured = [(run.case, trial) for run, trial in group.measured()]
    in_a_row = [(case, most(trial, series.STUCK_CHECKPOINTS) or 0) for case, trial in measured]
    stuck = [(case, count) for case, count in in_a_row if count >= MIN_STUCK_CHECKPOINTS]
    if stuck:
        yield Finding(
            sentences.checkpoint_starvation,
            where=places(case for case, _ in stuck),
            stuck=max(count for _, count in stuck),
            pinned=checkpointing.pinned_reader,
        )
    busy = [(case, trial) for case, trial in measured if total(trial, series.BUSY_CHECKPOINTS)]
    if busy and checkpointing.mode != "passive":
        yield Finding(
            sentences.busy_checkpoints,
            made=sum(total(trial, series.CHECKPOINTS) or 0 for _, trial in busy),
            mode=checkpointing.mode.upper(),
            busy=sum(total(trial, series.BUSY_CHECKPOINTS) or 0 for _, trial in busy),
            where=places(case for case, _ in busy),
            longest_ns=max(most(trial, series.LONGEST_CHECKPOINT) or 0 for _, trial in busy),
        )
    wals = [
        (case, most(trial, series.LARGEST_WAL) or 0, _large_wal_bytes(case, trial))
        for case, trial in measured
    ]
    large = [(case, largest) for case, largest, limit in wals if largest > limit]
    if large:
        snapshot = bool(stuck) or checkpointing.pinned_reader
        yield Finding(
            sentences.large_wal,
            largest=max(largest for _, largest in large),
            where=places(case for case, _ in large),
            times=LARGE_FACTOR,
            frames=_autocheckpoint_frames(large[0][0]),
            snapshot=snapshot,
            passive=not snapshot and checkpointing.mode == "passive",
            seldom=not snapshot and checkpointing.mode != "passive",
            stays=checkpointing.mode != "truncate",
        )


def _autocheckpoint_frames(case: Case) -> int:
    # If automatic checkpoints are off (0), use SQLite's default number.
    return case.settings.wal_autocheckpoint or AUTOCHECKPOINT


def _large_wal_bytes(case: Case, trial: Trial) -> int:
    answer = trial.effective.get("page_size", "")
    page_size = int(answer) if answer.isdecimal() and len(answer) < 9 else PAGE_SIZE
    return LARGE_FACTOR * _autocheckpoint_frames(case) * page_size


MIN_LISTED_SHARE = 0.05
"""Minimum share of the slowest operations' time, from 0 to 1, for the report to list a cause."""
LARGE_SHARE = 0.2
"""Minimum share of the operations' time, from 0 to 1, for the report to name a remedy for a cause."""
MAJORITY = 0.6
_OWN_LABELS = {
    results.FREE: "asleep while the lock was free",
    results.CHECKPOINT: "in their own checkpoints",
    results.SYNC: "in their own syncs",
    results.OWN: "in their other work, including waits for a processor",
}
_HOLDER_LABELS = {
    results.COMMIT: "commits",
    results.SYNC: "syncs",
    results.CHECKPOINT: "checkpoints",
    results.READ: "reads",
}


def time_accounts(run: Run) -> list[results.Where]:
    """Return the accounts of time that --where recorded, one per valid trial."""
    return [trial.where for trial in run.valid if trial.where and trial.where.time_ns > 0]


def shares(run: Run) -> Mapping[str, float]:
    """Return the share of time, 0 to 1, of each activity that --where recorded in all trials."""
    accounts = time_accounts(run)
    total = sum(account.time_ns for account in accounts)
    parts: Counter[str] = Counter()
    for account in accounts:
        parts.update(account.parts)
    common_parts = (
        part for part in results.TIME_PARTS if accounts and all(part in account.parts for account in accounts)
    )
    return {part: parts[part] / total for part in common_parts}


def process_name(case: Case, process: int) -> str:
    """Return the name of a process, such as "process 3" or "checkpointer"."""
    companions = companion_names(case)
    beyond = process - case.concurrency
    return companions[beyond - 1] if 0 < beyond <= len(companions) else f"process {process}"


def processor_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on waits for a processor, if they take the largest share of time in a case."""
    crowds = [(shares(run)[results.PROCESSOR], run.case) for run in group.runs if _is_crowded(run)]
    if crowds and not group.met_quota:
        share, case = max(crowds, key=lambda crowd: crowd[0])
        yield Finding(sentences.processor_wait, share=share, where=place(case))


def _is_crowded(run: Run) -> bool:
    """Return whether the processes mostly wait for a processor, because there are too many processes.

    Return False if other programs were busy, because these may be the cause. Return False with --rate,
    because the load does not depend on the number of processes.
    """
    if run.case.concurrency == 1 or run.case.rate or disturbed(run):
        return False
    accounts = time_accounts(run)
    return bool(accounts) and all(
        account.parts.get(results.PROCESSOR, 0)
        > max((ns for part, ns in account.parts.items() if part != results.PROCESSOR), default=0)
        for account in accounts
    )


def slowest_operation_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on the causes of the slowest operations, for the case in which they took longest."""
    if group.met_quota:
        return

    def mean_ns(slow: Sequence[results.Slowest]) -> float:
        return sum(account.total_ns for account in slow) / sum(account.operations for account in slow)

    if slow_by_run := [(run, slow) for run in group.runs if (slow := _slowest_operations(run))]:
        yield _slowest_operations_finding(group, *max(slow_by_run, key=lambda entry: mean_ns(entry[1])))


def _slowest_operations(run: Run) -> list[results.Slowest]:
    slowest = (account.slowest for account in time_accounts(run))
    return [account for account in slowest if account and account.total_ns]


def _slowest_operations_finding(group: Group, run: Run, slow: Sequence[results.Slowest]) -> Finding:
    total = sum(account.total_ns for account in slow)
    parts, waits = Counter[str](), Counter[str]()
    for account in slow:
        parts.update(account.parts)
        waits.update(account.behind)
    times = {
        f"waiting for {_HOLDER_LABELS[activity]} of {_holder_label(run, slow, activity)}": ns
        for activity, ns in waits.items()
        if activity in _HOLDER_LABELS
    }
    times |= {name: parts[part] for part, name in _OWN_LABELS.items()}
    return Finding(
        sentences.slowest_operations,
        where=place(run.case),
        count=sum(account.operations for account in slow),
        fastest_ns=min(account.fastest_ns for account in slow),
        parts={
            name: ns / total
            for name, ns in sorted(times.items(), key=lambda time: time[1], reverse=True)
            if ns >= MIN_LISTED_SHARE * total
        },
        remedies=tuple(_remedies(group, run.case, slow)),
    )


def _holder_label(run: Run, slow: Sequence[results.Slowest], activity: str) -> str:
    """Return the name of the process that held the lock longest for `activity`, such as commits.

    Return "others" if no process held the lock for at least MAJORITY of the time of `activity`.
    """
    held: Counter[int] = Counter()
    for account in slow:
        held.update({holder.process: holder.ns for holder in account.held_by if holder.what == activity})
    if not held:
        return "others"
    process, ns = held.most_common(1)[0]
    is_worker = process <= run.case.concurrency
    # Each pass (in `slow`) has new workers, so a worker's number has no meaning over several passes.
    if ns < MAJORITY * held.total() or (is_worker and len(slow) > 1):
        return "others"
    return f"{'' if is_worker else 'the '}{process_name(run.case, process)}"


def _remedies(group: Group, case: Case, slow: Sequence[results.Slowest]) -> Iterator[str]:

    def much(part: str, *, behind: bool = False) -> bool:
        return all(
            account.parts.get(part, 0) + behind * account.behind.get(part, 0)
            >= LARGE_SHARE * account.total_ns
            for account in slow
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
