"""What was measured: Latency, WorkerResult, Trial, Run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from sqlstress.report.case import Case
from sqlstress.report.environment import Warning
from sqlstress.report.file_space import Space
from sqlstress.statistics import histogram
from sqlstress.statistics.histogram import MOST_KINDS
from sqlstress.statistics.series import Series

# Latencies of many operations: percentiles, and the histogram that they come from.


NO_P90_UNDER = 10
"""Minimum number of samples for the 90th percentile to be shown."""
NO_P99_UNDER = 100
"""Minimum number of samples for the 99th percentile to be shown."""
NO_P999_UNDER = 10_000
"""Fewer samples than this say nothing about the 99.9th percentile."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Service times of one kind of operation, in nanoseconds (closed loop: not corrected for waiting)."""

    count: int
    """Completed operations."""
    p50_ns: float | None
    """Median; None without operations, as the other percentiles."""
    p90_ns: float | None
    """90th percentile."""
    p99_ns: float | None
    """99th percentile."""
    p999_ns: float | None
    """99.9th percentile; None under 10,000 operations."""
    max_ns: int
    """The slowest of them."""
    buckets: tuple[tuple[int, int], ...] = ()
    """Sparse histogram: (index, count), the index being the upper 16 bits of the float32 of the latency."""

    def __post_init__(self) -> None:
        if self.buckets:
            # By the least and the largest, as they are many.
            indices, counts = zip(*self.buckets, strict=True)
            sound = histogram.is_bucket(min(indices)) and histogram.is_bucket(max(indices))
            if min(counts) < 0 or not sound:
                raise ValueError("it has wrong histogram buckets")

    @classmethod
    def from_buckets(cls, buckets: Mapping[int, int], max_ns: int) -> Latency:
        """Summarise a histogram as `histogram.Recorder` makes it, and the slowest latency in it."""
        count = sum(buckets.values())

        def percentile(share: float) -> float | None:
            # The middle of the last bucket can lie above the slowest operation.
            middle = histogram.percentile(buckets, share)
            return None if middle is None else min(middle, float(max_ns))

        p50, p90, p99 = (percentile(share) for share in (0.5, 0.9, 0.99))
        p999 = percentile(0.999) if count >= NO_P999_UNDER else None
        return cls(count, p50, p90, p99, p999, max_ns, tuple(sorted(buckets.items())))

    def without_single_events(self) -> Latency:
        """Return the latencies without percentiles above which there is less than one operation."""
        return replace(
            self,
            p90_ns=None if self.count < NO_P90_UNDER else self.p90_ns,
            p99_ns=None if self.count < NO_P99_UNDER else self.p99_ns,
        )


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed operations of one kind with one error."""

    kind: str
    """Name of the transaction; empty for operations of all kinds together."""
    error: str
    """Name of the error: SQLITE_BUSY; empty if unknown."""
    latency: Latency
    """Times from the begin of the operation to its failure."""


def merged(found: Sequence[Latency]) -> Latency | None:
    """Return latencies as those of one lot; the first of them where a histogram is missing, None of none."""
    if len(found) < 2 or not all(own.buckets for own in found):
        return next(iter(found), None)
    buckets = histogram.merge([dict(own.buckets) for own in found])
    return Latency.from_buckets(buckets, max(own.max_ns for own in found))


@dataclass(frozen=True, slots=True)
class Arrived:
    """What became of the operations that were due inside the window."""

    due: int
    """Operations due inside the window."""
    skipped: int
    """Those of them that were too late when their turn came, under a latency limit: never begun."""
    queued: int
    """Those of them that were still waiting, or under way, when the window closed."""
    latency: dict[str, Latency] = field(default_factory=dict)
    """From the moment each was due to its end, by kind of operation. "queued": what was still waiting or
    under way, with the time it had waited by then; those given up and those skipped are in none."""
    lateness: Latency | None = None
    """How much later each was begun than it could have been, by the harness's own doing; None without any."""
    polled_share: float = 0.0
    """Share of the window in which an average process polled the clock before an operation was due."""

    def __post_init__(self) -> None:
        if len(self.latency) > MOST_KINDS + 1:
            raise ValueError(f"it has more than {MOST_KINDS + 1} kinds of operations")

    @property
    def whole(self) -> Latency | None:
        """The latencies of all kinds together, what was still queued included; None without any."""
        return merged([one for one in self.latency.values() if one.count])


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was proved, or was not."""

    name: str
    """What was checked, such as "last write"."""
    status: str
    """ok, failed, unknown or skipped."""
    checked: int = 0
    """How many things were looked at: keys, files, pairs, counters."""
    problems: int = 0
    """How many of them were wrong."""
    counterexamples: tuple[str, ...] = ()
    """The first wrong ones, in words."""
    note: str = ""
    """What limits the check, such as the share of keys covered."""


BY_THE_STORE = ("quick_check", "integrity_check", "lmdb.verify")
"""Names of the checks of a store on its own data: SQLite's two, and LMDB's."""
CHECK_STATUSES = ("failed", "unknown", "ok", "skipped")
"""What a check can say, the worst first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Is the data what the workers were told it is?"""

    checks: tuple[Check, ...] = ()
    """What was proved, or was not."""
    seconds: float = 0.0
    """How long the verification took, after the window."""

    @property
    def status(self) -> str:
        """The worst of its checks: failed, unknown, ok, or skipped when nothing was checked."""
        found = {check.status for check in self.checks}
        return next((status for status in CHECK_STATUSES if status in found), "skipped")

    @property
    def is_sound(self) -> bool:
        """Whether the store has looked at its own data, each time, and found nothing wrong."""
        said = [check.status for check in self.checks if check.name in BY_THE_STORE]
        return bool(said) and set(said) == {"ok"}

    @property
    def counterexamples(self) -> tuple[str, ...]:
        """The counter-examples of all checks."""
        return tuple(text for check in self.checks for text in check.counterexamples)


MOST = 200
"""Sightings that a trial keeps."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something that the workers of a trial have met: a kind of connection, a kind of exception."""

    topic: str
    """What it is, such as "connection" or "exception"."""
    what: str
    """Its kind, such as the name that SQLite has for an exception."""
    count: int
    """How often it was met, by all workers together."""
    example: str = ""
    """What the first one said; empty: nothing."""
    traits: dict[str, str] = field(default_factory=dict)
    """What else tells it from others of its topic."""


EXAMPLES = 5
"""Counter-examples that a check keeps."""


def added(one: Check, other: Check) -> Check:
    """Return two checks of the same name as one."""
    statuses = {one.status, other.status}
    return Check(
        one.name,
        next(status for status in CHECK_STATUSES if status in statuses),
        one.checked + other.checked,
        one.problems + other.problems,
        (*one.counterexamples, *other.counterexamples)[:EXAMPLES],
        one.note or other.note,
    )


class Tally:
    """Collects one check's problems and its first counter-examples."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checked = 0
        self.problems = 0
        self.counterexamples: list[str] = []

    def problem(self, text: str) -> None:
        """Count a problem."""
        self.problems += 1
        if len(self.counterexamples) < EXAMPLES:
            self.counterexamples.append(text)

    def check(self, note: str = "") -> Check:
        """Return the check, failed when there was a problem, skipped when nothing was looked at."""
        status = "failed" if self.problems else "ok" if self.checked else "skipped"
        return Check(self.name, status, self.checked, self.problems, tuple(self.counterexamples), note)


# Where the time of a trial's operations went, and who held the lock while the slowest of them waited.


HELD, FREE, CHECKPOINT, SYNC, WRITE, PROCESSOR, SQLITE, BINDING, HARNESS = PARTS = (
    *("held", "free", "checkpoint", "sync", "write", "processor", "sqlite", "binding", "harness"),
)
"""Parts of the time: waiting for a lock that another process held; waiting for one that was free meanwhile,
that is, asleep; in checkpoints of one's own; in syncs and in writes outside of them; waiting for a processor;
SQLite's own work, reads included; the driver's binding; and what draws keys, counts and proves.
"""
COMMIT, READ, OWN = "commit", "read", "own"
"""What a lock was held for beside `sync` and `checkpoint`; what of an operation was one's own work."""


@dataclass(frozen=True, slots=True)
class Held:
    """How long the slowest operations waited for one process, and for what it did."""

    process: int
    """Who held the lock: a worker's number, or above the concurrency that of a process beside them."""
    what: str
    """What it did: commit, sync, checkpoint or read."""
    ns: int
    """How long they waited for that, all together."""


@dataclass(frozen=True, slots=True)
class Slowest:
    """The slowest 1% of the operations that took a lock to write, or waited for one to read."""

    operations: int
    """How many they are."""
    of: int
    """Of how many."""
    fastest_ns: int
    """How long the fastest of them took."""
    total_ns: int
    """How long they took together."""
    parts: dict[str, int] = field(default_factory=dict)
    """What of that went into what, in ns: held, free, checkpoint, sync, and own for the rest."""
    behind: dict[str, int] = field(default_factory=dict)
    """What others did while they held what was waited for, in ns: commit, sync, checkpoint, read."""
    held_by: tuple[Held, ...] = ()
    """Whose locks they waited for, longest first; a few of them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The slowest of them, and what the processes did meanwhile."""

    process: int
    """Whose operation it was: a worker's number."""
    at_ns: int
    """When it began, after the window had opened; less than 0: before."""
    length_ns: int
    """How long it took."""
    spans: tuple[tuple[int, str, int, int], ...] = ()
    """Process, what it did (wait, commit, sync, checkpoint or read), from when and until when, in ns after
    its begin. Stretches that lie close beside each other are one.
    """


@dataclass(frozen=True, slots=True)
class Where:
    """Where the time of all workers together went, within the window."""

    time_ns: int
    """The window's length times the workers that told."""
    parts: dict[str, int] = field(default_factory=dict)
    """What of it went into what, in ns: held, free, checkpoint, sync, write, processor, sqlite, binding and
    harness.

    The binding is what is left. Without processor the system does not say; it is in the others then.
    """
    told: float = 1.0
    """Share of the window, at its end, of which is known who held the locks: held and free are told by it."""
    pending_ns: int = 0
    """The longest wait for a lock that had not ended when the window closed; 0: none was."""
    slowest: Slowest | None = None
    """The slowest operations; None where too few took or awaited a lock."""
    moment: Moment | None = None
    """The slowest of them; None where there is none."""


# How a lock was held, as samples from outside saw it.


@dataclass(frozen=True, slots=True)
class Holds:
    """How a lock was held."""

    samples: int = 0
    """In how many samples it was seen."""
    times: int = 0
    """How many holds were seen; several short ones between two samples are none, or one."""
    longest_s: float = 0.0
    """The longest hold, from the first sample to the last one that saw it."""
    most_s: float = 0.0
    """The same, from the sample before it to the sample behind it: it was not longer."""
    longest_at_s: float = 0.0
    """When that began, in seconds of the watch; 0: it may have begun before."""
    now_s: float = 0.0
    """How long it was held at the last sample; 0: it was not."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A program whose processes were seen with the write lock."""

    program: str
    """Its command line without folders; words that differ between its processes have N for numbers."""
    processes: int
    """How many of its processes were seen with the lock."""
    held: Holds
    """How they held it, one after the other."""


@dataclass(frozen=True, slots=True)
class WriteLock:
    """Who held the write lock of a trial's database within the window: nobody else could write meanwhile."""

    rate: int
    """Samples per second that were wanted."""
    samples: int = 0
    """How often it was looked at."""
    longest_gap_s: float = 0.0
    """The longest time between two samples."""
    held: Holds = Holds()
    """How it was held by anybody: the longest time in which it was never seen free."""
    holders: tuple[Holder, ...] = ()
    """Who held it, first the one that was seen most often."""
    error: str = ""
    """Why the samples ended early; empty when they did not."""


# What processes did, one by one, in a trial, and in all trials of a case.


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """What one process did inside the window."""

    worker: int
    """1 to the concurrency."""
    transactions: int
    """Completed transactions: a commit whatever its batch, or a get."""
    rows: int
    """Rows read or written by them."""
    seconds: float
    """The time in which they were counted."""
    operations: dict[str, int] = field(default_factory=dict)
    """Completed transactions by kind: get, pair, replace, update."""
    busy: int = 0
    """SQLITE_BUSY answers that reached the worker."""
    busy_snapshot: int = 0
    """SQLITE_BUSY_SNAPSHOT answers, each a transaction begun again."""
    failed: int = 0
    """Operations given up after the busy timeout."""
    longest_wait_ns: int = 0
    """The slowest operation that touched the window, one still pending at its end included."""
    p99_ns: dict[str, float] = field(default_factory=dict)
    """99% of its operations took at most this long, by kind; of fewer than 100 it is the slowest one."""
    bins: tuple[int, ...] = ()
    """Transactions in each tenth of a second."""
    harness_share: float = 0.0
    """Share of the window that went to drawing keys, counting and proving."""
    proof_share: float = 0.0
    """Share of the window that went to acknowledgements and to checking what was read."""
    peak_memory_bytes: int | None = None
    """Peak resident memory of the process: in its trial on Linux, in all so far on macOS; None on Windows."""
    error: str | None = None
    """Why the process failed or died; None when it did not."""

    @property
    def tps(self) -> float:
        """Transactions a second, by which shares are compared: of a fixed number all do the same."""
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
    """0 for the first trial of its case."""
    seconds: float
    """Length of the window; in a trial of a fixed amount of work, from the first begin to the last end."""
    transactions: int
    """Completed transactions, all processes together."""
    rows: int
    """Rows read or written by them."""
    tps: float
    """Completed transactions a second, all processes together."""
    rows_per_s: float
    """Rows read or written a second, all processes together."""
    fairness: float | None
    """Jain's index of the workers' shares, 1/n to 1."""
    min_max_share: float | None
    """The smallest worker's share over the largest."""
    longest_wait_ns: int | None
    """The slowest operation of all, one still pending at the window's end included; None: not observed."""
    busy: int | None
    """SQLITE_BUSY answers that reached the workers; None where they were not counted."""
    busy_snapshot: int | None
    """SQLITE_BUSY_SNAPSHOT answers, each a transaction begun again; None where they were not counted."""
    failed: int | None
    """Operations given up after the busy timeout; None where they were not counted."""
    latency: dict[str, Latency] = field(default_factory=dict)
    """By kind of operation, all workers merged."""
    failures: tuple[Failures, ...] = ()
    """Failed operations by kind and error, the most frequent first; empty if their times are unknown."""
    workers: tuple[WorkerResult, ...] = ()
    """One for each process, dead ones included."""
    effective: dict[str, str] = field(default_factory=dict)
    """Every setting as SQLite answered it after the first write."""
    durability: str = ""
    """What a commit is worth with them, in the target's words; empty where that is not known."""
    modules: dict[str, str] = field(default_factory=dict)
    """The file of each module that the user's file imported, by name; empty if not recorded. The standard
    library and the modules within a listed package are left out."""
    verdict: Verdict = field(default_factory=Verdict)
    """Whether the data held what the workers were told."""
    half_ratio: float | None = None
    """Median of the second half's tenths of a second over the first half's; None if too short."""
    start_s: float | None = None
    """Until the last process was connected, in seconds, since all were called to connect (with the published
    script: since the first one was started); None: not observed."""
    attempts: int = 1
    """How often it was started: a worker came late, the machine slept, or others took processors or disk."""
    foreign_share: float | None = None
    """Share of all processors' time that other programs took meanwhile; None: not observed."""
    stolen_share: float | None = None
    """The same of other guests of a hypervisor; 0 where the system does not say."""
    disk_share: float | None = None
    """Share of the time in which others kept the disk of its files busy, seen while its processes started;
    None: not observed."""
    throttled: int | None = None
    """How often a processor was slowed down for heat meanwhile; None where the system does not say."""
    quota: Throttling | None = None
    """Effect of the container's CPU quota; None if there is no quota, or its counters cannot be read."""
    outcome: str = "done"
    """How a fixed amount of work ended: done, timeout (given up), or limit (refused by SQLite)."""
    note: str = ""
    """What happened instead of "done", in a line."""
    series: tuple[Series, ...] = ()
    """What was observed as it went on."""
    sightings: tuple[Sighting, ...] = ()
    """What the workers met, such as connections and exceptions, each kind once."""
    space: Space | None = None
    """What the database takes when the trial is over; None where it was not measured."""
    arrived: Arrived | None = None
    """What became of operations that were due at a rate; None in a closed loop."""
    bare_call_ns: float | None = None
    """What the cheapest call through the driver costs, one that asks nothing of the data, in nanoseconds.

    With a server the way there and back is in it. None where it was not measured."""
    where: Where | None = None
    """Where the time of its operations went; None where that was not asked for."""
    write_lock: WriteLock | None = None
    """Who held the write lock, as samples from outside saw it; None where that was not asked for."""
    error: str | None = None
    """Why the trial is not valid; None when it is."""

    def __post_init__(self) -> None:
        if len(self.latency) > MOST_KINDS:
            raise ValueError(f"it has more than {MOST_KINDS} kinds of operations")

    @property
    def stopped_share(self) -> float:
        """Share of the CPU quota's periods in which it stopped the processes; 0 without a quota."""
        if self.quota is None or self.quota.throttled <= 0:
            return 0.0
        return min(1.0, self.quota.throttled / max(1, self.quota.periods))

    @property
    def tps_per_process(self) -> float:
        """Completed transactions a second of an average process."""
        return self.tps / len(self.workers) if self.workers else 0.0


LEFT_OUT = "The data of another case was wrong."
"""Why a case was skipped that would have come after wrong data."""


@dataclass(frozen=True, slots=True)
class Run:
    """A Case and its Trials."""

    case: Case
    """What was asked for."""
    trials: tuple[Trial, ...] = ()
    """Its executions, in order."""
    warnings: tuple[Warning, ...] = ()
    """What a reader must know of this run's figures."""
    harness_ns: float | None = None
    """What the harness alone costs for one transaction of this case, in nanoseconds."""
    error: str | None = None
    """Why the case could not be measured, or not wholly; None when it could."""
    skipped: str | None = None
    """Why the case was not measured although it could be; None when it was."""
    arm: str | None = None
    """Which arm of an A/B test it belongs to, which preset, or which stage of a search: trials of the same
    index are near each other in time. None outside of one."""
    longer: Trial | None = None
    """One more trial, whose longer window shows waits that do not fit into the others; None: none."""

    @property
    def valid(self) -> tuple[Trial, ...]:
        """The trials whose figures count."""
        return tuple(trial for trial in self.trials if trial.error is None)

    @property
    def verdict(self) -> Verdict:
        """The checks of all trials, the longer one included."""
        verdicts = [trial.verdict for trial in (*self.trials, self.longer) if trial]
        return Verdict(
            tuple(check for verdict in verdicts for check in verdict.checks),
            sum(verdict.seconds for verdict in verdicts),
        )

    @property
    def met_quota(self) -> bool:
        """Whether a CPU quota stopped the processes in a trial."""
        return any(trial.stopped_share for trial in (*self.trials, self.longer) if trial)

    def typical(self) -> Trial | None:
        """The valid trial whose TPS is the (lower) median; failing that, the first trial."""
        ranked = sorted(self.valid, key=lambda trial: trial.tps)
        return ranked[(len(ranked) - 1) // 2] if ranked else next(iter(self.trials), None)

    def shown(self) -> Trial | None:
        """The trial that stands for the run: the typical one of the valid ones; None without one."""
        trial = self.typical()
        return trial if trial is not None and trial.error is None else None

    def by_pass(self, figure: Callable[[Trial], float]) -> dict[int, float]:
        """A figure of each pass, by its number: of the valid trials in which it is finite, and above 0."""
        found = {trial.index: figure(trial) for trial in self.valid}
        return {number: value for number, value in found.items() if 0 < value < math.inf}

    def rates(self) -> dict[int, float]:
        """The TPS of each pass."""
        return self.by_pass(lambda trial: trial.tps)

    @property
    def ended(self) -> list[Trial]:
        """The valid trials that came to their end: of a fixed amount of work not done the outcome says so."""
        return [trial for trial in self.valid if trial.outcome == "done"]

    def failed_share(self) -> float:
        """The share of the operations that was given up, 0 to 1, of the trials that ended."""
        failed = sum(trial.failed or 0 for trial in self.ended)
        return failed / (failed + sum(trial.transactions for trial in self.ended)) if failed else 0.0

    @property
    def failed_too_many(self) -> bool:
        """Whether more of them failed than the case lets."""
        return self.failed_share() > self.case.max_failed

    def latency(self, kind: str) -> Latency | None:
        """The latencies of a kind of operation, of all valid trials together; None without any."""
        return merged([own for trial in self.valid if (own := trial.latency.get(kind)) and own.count])

    def median_tps(self) -> float | None:
        """The median TPS of the valid trials; None without one."""
        return median(trial.tps for trial in self.valid) if self.valid else None
