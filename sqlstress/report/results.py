"""Results of a measurement: latencies, checks, lock holders, workers, trials and runs.

A trial is one timed execution of a case by worker processes. Operations are counted in a part of this time,
the window. A run is all trials of a case. A pass is one trial of each case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from sqlstress.report.case import Case
from sqlstress.report.environment import Warning
from sqlstress.report.file_space import Space
from sqlstress.statistics import histogram
from sqlstress.statistics.histogram import MAX_KINDS
from sqlstress.statistics.series import Series

MIN_P90_SAMPLES = 10
"""Minimum number of operations to show their 90th percentile."""
MIN_P99_SAMPLES = 100
"""Minimum number of operations to show their 99th percentile."""
MIN_P999_SAMPLES = 10_000
"""Minimum number of operations to compute their 99.9th percentile."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Distribution of latencies (times from begin to end of operations), or of other times."""

    count: int
    """Number of completed operations."""
    p50_ns: float | None
    """Median latency, in ns; None without operations."""
    p90_ns: float | None
    """90th percentile of the latencies, in ns; None without operations."""
    p99_ns: float | None
    """99th percentile of the latencies, in ns; None without operations."""
    p999_ns: float | None
    """99.9th percentile of the latencies, in ns; None for fewer than 10,000 operations."""
    max_ns: int
    """Latency of the slowest operation, in ns."""
    buckets: tuple[tuple[int, int], ...] = ()
    """Histogram: (index, count) of each bucket that has operations. The index is the upper 16 bits of the
    latency in ns as a 32-bit float."""

    def __post_init__(self) -> None:
        if self.buckets:
            # All other indices lie between these two. So they need no check, which would take time.
            indices, counts = zip(*self.buckets, strict=True)
            sound = histogram.is_bin(min(indices)) and histogram.is_bin(max(indices))
            if min(counts) < 0 or not sound:
                raise ValueError("it has wrong histogram buckets")

    @classmethod
    def from_buckets(cls, buckets: Mapping[int, int], max_ns: int) -> Latency:
        """Return the latencies with this histogram. `max_ns` is the largest latency, in ns."""
        count = sum(buckets.values())

        def percentile(share: float) -> float | None:
            # The middle of the last bucket can exceed `max_ns`.
            middle = histogram.percentile(buckets, share)
            return None if middle is None else min(middle, float(max_ns))

        p50, p90, p99 = (percentile(share) for share in (0.5, 0.9, 0.99))
        p999 = percentile(0.999) if count >= MIN_P999_SAMPLES else None
        return cls(count, p50, p90, p99, p999, max_ns, tuple(sorted(buckets.items())))

    def without_single_events(self) -> Latency:
        """Return a copy without those percentiles that a single slow operation could determine."""
        return replace(
            self,
            p90_ns=None if self.count < MIN_P90_SAMPLES else self.p90_ns,
            p99_ns=None if self.count < MIN_P99_SAMPLES else self.p99_ns,
        )


@dataclass(frozen=True, slots=True)
class Failures:
    """Operations of one kind that failed with the same error."""

    kind: str
    """Kind of operation, such as the name of a transaction; empty if all kinds are counted together."""
    error: str
    """Name of the error, such as SQLITE_BUSY; empty if unknown."""
    latency: Latency
    """Times from the begin of an operation to its failure."""


def merged(found: Sequence[Latency]) -> Latency | None:
    """Return a single distribution of the latencies in all items of `found`; None if `found` is empty.

    If any item has no histogram, the first item is returned instead.
    """
    if len(found) < 2 or not all(latency.buckets for latency in found):
        return next(iter(found), None)
    buckets = histogram.merge([dict(latency.buckets) for latency in found])
    return Latency.from_buckets(buckets, max(latency.max_ns for latency in found))


@dataclass(frozen=True, slots=True)
class Arrived:
    """Operations that were due inside the window of an open loop."""

    due: int
    """Number of operations that were due inside the window."""
    skipped: int
    """Number of due operations that were not started, because they were later than --latency-limit allows."""
    queued: int
    """Number of due operations that were waiting or running when the window closed."""
    latency: dict[str, Latency] = field(default_factory=dict)
    """Latencies from the due time to the end, by kind of operation, without failed and skipped operations.
    The key "queued" is for operations that were waiting or running when the window closed. For these, the
    times are from the due time to the end of the window."""
    lateness: Latency | None = None
    """Delays of starts that sqlstress itself caused, not the database; None if no operation was started."""
    polled_share: float = 0.0
    """Share of the window in which an average process waited for due times in a busy loop, 0 to 1."""

    def __post_init__(self) -> None:
        if len(self.latency) > MAX_KINDS + 1:
            raise ValueError(f"it has more than {MAX_KINDS + 1} kinds of operations")

    @property
    def all_kinds(self) -> Latency | None:
        """Latencies of all kinds together, including queued operations; None without operations."""
        return merged([latency for latency in self.latency.values() if latency.count])


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check of the data."""

    name: str
    """Name of the check, such as "last write"."""
    status: str
    """Result of the check: ok, failed, unknown or skipped."""
    checked: int = 0
    """Number of checked items: keys, files, pairs or counters."""
    problems: int = 0
    """Number of wrong items, including missing items."""
    counterexamples: tuple[str, ...] = ()
    """Descriptions of the first wrong items."""
    note: str = ""
    """Limit of the check, such as the share of the keys that were checked; empty for a complete check."""


STORE_CHECKS = ("quick_check", "integrity_check", "lmdb.verify")
"""Names of checks that a database library runs on its own data: two of SQLite, one of LMDB."""
CHECK_STATUSES = ("failed", "unknown", "ok", "skipped")
"""Results of a check, the worst first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Results of all checks of the data, such as a comparison with the acknowledged writes."""

    checks: tuple[Check, ...] = ()
    """Result of each check."""
    seconds: float = 0.0
    """Duration of all checks after the window, in seconds."""

    @property
    def status(self) -> str:
        """Worst result of the checks: failed, unknown, ok or skipped; skipped without checks."""
        statuses = {check.status for check in self.checks}
        return next((status for status in CHECK_STATUSES if status in statuses), "skipped")

    @property
    def is_sound(self) -> bool:
        """Whether the database library checked its own data structures, and found no fault."""
        statuses = [check.status for check in self.checks if check.name in STORE_CHECKS]
        return bool(statuses) and set(statuses) == {"ok"}

    @property
    def counterexamples(self) -> tuple[str, ...]:
        """Descriptions of wrong items, from all checks."""
        return tuple(text for check in self.checks for text in check.counterexamples)


MOST = 200
"""Maximum number of observations (`Sighting`) in a trial."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Observation that workers made during a trial, such as a kind of exception."""

    topic: str
    """Topic of the observation, such as "connection" or "exception"."""
    what: str
    """Kind of observation within the topic, such as SQLite's name of an exception."""
    count: int
    """Number of times that the workers made the observation, all workers together."""
    example: str = ""
    """Text of the first of these observations, such as an exception's message; empty without a text."""
    traits: dict[str, str] = field(default_factory=dict)
    """Further properties, by name, which distinguish the observation from others of its topic."""


MAX_COUNTEREXAMPLES = 5
"""Maximum number of counter-examples that a check keeps."""


def added(one: Check, other: Check) -> Check:
    """Return two results of a check as a single result, with the sum of the numbers and the worse status."""
    return Check(
        one.name,
        Verdict((one, other)).status,
        one.checked + other.checked,
        one.problems + other.problems,
        (*one.counterexamples, *other.counterexamples)[:MAX_COUNTEREXAMPLES],
        one.note or other.note,
    )


class CheckCounter:
    """Counter of a check's items, which keeps descriptions of the first wrong items."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checked = 0
        self.problems = 0
        self.counterexamples: list[str] = []

    def problem(self, text: str) -> None:
        """Count a wrong item. `text` describes it; the first MAX_COUNTEREXAMPLES descriptions are kept."""
        self.problems += 1
        if len(self.counterexamples) < MAX_COUNTEREXAMPLES:
            self.counterexamples.append(text)

    def check(self, note: str = "") -> Check:
        """Return the result: failed if any item was wrong, skipped if no item was checked, else ok."""
        status = "failed" if self.problems else "ok" if self.checked else "skipped"
        return Check(self.name, status, self.checked, self.problems, tuple(self.counterexamples), note)


HELD, FREE, CHECKPOINT, SYNC, WRITE, PROCESSOR, SQLITE, BINDING, HARNESS = TIME_PARTS = (
    *("held", "free", "checkpoint", "sync", "write", "processor", "sqlite", "binding", "harness"),
)
"""Parts into which the time of a worker is split.

held: waits for a lock while another process held it. free: waits for a lock that was already free, while the
worker slept between two attempts. checkpoint: checkpoints that the worker made. sync and write: syncs and
writes of files, outside of checkpoints. processor: waits for a processor. sqlite: SQLite's own work,
including reads. binding: the Python package that calls SQLite. harness: sqlstress's own code, which draws
keys, counts and checks.
"""
COMMIT, READ, OWN = "commit", "read", "own"
"""Activities of a lock's holder (COMMIT, READ); part of an operation's time without a known cause (OWN)."""


@dataclass(frozen=True, slots=True)
class Held:
    """Time that the slowest operations waited for a lock that a process held for one kind of activity."""

    process: int
    """Number of the process that held the lock: that of a worker, or a larger number for other processes."""
    what: str
    """Activity of the lock's holder: commit, sync, checkpoint or read."""
    ns: int
    """Sum of the waiting times, in ns."""


@dataclass(frozen=True, slots=True)
class Slowest:
    """Slowest 1% of the operations that took a write lock or waited for a read lock, with causes of delay."""

    operations: int
    """Number of slowest operations."""
    of: int
    """Number of all operations that took a write lock or waited for a read lock."""
    fastest_ns: int
    """Latency of the fastest of the slowest operations, in ns."""
    total_ns: int
    """Sum of the latencies of the slowest operations, in ns."""
    parts: dict[str, int] = field(default_factory=dict)
    """Parts of `total_ns` by cause: held, free, checkpoint, sync, and own (the rest).

    held: waits for a lock while another process held it. free: waits for a lock that was already free,
    because the worker slept between two attempts.
    """
    behind: dict[str, int] = field(default_factory=dict)
    """Time of waits for held locks, in ns, by the holder's activity: commit, sync, checkpoint or read."""
    held_by: tuple[Held, ...] = ()
    """Processes that held the lock, and their activities, the longest wait first; at most eight."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Slowest of the operations that took or awaited a lock, and the concurrent activities on its file."""

    process: int
    """Number of the worker that ran the operation."""
    at_ns: int
    """Begin of the operation, in ns after the window opened; negative if it began earlier."""
    length_ns: int
    """Latency of the operation, in ns."""
    spans: tuple[tuple[int, str, int, int], ...] = ()
    """Activities: (number of the process, activity, begin, end), in ns after the operation's begin. The
    activity is wait, commit, sync, checkpoint or read. Short gaps between two equal activities are closed."""


@dataclass(frozen=True, slots=True)
class Where:
    """Activities and waits that took the time of a trial's workers in the window."""

    time_ns: int
    """Sum of the workers' times inside the window, in ns, without failed workers."""
    parts: dict[str, int] = field(default_factory=dict)
    """Time by part, in ns: held, free, checkpoint, sync, write, processor, sqlite, binding and harness.

    held: waits for a lock while another process held it. free: waits for a lock that was already free,
    because the worker slept between two attempts. processor: waits for a processor. sqlite: SQLite's own
    work. harness: sqlstress itself. binding: the driver's Python package, as the rest of `time_ns`. If the
    operating system does not report waits for a processor, other parts include these waits.
    """
    told: float = 1.0
    """Share of the window for which lock holders are known, 0 to 1. If records of its first part were
    overwritten, waits in that part are split into held and free in the proportion of the known part."""
    pending_ns: int = 0
    """Longest wait for a lock that had not ended when the window closed, in ns; 0 without such a wait."""
    slowest: Slowest | None = None
    """Slowest 1% of the operations that took or awaited a lock; None for too few operations."""
    moment: Moment | None = None
    """Slowest operation that took or awaited a lock; None without such an operation."""


@dataclass(frozen=True, slots=True)
class Holds:
    """Statistics of holds: times for which a lock was held without a break, estimated from samples."""

    samples: int = 0
    """Number of samples in which the lock was held."""
    times: int = 0
    """Number of observed holds. A hold between two samples is missed. Two holds count as one if no sample
    between them found the lock free."""
    longest_s: float = 0.0
    """Duration of the longest hold, from its first to its last sample, in seconds."""
    most_s: float = 0.0
    """Upper bound of the longest hold, from the sample before it to the sample after it, in seconds."""
    longest_at_s: float = 0.0
    """Time of the longest hold's first sample, in seconds after sampling began. The hold began earlier."""
    now_s: float = 0.0
    """Time for which the lock had been held at the last sample, in seconds; 0 if it was free."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Program whose processes held the write lock in at least one sample."""

    program: str
    """Command line without folders. N stands for numbers that differ between processes."""
    processes: int
    """Number of the program's processes that held the lock in any sample."""
    held: Holds
    """Holds of all processes of the program."""


@dataclass(frozen=True, slots=True)
class WriteLock:
    """Holders of the write lock of a trial's database within the window, estimated from samples."""

    rate: int
    """Requested number of samples per second."""
    samples: int = 0
    """Number of samples that were taken."""
    longest_gap_s: float = 0.0
    """Longest time between two samples, in seconds."""
    held: Holds = Holds()
    """Holds of any process. Successive holds count as one if no sample between them found the lock free."""
    holders: tuple[Holder, ...] = ()
    """Programs that held the lock, the most frequent holder first."""
    error: str = ""
    """Reason why sampling ended early; empty if the whole window was sampled."""


@dataclass(frozen=True, slots=True)
class WalUse:
    """Use of the WAL of a trial's first database file, sampled ten times per second.

    A frame is a page in the WAL. A frame is in use if it was written since the WAL last restarted.
    """

    page_size: int
    """Size of a database page, in bytes."""
    largest_bytes: int
    """Largest size of the WAL file, in bytes."""
    end_bytes: int
    """Size of the WAL file at the last sample, in bytes."""
    most_frames: int
    """Largest number of frames in use."""
    most_checkpointed: int
    """Number of frames that checkpoints had copied to the database file when `most_frames` were in use."""
    frames: int
    """Number of frames in use at the last sample."""
    checkpointed: int
    """Number of frames that checkpoints had copied to the database file at the last sample."""


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """Result of one worker process inside the window."""

    worker: int
    """Number of the worker, from 1."""
    transactions: int
    """Number of completed transactions: single reads, and commits of any number of rows."""
    rows: int
    """Number of rows read or written by the completed transactions."""
    seconds: float
    """Length of the time in which the transactions were counted, in seconds."""
    operations: dict[str, int] = field(default_factory=dict)
    """Number of completed transactions by kind, such as get or replace."""
    busy: int = 0
    """Number of SQLITE_BUSY results that the driver returned."""
    busy_snapshot: int = 0
    """Number of SQLITE_BUSY_SNAPSHOT results. After each, the transaction is restarted."""
    failed: int = 0
    """Number of operations that failed because the database was busy."""
    longest_wait_ns: int = 0
    """Latency of the slowest operation, in ns, even if it ended after the window."""
    p99_ns: dict[str, float] = field(default_factory=dict)
    """99th percentile of latency by kind of operation, in ns; the maximum for fewer than 100 operations."""
    bins: tuple[int, ...] = ()
    """Number of completed transactions in each tenth of a second of the window."""
    harness_share: float = 0.0
    """Share of the window in which sqlstress itself drew keys, counted and checked, 0 to 1."""
    proof_share: float = 0.0
    """Share of the window in which the worker checked data, 0 to 1."""
    peak_memory_bytes: int | None = None
    """Peak resident memory in bytes (Linux: in this trial; macOS: since the start; Windows: None)."""
    error: str | None = None
    """Reason why the process failed or died; None if it succeeded."""

    @property
    def tps(self) -> float:
        """Transactions per second of the worker; 0 without transactions.

        With --ops, all workers have equal `transactions`, so fairness is computed from this rate.
        """
        return self.transactions / self.seconds if self.transactions else 0.0


@dataclass(frozen=True, slots=True)
class Throttling:
    """Effect of a container's CPU quota on a trial."""

    cores: float
    """Number of cores that the quota allows."""
    periods: int
    """Number of the quota's periods (usually 100 ms) in which a process was ready to run."""
    throttled: int
    """Number of periods in which the quota was used up and stopped the processes."""
    stopped_s: float
    """Time for which the quota stopped the processes, in seconds, summed over all processors."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One timed execution of a case by its workers."""

    index: int
    """Number of the trial, from 0. The trials of all cases with this number are one pass."""
    seconds: float
    """Length of the window, in seconds; for a fixed amount of work (--ops), the time that it took."""
    transactions: int
    """Number of completed transactions, all processes together."""
    rows: int
    """Number of rows read or written by the completed transactions."""
    tps: float
    """Completed transactions per second, all processes together."""
    rows_per_s: float
    """Rows read or written per second, all processes together."""
    fairness: float | None
    """Jain's index of the workers' rates: 1 if equal, 1/n if one of n did all work; None if unknown."""
    min_max_share: float | None
    """Smallest rate of a worker divided by the largest, 0 to 1; None if unknown."""
    longest_wait_ns: int | None
    """Latency of the slowest operation, in ns, even if it ended after the window; None if not observed."""
    busy: int | None
    """Number of SQLITE_BUSY results that the driver returned; None if not counted."""
    busy_snapshot: int | None
    """Number of SQLITE_BUSY_SNAPSHOT results, after which transactions restart; None if not counted."""
    failed: int | None
    """Number of operations that failed because the database was busy; None if not counted."""
    latency: dict[str, Latency] = field(default_factory=dict)
    """Latencies by kind of operation, all workers together."""
    failures: tuple[Failures, ...] = ()
    """Failed operations by kind and error, most frequent first; empty if their times are unknown."""
    workers: tuple[WorkerResult, ...] = ()
    """Result of each worker process, including processes that died."""
    effective: dict[str, str] = field(default_factory=dict)
    """Effective settings by name, as SQLite (or the server) reported them after the first write."""
    durability: str = ""
    """Durability of commits under the effective settings: "every commit synced"; empty if unknown."""
    modules: dict[str, str] = field(default_factory=dict)
    """Path of each module that the user's file imported, by name; empty if not recorded. Modules of the
    standard library are left out, and so are submodules of the packages in this list."""
    verdict: Verdict = field(default_factory=Verdict)
    """Results of the checks of the data."""
    half_ratio: float | None = None
    """TPS in the second half of the window divided by TPS in the first half; None for a short window."""
    start_s: float | None = None
    """Time from the request to connect until all processes were connected, in seconds; None if unknown."""
    attempts: int = 1
    """Number of times that the trial was run. A trial is repeated if workers started late, the machine slept,
    or other programs disturbed the measurement."""
    foreign_share: float | None = None
    """Share of processor time that other programs used, 0 to 1; None if not observed."""
    stolen_share: float | None = None
    """Share of processor time given to other virtual machines, 0 to 1; None if not observed. 0 if the
    operating system does not report it."""
    disk_share: float | None = None
    """Share of the start-up (`start_s`) in which other programs kept the disk busy; None if unknown."""
    throttled: int | None = None
    """Number of times that heat slowed a processor down; None if the system does not report it."""
    quota: Throttling | None = None
    """Effect of the container's CPU quota; None without a quota, or if it cannot be read."""
    outcome: str = "done"
    """Reason why the trial ended: done, timeout, or limit (a limit of SQLite was reached)."""
    note: str = ""
    """Explanation of an `outcome` other than done, on one line; empty for done."""
    series: tuple[Series, ...] = ()
    """Figures over time, such as the size of the WAL."""
    sightings: tuple[Sighting, ...] = ()
    """Observations that workers made, such as connections and exceptions; one entry for each kind."""
    space: Space | None = None
    """Space of tables and indices in the database after the trial; None if not measured."""
    arrived: Arrived | None = None
    """Operations that were due in an open loop; None in a closed loop."""
    bare_call_ns: float | None = None
    """Time of the driver's cheapest call, with the round trip to a server, in ns; None if not measured."""
    where: Where | None = None
    """Time of the workers by activity or wait, such as syncs or lock waits; None if not requested."""
    write_lock: WriteLock | None = None
    """Holders of the write lock, estimated from samples; None if not requested."""
    wal: WalUse | None = None
    """Use of the WAL; None without a WAL, or if not observed."""
    error: str | None = None
    """Reason why the figures of the trial do not count; None for a valid trial."""

    def __post_init__(self) -> None:
        if len(self.latency) > MAX_KINDS:
            raise ValueError(f"it has more than {MAX_KINDS} kinds of operations")

    @property
    def stopped_share(self) -> float:
        """Share of the CPU quota's periods in which it stopped the processes; 0 without a quota."""
        if self.quota is None or self.quota.throttled <= 0:
            return 0.0
        return min(1.0, self.quota.throttled / max(1, self.quota.periods))

    @property
    def tps_per_process(self) -> float:
        """Completed transactions per second of an average process; 0 without processes."""
        return self.tps / len(self.workers) if self.workers else 0.0


LEFT_OUT = "The data of another case was wrong."
"""Value of `Run.skipped` for a case that was skipped because another case had wrong data."""


@dataclass(frozen=True, slots=True)
class Run:
    """Results of a case: all its trials."""

    case: Case
    """Case that was measured."""
    trials: tuple[Trial, ...] = ()
    """Trials of the case, in order."""
    warnings: tuple[Warning, ...] = ()
    """Warnings about the figures of this run."""
    harness_ns: float | None = None
    """Time of sqlstress's own code per transaction, in ns; None if not measured."""
    error: str | None = None
    """Reason why the case was not measured, or only partly; None if it was measured."""
    skipped: str | None = None
    """Reason why the case was skipped; None if not skipped."""
    arm: str | None = None
    """Variant of an A/B test: A or B; None for other measurements. Trials of A and B with equal `index` are a
    pair, measured one after the other."""
    longer: Trial | None = None
    """Additional trial with a longer window, to show longer waits and rare events; None without one."""

    @property
    def valid(self) -> tuple[Trial, ...]:
        """Trials without an error. Only their figures count."""
        return tuple(trial for trial in self.trials if trial.error is None)

    @property
    def all_trials(self) -> tuple[Trial, ...]:
        """All trials, including the trial with a longer window; for counts of failures and observations."""
        return (*self.trials, *([self.longer] if self.longer else ()))

    @property
    def all_valid(self) -> tuple[Trial, ...]:
        """All trials without an error, including the trial with a longer window."""
        return tuple(trial for trial in self.all_trials if trial.error is None)

    @property
    def verdict(self) -> Verdict:
        """Results of the checks of all trials, including the trial with a longer window."""
        verdicts = [trial.verdict for trial in self.all_trials]
        return Verdict(
            tuple(check for verdict in verdicts for check in verdict.checks),
            sum(verdict.seconds for verdict in verdicts),
        )

    @property
    def met_quota(self) -> bool:
        """Whether a CPU quota stopped the worker processes in any trial."""
        return any(trial.stopped_share for trial in self.all_trials)

    def typical(self) -> Trial | None:
        """Return the valid trial with the (lower) median TPS, else the first trial; None without trials."""
        ranked = sorted(self.valid, key=lambda trial: trial.tps)
        return ranked[(len(ranked) - 1) // 2] if ranked else next(iter(self.trials), None)

    def valid_median_trial(self) -> Trial | None:
        """Return the valid trial with the (lower) median TPS; None without valid trials."""
        trial = self.typical()
        return trial if trial is not None and trial.error is None else None

    def by_pass(self, figure: Callable[[Trial], float]) -> dict[int, float]:
        """Return a figure of each valid trial, by number of the trial. Omit figures of 0 or infinity."""
        figures = {trial.index: figure(trial) for trial in self.valid}
        return {index: value for index, value in figures.items() if 0 < value < math.inf}

    def rates(self) -> dict[int, float]:
        """Return the TPS of each valid trial, by number of the trial. A TPS of 0 is left out."""
        return self.by_pass(lambda trial: trial.tps)

    @property
    def ended(self) -> list[Trial]:
        """Valid trials that did all of their work: those with the outcome "done"."""
        return [trial for trial in self.valid if trial.outcome == "done"]

    def failed_share(self) -> float:
        """Return the share of operations that failed in trials that did all their work, 0 to 1."""
        ended = [trial for trial in self.all_valid if trial.outcome == "done"]
        failed = sum(trial.failed or 0 for trial in ended)
        return failed / (failed + sum(trial.transactions for trial in ended)) if failed else 0.0

    @property
    def failed_too_many(self) -> bool:
        """Whether the share of failed operations exceeds --max-failed."""
        return self.failed_share() > self.case.max_failed

    def latency(self, kind: str) -> Latency | None:
        """Return the latencies of a kind of operation over all valid trials; None without any."""
        return merged(
            [latency for trial in self.valid if (latency := trial.latency.get(kind)) and latency.count]
        )

    def median_tps(self) -> float | None:
        """Return the median TPS of the valid trials; None without valid trials."""
        return median(trial.tps for trial in self.valid) if self.valid else None
