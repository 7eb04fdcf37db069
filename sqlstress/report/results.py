"""Results of a measurement: latencies, checks, lock holders, workers, trials and runs."""

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

# Latencies of many operations: percentiles, and the histogram that they come from.


MIN_P90_SAMPLES = 10
"""Minimum number of samples for the 90th percentile to be shown."""
MIN_P99_SAMPLES = 100
"""Minimum number of samples for the 99th percentile to be shown."""
MIN_P999_SAMPLES = 10_000
"""Minimum number of samples for the 99.9th percentile to be computed."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of one kind of operation, in nanoseconds.

    In a closed loop: from the begin of an operation to its end, without the time before it began.
    """

    count: int
    """Completed operations."""
    p50_ns: float | None
    """Median latency, in ns; this and the next two percentiles are None if there are no operations."""
    p90_ns: float | None
    """90th percentile, in ns."""
    p99_ns: float | None
    """99th percentile, in ns."""
    p999_ns: float | None
    """99.9th percentile, in ns; None for fewer than 10,000 operations."""
    max_ns: int
    """Latency of the slowest operation, in ns."""
    buckets: tuple[tuple[int, int], ...] = ()
    """Sparse histogram, as (index, count): the index is the upper 16 bits of the latency as a float32."""

    def __post_init__(self) -> None:
        if self.buckets:
            # Only the smallest and the largest index are checked, because there are many.
            indices, counts = zip(*self.buckets, strict=True)
            sound = histogram.is_bucket(min(indices)) and histogram.is_bucket(max(indices))
            if min(counts) < 0 or not sound:
                raise ValueError("it has wrong histogram buckets")

    @classmethod
    def from_buckets(cls, buckets: Mapping[int, int], max_ns: int) -> Latency:
        """Return the summary of a histogram of `histogram.Recorder`; `max_ns` is its slowest latency."""
        count = sum(buckets.values())

        def percentile(share: float) -> float | None:
            # The middle of the last bucket can exceed the slowest latency.
            middle = histogram.percentile(buckets, share)
            return None if middle is None else min(middle, float(max_ns))

        p50, p90, p99 = (percentile(share) for share in (0.5, 0.9, 0.99))
        p999 = percentile(0.999) if count >= MIN_P999_SAMPLES else None
        return cls(count, p50, p90, p99, p999, max_ns, tuple(sorted(buckets.items())))

    def without_single_events(self) -> Latency:
        """Return a copy without the 90th or 99th percentile if there are too few operations for it."""
        return replace(
            self,
            p90_ns=None if self.count < MIN_P90_SAMPLES else self.p90_ns,
            p99_ns=None if self.count < MIN_P99_SAMPLES else self.p99_ns,
        )


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed operations of one kind with one error."""

    kind: str
    """Name of the transaction; empty for operations of all kinds together."""
    error: str
    """Name of the error: SQLITE_BUSY; empty if unknown."""
    latency: Latency
    """Times from the begin of an operation to its failure."""


def merged(found: Sequence[Latency]) -> Latency | None:
    """Return the latencies of all operations together; None if `found` is empty.

    If any of them has no histogram, they cannot be merged, and the first is returned.
    """
    if len(found) < 2 or not all(latency.buckets for latency in found):
        return next(iter(found), None)
    buckets = histogram.merge([dict(latency.buckets) for latency in found])
    return Latency.from_buckets(buckets, max(latency.max_ns for latency in found))


@dataclass(frozen=True, slots=True)
class Arrived:
    """Operations that were due inside the window of an open loop, and their latencies."""

    due: int
    """Number of operations due inside the window."""
    skipped: int
    """Number of due operations that were never begun, because they exceeded the latency limit."""
    queued: int
    """Number of due operations that were waiting or running when the window closed."""
    latency: dict[str, Latency] = field(default_factory=dict)
    """Latencies from the due time to the end, by kind of operation. The key "queued" has the operations that
    were waiting or running when the window closed, with their time until then. Failed and skipped operations
    are left out."""
    lateness: Latency | None = None
    """Delays of the begin of operations that sqlstress itself caused; None if no operation was begun."""
    polled_share: float = 0.0
    """Share of the window in which an average process polled the clock until an operation was due, 0 to 1."""

    def __post_init__(self) -> None:
        if len(self.latency) > MAX_KINDS + 1:
            raise ValueError(f"it has more than {MAX_KINDS + 1} kinds of operations")

    @property
    def all_kinds(self) -> Latency | None:
        """Latencies of all kinds together, queued operations included; None if there are none."""
        return merged([latency for latency in self.latency.values() if latency.count])


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check of the data."""

    name: str
    """Name of the check, such as "last write"."""
    status: str
    """Result: ok, failed, unknown or skipped."""
    checked: int = 0
    """Number of checked items: keys, files, pairs or counters."""
    problems: int = 0
    """Number of wrong items."""
    counterexamples: tuple[str, ...] = ()
    """Descriptions of the first wrong items."""
    note: str = ""
    """Limit of the check, such as the share of keys it covered; empty if there is none."""


STORE_CHECKS = ("quick_check", "integrity_check", "lmdb.verify")
"""Names of the checks that a database library runs on its own data: two of SQLite, one of LMDB."""
CHECK_STATUSES = ("failed", "unknown", "ok", "skipped")
"""Results of a check, the worst first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Results of the checks of the data against the acknowledged writes, and their duration."""

    checks: tuple[Check, ...] = ()
    """Results of the checks."""
    seconds: float = 0.0
    """Duration of the checks after the window, in seconds."""

    @property
    def status(self) -> str:
        """Worst result of the checks: failed, unknown, ok, or skipped if nothing was checked."""
        statuses = {check.status for check in self.checks}
        return next((status for status in CHECK_STATUSES if status in statuses), "skipped")

    @property
    def is_sound(self) -> bool:
        """Whether the database library checked its own data and found nothing wrong each time."""
        statuses = [check.status for check in self.checks if check.name in STORE_CHECKS]
        return bool(statuses) and set(statuses) == {"ok"}

    @property
    def counterexamples(self) -> tuple[str, ...]:
        """Counterexamples of all checks."""
        return tuple(text for check in self.checks for text in check.counterexamples)


MOST = 200
"""Maximum number of `Sighting`s of a trial."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Observation of the workers of a trial, such as a kind of connection or of exception."""

    topic: str
    """Topic, such as "connection" or "exception"."""
    what: str
    """Kind within the topic, such as SQLite's name of an exception."""
    count: int
    """Number of times that it was observed, by all workers together."""
    example: str = ""
    """Text of the first occurrence; empty if there is no text."""
    traits: dict[str, str] = field(default_factory=dict)
    """Further properties that distinguish it from others of its topic, by name."""


MAX_COUNTEREXAMPLES = 5
"""Maximum number of counterexamples of a check."""


def added(one: Check, other: Check) -> Check:
    """Return the sum of two checks with the same name, with the worse result."""
    statuses = {one.status, other.status}
    return Check(
        one.name,
        next(status for status in CHECK_STATUSES if status in statuses),
        one.checked + other.checked,
        one.problems + other.problems,
        (*one.counterexamples, *other.counterexamples)[:MAX_COUNTEREXAMPLES],
        one.note or other.note,
    )


class CheckCounter:
    """Counter of the problems of one check, which keeps the first counterexamples."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checked = 0
        self.problems = 0
        self.counterexamples: list[str] = []

    def problem(self, text: str) -> None:
        """Count a problem, and keep its text if it is one of the first."""
        self.problems += 1
        if len(self.counterexamples) < MAX_COUNTEREXAMPLES:
            self.counterexamples.append(text)

    def check(self, note: str = "") -> Check:
        """Return the check: failed if there was a problem, skipped if nothing was checked, else ok."""
        status = "failed" if self.problems else "ok" if self.checked else "skipped"
        return Check(self.name, status, self.checked, self.problems, tuple(self.counterexamples), note)


# The parts of the operations' time, and the holders of the locks for which the slowest operations waited.


HELD, FREE, CHECKPOINT, SYNC, WRITE, PROCESSOR, SQLITE, BINDING, HARNESS = TIME_PARTS = (
    *("held", "free", "checkpoint", "sync", "write", "processor", "sqlite", "binding", "harness"),
)
"""Parts of the time.

held: waits for a lock that another process held. free: waits for a lock that was free, because the waiting
process slept. checkpoint: checkpoints of the process itself. sync and write: outside of checkpoints.
processor: waits for a processor. sqlite: SQLite's own work, including reads. binding: the driver's binding.
harness: drawing keys, counting and checking."""
COMMIT, READ, OWN = "commit", "read", "own"
"""COMMIT and READ: purposes of a held lock, in addition to `sync` and `checkpoint`. OWN: work of an operation
that is none of the other parts."""


@dataclass(frozen=True, slots=True)
class Held:
    """Time for which the slowest operations waited for one process and one of its activities."""

    process: int
    """Number of the process that held the lock: a worker, or, above the concurrency, another process."""
    what: str
    """Activity of that process: commit, sync, checkpoint or read."""
    ns: int
    """Time that the operations waited for it, in ns, added up."""


@dataclass(frozen=True, slots=True)
class Slowest:
    """The slowest 1% of the operations that took a write lock or waited for a read lock."""

    operations: int
    """Number of slowest operations."""
    of: int
    """Number of operations from which the slowest 1% were taken."""
    fastest_ns: int
    """Latency of the fastest of these, in ns."""
    total_ns: int
    """Sum of their latencies, in ns."""
    parts: dict[str, int] = field(default_factory=dict)
    """Time by cause, in ns: held, free, checkpoint, sync, and own for the rest."""
    behind: dict[str, int] = field(default_factory=dict)
    """Time by activity of the processes that held the awaited locks, in ns: commit, sync, checkpoint,
    read."""
    held_by: tuple[Held, ...] = ()
    """Processes that held the awaited locks, the longest wait first, at most eight."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The slowest operation, and the activities of the processes during it."""

    process: int
    """Number of the worker that ran the operation."""
    at_ns: int
    """Begin of the operation, in ns after the window opened; negative if it began earlier."""
    length_ns: int
    """Latency of the operation, in ns."""
    spans: tuple[tuple[int, str, int, int], ...] = ()
    """Activities, as (process, wait, commit, sync, checkpoint or read, begin, end), in ns after the begin of
    the operation. Activities that are close to each other are merged."""


@dataclass(frozen=True, slots=True)
class Where:
    """Parts of the time of all workers together, within the window."""

    time_ns: int
    """Recorded window time in ns, added over the workers that did not fail."""
    parts: dict[str, int] = field(default_factory=dict)
    """Time by part, in ns: held, free, checkpoint, sync, write, processor, sqlite, binding and harness.

    The binding is the rest. If the system does not report waits for a processor, that part is missing, and
    its time is in the other parts."""
    told: float = 1.0
    """Share of the window, up to its end, for which the holders of locks are known, 0 to 1. The parts held
    and free are computed from it."""
    pending_ns: int = 0
    """Longest wait for a lock that had not ended when the window closed, in ns; 0 if there is none."""
    slowest: Slowest | None = None
    """The slowest operations; None if too few operations took or awaited a lock."""
    moment: Moment | None = None
    """The slowest operation; None if no operation took or awaited a lock."""


# Holds of a lock, as seen by samples from another process.


@dataclass(frozen=True, slots=True)
class Holds:
    """Times for which a lock was held, as seen in samples."""

    samples: int = 0
    """Number of samples in which the lock was held."""
    times: int = 0
    """Number of holds that were seen. Holds that fall between two samples are missed, or counted as one."""
    longest_s: float = 0.0
    """Longest hold, from its first to its last sample, in seconds."""
    most_s: float = 0.0
    """Upper bound of the longest hold, in seconds: from the sample before it to the sample after it."""
    longest_at_s: float = 0.0
    """Begin of the longest hold, in seconds after sampling began; 0 means it may have begun earlier."""
    now_s: float = 0.0
    """Age of the hold at the last sample, in seconds; 0 if the lock was not held."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Program whose processes were seen holding the write lock."""

    program: str
    """Command line without folders. Words that differ between the processes have N for numbers."""
    processes: int
    """Number of its processes that were seen with the lock."""
    held: Holds
    """Holds of these processes together."""


@dataclass(frozen=True, slots=True)
class WriteLock:
    """Holders of the write lock of a trial's database within the window.

    No other process can write during a hold.
    """

    rate: int
    """Requested number of samples per second."""
    samples: int = 0
    """Number of samples."""
    longest_gap_s: float = 0.0
    """Longest time between two samples, in seconds."""
    held: Holds = Holds()
    """Holds by any process: a hold lasts until the lock is seen free."""
    holders: tuple[Holder, ...] = ()
    """Programs that held the lock, the most frequent first."""
    error: str = ""
    """Reason why sampling ended early; empty if it was complete."""


@dataclass(frozen=True, slots=True)
class WalUse:
    """Use of the WAL of a trial's first database file, as seen by ten samples per second."""

    page_size: int
    """Size of the page in a frame, in bytes."""
    largest_bytes: int
    """Largest size of the file, in bytes."""
    end_bytes: int
    """Size of the file at the last sample, in bytes."""
    most_frames: int
    """Largest number of frames in use."""
    most_checkpointed: int
    """Number of these frames that were in the database file."""
    frames: int
    """Number of frames in use at the last sample."""
    checkpointed: int
    """Number of these frames that were in the database file."""


# Results of single processes, of a trial, and of all trials of a case.


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """Result of one process inside the window."""

    worker: int
    """Number of the worker, from 1 to the concurrency."""
    transactions: int
    """Completed transactions. A commit counts as one whatever its batch; a get counts as one."""
    rows: int
    """Rows that these transactions read or wrote."""
    seconds: float
    """Time in which the transactions were counted, in seconds."""
    operations: dict[str, int] = field(default_factory=dict)
    """Completed transactions by kind: get, pair, replace, update."""
    busy: int = 0
    """Number of SQLITE_BUSY results that the driver returned to the worker."""
    busy_snapshot: int = 0
    """Number of SQLITE_BUSY_SNAPSHOT results. The worker restarts the transaction after each."""
    failed: int = 0
    """Operations that failed after the busy timeout."""
    longest_wait_ns: int = 0
    """Latency of the slowest operation that overlaps the window, in ns. An operation that is pending at the
    end of the window is included."""
    p99_ns: dict[str, float] = field(default_factory=dict)
    """99th percentile of the latencies by kind, in ns; the maximum if there are fewer than 100 operations."""
    bins: tuple[int, ...] = ()
    """Number of transactions in each tenth of a second."""
    harness_share: float = 0.0
    """Share of the window spent on drawing keys, counting and checking, 0 to 1."""
    proof_share: float = 0.0
    """Share of the window spent on acknowledgements and on checking rows that were read, 0 to 1."""
    peak_memory_bytes: int | None = None
    """Peak resident memory of the process, in bytes: in this trial on Linux, since its start on macOS; None
    on Windows."""
    error: str | None = None
    """Reason why the process failed or died; None if it succeeded."""

    @property
    def tps(self) -> float:
        """Transactions per second.

        Shares are compared by it, because with --ops all workers do the same number.
        """
        return self.transactions / self.seconds if self.transactions else 0.0


@dataclass(frozen=True, slots=True)
class Throttling:
    """Effect of a container's CPU quota on a trial."""

    cores: float
    """Cores that the quota allows."""
    periods: int
    """Periods of the quota in which a process of the container wanted to run."""
    throttled: int
    """Periods in which the quota was used up and the processes were stopped."""
    stopped_s: float
    """Time for which they were stopped, in seconds, added over all processors."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One timed execution of a Case by its workers."""

    index: int
    """Number of the trial in its case, from 0."""
    seconds: float
    """Length of the window, in seconds. For a fixed amount of work: from the first begin to the last end."""
    transactions: int
    """Completed transactions, all processes together."""
    rows: int
    """Rows that these transactions read or wrote."""
    tps: float
    """Completed transactions per second, all processes together."""
    rows_per_s: float
    """Rows read or written per second, all processes together."""
    fairness: float | None
    """Jain's index of the workers' shares, from 1/n to 1; None if unknown."""
    min_max_share: float | None
    """Smallest share of a worker divided by the largest, 0 to 1; None if unknown."""
    longest_wait_ns: int | None
    """Latency of the slowest operation, in ns. An operation that is pending at the end of the window is
    included. None if not observed."""
    busy: int | None
    """Number of SQLITE_BUSY results that the driver returned to the workers; None if not counted."""
    busy_snapshot: int | None
    """Number of SQLITE_BUSY_SNAPSHOT results. A worker restarts the transaction after each. None if not
    counted."""
    failed: int | None
    """Operations that failed after the busy timeout; None if not counted."""
    latency: dict[str, Latency] = field(default_factory=dict)
    """Latencies by kind of operation, all workers together."""
    failures: tuple[Failures, ...] = ()
    """Failed operations by kind and error, the most frequent first; empty if their times are unknown."""
    workers: tuple[WorkerResult, ...] = ()
    """Result of each process, including processes that died."""
    effective: dict[str, str] = field(default_factory=dict)
    """Settings as SQLite reported them after the first write, by name."""
    durability: str = ""
    """Durability of a commit under these settings, as the target describes it; empty if unknown."""
    modules: dict[str, str] = field(default_factory=dict)
    """Path of each module that the user's file imported, by name; empty if not recorded. The standard library
    and the modules within a listed package are left out."""
    verdict: Verdict = field(default_factory=Verdict)
    """Results of the checks of the data."""
    half_ratio: float | None = None
    """Median of transactions per tenth of a second in the second half of the window, divided by that of the
    first half; None if the window is too short."""
    start_s: float | None = None
    """Seconds from the request to connect until the last process was connected; None if not observed. With
    the published script: from the start of the first process."""
    attempts: int = 1
    """Number of starts. A trial is restarted if a worker was late, the machine slept, or other programs used
    the processors or the disk."""
    foreign_share: float | None = None
    """Share of the time of all processors that other programs used during the trial, 0 to 1; None if not
    observed."""
    stolen_share: float | None = None
    """Share of the time of all processors that the hypervisor gave to other guests, 0 to 1; 0 if the system
    does not report it, None if not observed."""
    disk_share: float | None = None
    """Share of time in which other programs kept the disk of the database busy while the processes started, 0
    to 1; None if not observed."""
    throttled: int | None = None
    """Number of times that a processor was slowed down because of heat during the trial; None if the system
    does not report it."""
    quota: Throttling | None = None
    """Effect of the container's CPU quota; None if there is no quota, or its counters cannot be read."""
    outcome: str = "done"
    """End of a fixed amount of work: done, timeout (given up), or limit (refused by SQLite)."""
    note: str = ""
    """Explanation in a line if `outcome` is not "done"."""
    series: tuple[Series, ...] = ()
    """Values observed over time."""
    sightings: tuple[Sighting, ...] = ()
    """Observations of the workers, such as connections and exceptions, each kind once."""
    space: Space | None = None
    """Space of the database after the trial; None if not measured."""
    arrived: Arrived | None = None
    """Operations that were due at a rate; None in a closed loop."""
    bare_call_ns: float | None = None
    """Time of the cheapest call through the driver, which reads no data, in ns; None if not measured. With a
    server it includes the round trip."""
    where: Where | None = None
    """Time of the workers by part, such as waits for locks and syncs; None if not requested."""
    write_lock: WriteLock | None = None
    """Holders of the write lock, as seen by samples; None if not requested."""
    wal: WalUse | None = None
    """Use of the WAL; None if there is no WAL, or it was not observed."""
    error: str | None = None
    """Reason why the trial is not valid; None if it is valid."""

    def __post_init__(self) -> None:
        if len(self.latency) > MAX_KINDS:
            raise ValueError(f"it has more than {MAX_KINDS} kinds of operations")

    @property
    def stopped_share(self) -> float:
        """Share of the periods of the CPU quota in which it stopped the processes; 0 if there is no quota."""
        if self.quota is None or self.quota.throttled <= 0:
            return 0.0
        return min(1.0, self.quota.throttled / max(1, self.quota.periods))

    @property
    def tps_per_process(self) -> float:
        """Completed transactions per second of an average process."""
        return self.tps / len(self.workers) if self.workers else 0.0


LEFT_OUT = "The data of another case was wrong."
"""Reason of `Run.skipped` for the cases after a case with wrong data."""


@dataclass(frozen=True, slots=True)
class Run:
    """A case and its trials."""

    case: Case
    """The measured case."""
    trials: tuple[Trial, ...] = ()
    """Trials of the case, in order."""
    warnings: tuple[Warning, ...] = ()
    """Warnings about the figures of this run."""
    harness_ns: float | None = None
    """Cost of the harness for one transaction of this case, in ns; None if not measured."""
    error: str | None = None
    """Reason why the case was not measured, or only partly; None if it was measured."""
    skipped: str | None = None
    """Reason why sqlstress skipped the case; None if the case was not skipped."""
    arm: str | None = None
    """Arm of an A/B test, or stage of a search, to which the run belongs. Trials with the same index are near
    each other in time. None if there are no arms or stages."""
    longer: Trial | None = None
    """Additional trial with a longer window, which shows waits that exceed the other windows; None if there
    is none."""

    @property
    def valid(self) -> tuple[Trial, ...]:
        """Trials without an error, whose figures count."""
        return tuple(trial for trial in self.trials if trial.error is None)

    @property
    def verdict(self) -> Verdict:
        """Results of the checks of all trials, including the longer one."""
        verdicts = [trial.verdict for trial in (*self.trials, self.longer) if trial]
        return Verdict(
            tuple(check for verdict in verdicts for check in verdict.checks),
            sum(verdict.seconds for verdict in verdicts),
        )

    @property
    def met_quota(self) -> bool:
        """Whether a CPU quota stopped the processes in any trial."""
        return any(trial.stopped_share for trial in (*self.trials, self.longer) if trial)

    def typical(self) -> Trial | None:
        """Return the valid trial with the (lower) median TPS, else the first trial, else None."""
        ranked = sorted(self.valid, key=lambda trial: trial.tps)
        return ranked[(len(ranked) - 1) // 2] if ranked else next(iter(self.trials), None)

    def valid_median_trial(self) -> Trial | None:
        """Return the valid trial with the (lower) median TPS, which represents the run, or None."""
        trial = self.typical()
        return trial if trial is not None and trial.error is None else None

    def by_pass(self, figure: Callable[[Trial], float]) -> dict[int, float]:
        """Return a figure of each valid trial by its pass, if it is positive and finite."""
        figures = {trial.index: figure(trial) for trial in self.valid}
        return {index: value for index, value in figures.items() if 0 < value < math.inf}

    def rates(self) -> dict[int, float]:
        """Return the TPS of each pass, by the number of the pass."""
        return self.by_pass(lambda trial: trial.tps)

    @property
    def ended(self) -> list[Trial]:
        """Valid trials that were completed. A fixed amount of work can end early: see `Trial.outcome`."""
        return [trial for trial in self.valid if trial.outcome == "done"]

    def failed_share(self) -> float:
        """Return the share of operations that failed, 0 to 1, in the completed trials."""
        failed = sum(trial.failed or 0 for trial in self.ended)
        return failed / (failed + sum(trial.transactions for trial in self.ended)) if failed else 0.0

    @property
    def failed_too_many(self) -> bool:
        """Whether more operations failed than the case allows."""
        return self.failed_share() > self.case.max_failed

    def latency(self, kind: str) -> Latency | None:
        """Return the latencies of a kind of operation in all valid trials; None if there are none."""
        return merged(
            [latency for trial in self.valid if (latency := trial.latency.get(kind)) and latency.count]
        )

    def median_tps(self) -> float | None:
        """Return the median TPS of the valid trials; None if no trial is valid."""
        return median(trial.tps for trial in self.valid) if self.valid else None
