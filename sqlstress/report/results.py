"""What was measured: Latency, WorkerResult, Trial, Run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from sqlstress.report.arrived import Arrived
from sqlstress.report.case import Case
from sqlstress.report.environment import Warning
from sqlstress.report.latency import Latency, merged
from sqlstress.report.sighting import Sighting
from sqlstress.report.space import Space
from sqlstress.report.together import Together
from sqlstress.report.verdict import Verdict
from sqlstress.report.where import Where
from sqlstress.statistics.histogram import MOST_KINDS
from sqlstress.statistics.series import Series


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
    """Operations given up after the busy time-out."""
    longest_wait_ns: int = 0
    """The slowest operation that touched the window, one still pending at its end included."""
    bins: tuple[int, ...] = ()
    """Transactions in each tenth of a second."""
    harness_share: float = 0.0
    """Share of the window that went to drawing keys, counting and proving."""
    proof_share: float = 0.0
    """Share of the window that went to acknowledgements and to checking what was read."""
    peak_memory_bytes: int | None = None
    """Peak resident memory of the process; None where the system does not say."""
    error: str | None = None
    """Why the process failed or died; None when it did not."""


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
    """Operations given up after the busy time-out; None where they were not counted."""
    latency: dict[str, Latency] = field(default_factory=dict)
    """By kind of operation, all workers merged."""
    workers: tuple[WorkerResult, ...] = ()
    """One for each process, dead ones included."""
    effective: dict[str, str] = field(default_factory=dict)
    """Every setting as SQLite answered it after the first write."""
    durability: str = ""
    """What a commit is worth with them, in the target's words; empty where that is not known."""
    verdict: Verdict = field(default_factory=Verdict)
    """Whether the data held what the workers were told."""
    half_ratio: float | None = None
    """Median of the second half's tenths of a second over the first half's; None if too short."""
    start_s: float | None = None
    """From starting the first process to the last one being ready, in seconds; None: not observed."""
    attempts: int = 1
    """How often it was started: a worker came late, the machine slept, or others took the processors."""
    foreign_share: float | None = None
    """Share of all processors' time that other programs took meanwhile; None: not observed."""
    stolen_share: float | None = None
    """The same of other guests of a hypervisor; 0 where the system does not say."""
    throttled: int | None = None
    """How often a processor was slowed down for heat meanwhile; None where the system does not say."""
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
    together: Together | None = None
    """Which part of a common load it was; None where this host loaded alone."""
    error: str | None = None
    """Why the trial is not valid; None when it is."""

    def __post_init__(self) -> None:
        if len(self.latency) > MOST_KINDS:
            raise ValueError(f"it has more than {MOST_KINDS} kinds of operations")

    @property
    def tps_per_process(self) -> float:
        """Completed transactions a second of an average process."""
        return self.tps / len(self.workers) if self.workers else 0.0


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

    @property
    def valid(self) -> tuple[Trial, ...]:
        """The trials whose figures count."""
        return tuple(trial for trial in self.trials if trial.error is None)

    @property
    def verdict(self) -> Verdict:
        """The checks of all trials."""
        return Verdict(
            tuple(check for trial in self.trials for check in trial.verdict.checks),
            sum(trial.verdict.seconds for trial in self.trials),
        )

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
