"""One trial: start workers, prepare data, connect, run the load, verify, discard."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from sqlstress.engine.folder import add_subfolder, make_trial_folder
from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.omissions import RERUNS, is_omitted
from sqlstress.engine.pool import (
    IdleWorkers,
    Pauses,
    Pool,
    WorkerExit,
    WorkerFailure,
    our_processes,
    starts_without_disk,
)
from sqlstress.engine.protocols import Work
from sqlstress.engine.study import Observer, as_failure
from sqlstress.engine.summary import outcomes, summarise
from sqlstress.errors import Interrupted
from sqlstress.experiment import case_label, experiment_of, has_window, unit_of
from sqlstress.machine.foreign_load import CpuMonitor, DiskMonitor, disk_of
from sqlstress.machine.host import usable_cores
from sqlstress.machine.quota import QuotaMonitor
from sqlstress.report import Check, Throttling, Trial, Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_S, format_duration
from sqlstress.system.interrupt import Pulse, StopSignals
from sqlstress.system.processes import SPAWNING, Starter
from sqlstress.targets import open_place
from sqlstress.targets.place import DURING_MEASUREMENT, Disturbance, Place


class Guard:
    """Snapshot of a trial's prepared data, to detect changes by other programs."""

    def __init__(self, place: Place, pulse: Pulse, *, redefines: bool = False) -> None:
        """`redefines` is whether workers may change the schema. If so, ignore changes inside the files."""
        self._place, self._pulse, self._redefines = place, pulse, redefines
        self._before = place.snapshot(pulse)

    def begins(self) -> None:
        """Record the files' identities (device and inode numbers), just before workers open them."""
        if self._before:
            self._before.seal()

    def disturbance(self, ended: Sequence[WorkerExit]) -> Disturbance | None:
        """Return a change of the data by another program, or None. Call it after all workers have ended."""
        if self._before and (broken := self._before.exchanged()):
            return Disturbance(f"{broken} {DURING_MEASUREMENT}", "failed")
        reports = [worker.done.findings for worker in ended if worker.done]
        for findings in reports:
            if findings.broken_seal:
                return Disturbance(f"{findings.broken_seal} {DURING_MEASUREMENT}")
        changes_alone = experiment_of(self._place.case).opens_database and not self._redefines
        if changes_alone and self._before and (changed := self._before.changed(self._pulse)):
            return changed
        for findings in reports if experiment_of(self._place.case).applies_settings else ():
            for name, requested, answer in self._place.differences(findings.effective):
                return Disturbance(f"{name} was {requested} and became {answer} {DURING_MEASUREMENT}")
        return None


def unreadable_verdict(disturbance: Disturbance) -> Verdict | None:
    """Return the verdict on data that another program made unreadable; None if the data is readable."""
    if disturbance.unread is None:
        return None
    if disturbance.unread == "failed":
        return Verdict((Check("database files", "failed", 0, 1, (disturbance.text,)),))
    return Verdict((Check("database files", disturbance.unread, note=disturbance.text),))


MIN_STALL_S = 1.0
"""Minimum length of a stall, in seconds. Even on a busy machine a process wakes sooner."""


def seconds_asleep() -> float:
    """Return the time that the machine has slept since a fixed time, in seconds.

    0.0 on Windows, where `perf_counter` goes on during sleep, so that StallDetector sees a long interval.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    if sys.platform == "darwin":
        # Raw clocks, because macOS slews CLOCK_MONOTONIC by up to a second in some hours.
        return time.clock_gettime(time.CLOCK_MONOTONIC_RAW) - time.clock_gettime(time.CLOCK_UPTIME_RAW)
    return 0.0


class StallDetector:
    """Detector of stalls: a sleeping machine, a frozen virtual machine, a stopped program.

    Call `look` several times a second: a long interval between two calls shows that nothing ran. The sleep of
    the machine also shows as a difference between two clocks, of which only one counts the sleep.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, asleep: Callable[[], float] = seconds_asleep
    ) -> None:
        """`asleep` returns the time that the machine has slept since some fixed time, in seconds."""
        self._clock, self._asleep = clock, asleep
        self._slept_before = self._asleep()
        self._last = clock()
        self._longest = (self._last, self._last)
        """Begin and end of the longest interval between two readings of `clock`, in seconds."""

    def look(self) -> None:
        """Read the clock, and keep the interval since the last call if it is the longest."""
        now = self._clock()
        begin, end = self._longest
        if now - self._last > end - begin:
            self._longest = (self._last, now)
        self._last = now

    def seconds(self, made_progress: Callable[[float, float], bool] = lambda begin_s, end_s: False) -> float:
        """Return the longest time in which nothing ran, in seconds; 0 if it is at most MIN_STALL_S.

        `made_progress(begin_s, end_s)` returns whether workers did operations in the longest interval between
        two calls of `look`. If so, only this process was late, and the interval does not count.
        """
        begin, end = self._longest
        late_s = end - begin
        if late_s > MIN_STALL_S and made_progress(begin, end):
            late_s = 0.0
        longest = max(late_s, self._asleep() - self._slept_before)
        return longest if longest > MIN_STALL_S else 0.0


def made_progress(window: Window, ended: Sequence[WorkerExit], begin_s: float, end_s: float) -> bool:
    """Return whether workers finished operations in most bins of the period `begin_s` to `end_s`.

    The times are in seconds of `perf_counter`. A bin is 0.1 s or more. Return False if the period has no
    complete bin.
    """
    counts = [worker.done.totals.bins for worker in ended if worker.done]
    if window.closes_ns == FOREVER_NS or not any(counts):
        return False
    full_bins = (window.closes_ns - window.opens_ns) // window.bin_ns
    first = max(0, math.ceil((begin_s * NS_PER_S - window.opens_ns) / window.bin_ns))
    last = min(full_bins, math.floor((end_s * NS_PER_S - window.opens_ns) / window.bin_ns))
    merged = [sum(parts) for parts in zip_longest(*counts, fillvalue=0)]
    between = [merged[index] if index < len(merged) else 0 for index in range(first, last)]
    return 2 * sum(count > 0 for count in between) > len(between)


MIN_LEAD_S = 0.005
"""Minimum time from sending the window to all processes until the start of the load, in seconds."""
LEAD_ANSWERS = 2.0
"""Additional time before the start, as a multiple of the time in which all processes answered."""


def plan_window(case: Case, now_ns: int, answer_s: float, extra_s: float = 0.0) -> Window:
    """Return the window, late enough for every worker to receive it before the start.

    `answer_s` is the time in which all processes answered. `extra_s` lengthens the warm-up; without a warm-up
    it delays the start.
    """
    starts_ns = now_ns + int((MIN_LEAD_S + LEAD_ANSWERS * answer_s) * NS_PER_S)
    if not has_window(case):
        return Window(starts_ns, starts_ns, FOREVER_NS)
    opens = starts_ns + int((case.warmup_s + extra_s) * NS_PER_S)
    starts = starts_ns if case.warmup_s else opens
    return Window(starts, opens, opens + int(case.duration_s * NS_PER_S))


def lateness_s(case: Case, window: Window, ended: Sequence[WorkerExit]) -> float:
    """Return the time from the begin of the measurement to the last worker's begin, in seconds.

    0 if it is negligible, or without a window. Also 0 if a worker has died: a late worker makes the runner
    repeat the trial, and a repeat would hide the death.
    """
    if window.closes_ns == FOREVER_NS or not all(worker.done for worker in ended):
        return 0.0
    # A worker that never began counts as if it had begun at the end of the window.
    begins = [worker.done.totals.first_ns or window.closes_ns for worker in ended if worker.done]
    late_s = (max(begins, default=0) - window.opens_ns) / NS_PER_S
    # Without warm-up the window opens at the start, which no worker hits to the nanosecond.
    tolerance_s = 0.0 if case.warmup_s else max(0.02, case.duration_s / 50)
    return late_s if late_s > tolerance_s else 0.0


class RetryReason(NamedTuple):
    """Reason why a trial is not valid although nothing failed, so that it may be repeated."""

    late_s: float
    """Time from the begin of the measurement to the last worker's begin, in seconds, or 0."""
    stalled_s: float
    """Longest time in which nothing ran, in seconds, or 0."""
    missing: str = ""
    """Missing event, such as "transaction ended within the window of 300ms"; else empty."""
    crowd: str = ""
    """Text such as "1,000 processes on 2 cores" if there are too many processes; else empty."""
    quota: Throttling | None = None
    """Effect of the container's CPU quota if the quota was used up; else None."""

    def message(self, attempts: int) -> str:
        """Return an error message with a remedy, after this number of attempts."""
        if self.missing:
            trials = f", in {attempts} trials" if attempts > 1 else ""
            return f"no {self.missing}{trials}: give a longer --duration, or --ops"
        times = f" {attempts} times" if attempts > 1 else ""
        stopped = f"the CPU quota of {self.quota.cores:.3g} cores stopped the processes" if self.quota else ""
        fewer = "Lower --concurrency, or use a machine with more processors"
        if self.stalled_s:
            stalled = f"{self.stalled_s:.1f} s"
            if stopped:
                return f"{stopped}{times} (for up to {stalled}): raise the quota, or lower --concurrency"
            if self.crowd:
                late = f"{self.crowd} wait too long for a processor. {fewer}"
                return f"nothing ran for up to {stalled}{times}: {late}"
            return (
                f"the machine slept, or this program was stopped, while it measured{times} (for {stalled}): "
                "let it run undisturbed"
            )
        late = f"a worker came late to the window{times}"
        if stopped:
            return f"{late}: {stopped}. Raise the quota, or lower --concurrency"
        return f"{late}: {self.crowd}. {fewer}" if self.crowd else f"{late}: give a longer --warmup"


CROWDED_PROCESSES_PER_CORE = 50
"""Number of processes per core from which on a process may wait seconds for a processor."""


def retry_reason(
    late_s: float, stalled_s: float, workers: int = 1, quota: Throttling | None = None
) -> RetryReason | None:
    """Return the reason to repeat a trial; None if no worker was late and nothing stalled.

    The last worker began `late_s` seconds late. Nothing ran for `stalled_s` seconds.
    """
    if not (late_s or stalled_s):
        return None
    cores, crowd = usable_cores(), ""
    if workers >= CROWDED_PROCESSES_PER_CORE * cores:
        crowd = f"{workers:,} processes on {cores} core{'s' * (cores != 1)}"
    return RetryReason(late_s, stalled_s, crowd=crowd, quota=quota if quota and quota.throttled else None)


def empty_window_reason(case: Case, trial: Trial) -> RetryReason | None:
    """Return the reason to repeat a trial without operations in the measured time, else None."""
    # In an open loop (operations start at a given rate) unfinished operations appear as queued.
    done = trial.transactions or trial.failed or trial.arrived
    if done or trial.error or not has_window(case) or not experiment_of(case).retries_empty:
        return None
    unit, window = unit_of(case), format_duration(case.duration_s)
    return RetryReason(0.0, 0.0, f"{unit} ended within the window of {window}")


ATTEMPTS = 3
READY_S = 30.0
READY_PER_WORKER_S = 0.5
STALL_S = 30.0
HEAVY_SHARE = 0.25
"""Share of the processors or the disk, 0 to 1. If other programs used more, the trial is repeated."""
MAX_RERUNS = 3
"""Maximum number of repeats because of other programs' load, per study: a machine may always be busy."""


class TrialRunner:
    """Runner of the trials of one measurement, which repeats trials that are not valid.

    Each attempt has a different salt, a number that changes the random draws.
    """

    def __init__(
        self,
        folder: Path,
        keep: bool,
        signals: StopSignals,
        observer: Observer,
        first_salt: int,
        starter: Starter = SPAWNING,
        crew: IdleWorkers | None = None,
    ) -> None:
        """`crew` keeps workers alive for the next trial; if it is None, workers end with their trial."""
        self.folder, self.keep, self.signals, self.observer = folder, keep, signals, observer
        self.starter, self._crew = starter, crew
        self.case_number = 0
        self.salt = first_salt
        """Salt of the last attempt; every attempt takes the next number."""
        self.carry: dict[Any, Any] = {}
        """Objects for later trials, such as files to use again."""
        self._copies: dict[Any, Any] | None = None if keep else {}
        self._patience = 0 if is_omitted(RERUNS) else MAX_RERUNS
        self._disk = disk_of(folder)

    def run(self, case: Case, index: int) -> Trial:
        """Run a trial. If other programs disturbed it, run it again and return the better of both trials.

        A trial that found wrong data is always returned.
        """
        trial = self.run_valid(case, index)
        sound = trial.error is None and trial.verdict.status != "failed"
        may_repeat = self._patience > 0 and self._attempts(case) > 1
        if not (sound and may_repeat and _foreign_share(trial) > HEAVY_SHARE):
            return trial
        self._patience -= 1
        again = self.run_valid(case, index)
        # A second trial that failed is not better than the first.
        worse = again.error is not None or (_foreign_share(again) >= _foreign_share(trial))
        chosen = again if again.verdict.status == "failed" or not worse else trial
        return replace(chosen, attempts=trial.attempts + again.attempts)

    def once(self, case: Case, index: int, pauses: Pauses | None) -> Trial:
        """Run a trial once, even if it is not valid: the caller needs only the verdict on its data."""
        trial, reason = self._attempt(case, index, 0.0, pauses)
        # A trial without operations proves nothing about the data, so it gets an error.
        return replace(trial, error=reason.message(1)) if reason and reason.missing else trial

    def run_valid(self, case: Case, index: int) -> Trial:
        """Run a trial repeatedly until it is valid, at most ATTEMPTS times."""
        attempt, extra_s = 0, 0.0
        while True:
            attempt += 1
            trial, reason = self._attempt(case, index, extra_s)
            # A trial with wrong data is never repeated: a repeat would hide the fault.
            if reason is None or attempt == self._attempts(case) or trial.verdict.status == "failed":
                return replace(
                    trial, attempts=attempt, error=reason.message(attempt) if reason else trial.error
                )
            # With many busy workers it takes time until each has had a processor, so measure later next time.
            extra_s += 2 * reason.late_s

    def _attempts(self, case: Case) -> int:
        # Without a common start, all trials share files, so a second attempt would find rows of the first.
        return ATTEMPTS if experiment_of(case).common_start else 1

    def _attempt(
        self, case: Case, index: int, extra_s: float, pauses: Pauses | None = None
    ) -> tuple[Trial, RetryReason | None]:
        """Run a trial; return (trial, reason to repeat it or None). `extra_s` delays the measurement."""
        self.salt += 1
        folder = self.folder
        if self.keep and experiment_of(case).common_start:
            label = re.sub(r"\W+", "-", case_label(case)).strip("-")
            folder = folder / f"case-{self.case_number}-{label}"
            folder.mkdir(exist_ok=True)
        if not experiment_of(case).applies_settings and not case.server:
            folder = make_trial_folder(folder)  # The user's code may create files next to the database.
        place = open_place(case, folder)
        place.copies = self._copies
        work: Work = experiment_of(case).open_work(case, place, self.salt, self.carry)
        try:
            self.observer.phase("preparing")
            work.share(self._wait)
            with self._pool(case, place, work, pauses) as pool, self._unless_stopped():
                guard = self._prepare(case, place, work, pool)
                trial, ended, reason = self._measure(case, index, work, pool, extra_s)
            work.ended(self._wait)
            self.observer.phase("verifying")
            trial = self._examine(case, work, guard, trial, ended)
            return trial, reason or empty_window_reason(case, trial)
        finally:
            work.release()
            self.discard(work.discard)

    def _pool(self, case: Case, place: Place, work: Work, pauses: Pauses | None) -> Pool:
        starter = self.starter if experiment_of(case).common_start else SPAWNING
        return Pool(
            case, place, self.salt, work.shared, work.companions, work.trace, starter, pauses, self._crew
        )

    def _prepare(self, case: Case, place: Place, work: Work, pool: Pool) -> Guard:
        """Start the processes and prepare the data; return a snapshot of the data.

        If the experiment has a common start of the load, the processes start before the data is prepared.
        """
        common_start = experiment_of(case).common_start
        if common_start:
            pool.start(self._wait)
        work.prepare(self._wait)
        guard = Guard(place, self._wait, redefines=work.redefines)
        work.begins(self._wait)
        guard.begins()
        self.observer.phase("starting")
        if not common_start:
            pool.start(self._wait)
        return guard

    def discard(self, discard: Callable[[], None]) -> None:
        """Call `discard`, which removes files, unless the user wants to keep all files. Ignore errors.

        If files cannot be removed, as open files on Windows, later trials get a new folder.
        """
        if self.keep:
            return
        try:
            discard()
        except OSError:
            with suppress(OSError):
                self.folder = add_subfolder(self.folder)

    def _examine(
        self, case: Case, work: Work, guard: Guard, trial: Trial, ended: Sequence[WorkerExit]
    ) -> Trial:
        """Return the trial with its verdict and with measurements taken after the load.

        An error of the verification marks the trial as not valid, but keeps its figures.
        """
        try:
            disturbance = guard.disturbance(ended)
            if disturbance:
                self.carry.clear()  # Later trials must not start with copies of these files.
                if self._copies:
                    self._copies.clear()
                trial = work.explain(replace(trial, error=disturbance.text))
                if verdict := unreadable_verdict(disturbance):
                    return replace(trial, verdict=verdict)
            trial = replace(trial, verdict=work.verify(outcomes(ended), self._wait))
            if disturbance:
                return trial
            if phase := work.completing:
                self.observer.phase(phase)
            return work.complete(trial, self._wait)
        except Interrupted:
            raise
        except Exception as problem:
            reason = str(as_failure(problem, case.driver)).removesuffix(".")
            if not trial.verdict.checks:
                trial = replace(trial, verdict=Verdict((Check("verification", "unknown", note=reason),)))
                reason = f"the data could not be verified: {reason}"
            return replace(trial, error=trial.error or reason)

    def _measure(
        self, case: Case, index: int, work: Work, pool: Pool, extra_s: float
    ) -> tuple[Trial, list[WorkerExit], RetryReason | None]:
        """Run the load; return (trial without a verdict, workers' results, reason to repeat or None)."""
        # Our processes do not use the disk before the load, so all use of the disk is by other programs.
        disk = DiskMonitor(self._disk if starts_without_disk(case) else None)
        begun_ns = time.perf_counter_ns()
        pool.call()
        if not experiment_of(case).common_start:
            # Without a common start, each process begins its load as soon as it has started.
            begun_ns = pool.started_ns
            window = Window(begun_ns, begun_ns, FOREVER_NS)
            pool.go(window)
        self._wait_ready(case, pool)
        start_s = (time.perf_counter_ns() - begun_ns) / NS_PER_S
        disk_share = disk.share()
        if experiment_of(case).common_start:
            window = self._window(case, pool, extra_s)
            pool.go(window)
        self.observer.phase("measuring")
        stall_detector = StallDetector()
        watch = CpuMonitor(our_processes(case), window.starts_ns, window.closes_ns)
        quota = QuotaMonitor(window.opens_ns, window.closes_ns)

        def pulse() -> None:
            self.signals.check()
            stall_detector.look()
            watch.pulse()
            quota.pulse()
            work.meanwhile(window, self.signals.check)
            self.observer.tick(pool.done_so_far())

        work.meanwhile(window, self.signals.check)
        ended = pool.gather(hang_limit_s(case), pulse)
        throttling = quota.throttling()
        series, problem = pool.dismiss(STALL_S, self._wait)
        pool.join(STALL_S, self._wait)
        whole_s = (time.perf_counter_ns() - begun_ns) / NS_PER_S
        trial = summarise(case, index, window, ended, whole_s, start_s)
        trial = replace(
            trial,
            series=(*trial.series, *series),
            error=trial.error or problem,
            disk_share=disk_share,
            quota=throttling,
        )
        if shares := watch.shares():
            trial = replace(
                trial, foreign_share=shares.foreign, stolen_share=shares.stolen, throttled=shares.throttled
            )
        stalled_s = stall_detector.seconds(partial(made_progress, window, ended))
        late_s = lateness_s(case, window, ended)
        return trial, ended, retry_reason(late_s, stalled_s, case.concurrency, throttling)

    def _window(self, case: Case, pool: Pool, extra_s: float) -> Window:
        start_ns = time.perf_counter_ns()
        pool.call()
        self._wait_ready(case, pool)
        now = time.perf_counter_ns()
        answer_s = (now - start_ns) / NS_PER_S
        return plan_window(case, now, answer_s, extra_s)

    def _wait_ready(self, case: Case, pool: Pool) -> None:
        failed = pool.wait_ready(READY_S + READY_PER_WORKER_S * case.concurrency, self._wait)
        if failed:
            raise WorkerFailure(f"{pool.name(failed[0].worker)} could not start: {failed[0].reason}")

    @contextmanager
    def _unless_stopped(self) -> Iterator[None]:
        """Raise Interrupted instead of a WorkerFailure after a stop signal, which may have ended workers."""
        try:
            yield
        except WorkerFailure:
            self._wait()
            raise

    def _wait(self) -> None:
        self.signals.check()
        self.observer.waiting()


def _foreign_share(trial: Trial) -> float:
    """Return the larger of other programs' shares of the processors and the disk, 0 to 1; 0 if unknown."""
    taken = (trial.foreign_share or 0.0) + (trial.stolen_share or 0.0)
    # A repeat does not help a trial that the CPU quota has stopped, so its processor share does not count.
    return max(0.0 if trial.quota and trial.quota.throttled else taken, trial.disk_share or 0.0)


def hang_limit_s(case: Case) -> float:
    """Return the time without progress after which workers count as hung, in seconds."""
    return 2 * max(case.settings.busy_timeout_ms / 1000, experiment_of(case).timeout_s(case)) + STALL_S
