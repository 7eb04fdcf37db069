"""One trial, in its order: start, prepare, connect, common window, verify, discard."""

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

from sqlstress.engine.folder import further, make_trial_folder
from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.omissions import RERUNS, is_omitted
from sqlstress.engine.pool import (
    IdleWorkers,
    Pauses,
    Pool,
    WorkerExit,
    WorkerFailure,
    ours,
    starts_without_disk,
)
from sqlstress.engine.protocols import Work
from sqlstress.engine.study import Observer, as_failure
from sqlstress.engine.summary import outcomes, summarise
from sqlstress.errors import Interrupted
from sqlstress.experiment import case_label, experiment_of, has_window, unit_of
from sqlstress.machine.foreign_load import CpuMonitor, DiskMonitor, Shares, disk_of
from sqlstress.machine.host import usable_cores
from sqlstress.machine.quota import QuotaMonitor
from sqlstress.report import Check, Throttling, Trial, Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_S, format_duration
from sqlstress.system.interrupt import Pulse, StopSignals
from sqlstress.system.processes import SPAWNING, Starter
from sqlstress.targets import open_place
from sqlstress.targets.place import DURING_MEASUREMENT, Disturbance, Place

# Detection of foreign changes to a trial's data, which make its figures invalid.


class Guard:
    """Snapshot of a trial's data after its preparation."""

    def __init__(self, place: Place, pulse: Pulse, *, redefines: bool = False) -> None:
        """`redefines` is whether workers change the schema: if so, changes by others cannot be detected."""
        self._place, self._pulse, self._redefines = place, pulse, redefines
        self._before = place.snapshot(pulse)

    def begins(self) -> None:
        """Record the identity of the files, just before the workers open them."""
        if self._before:
            self._before.seal()

    def disturbance(self, ended: Sequence[WorkerExit]) -> Disturbance | None:
        """Return a disturbance by another program, or None. Call it after all workers have disconnected."""
        if self._before and (broken := self._before.exchanged()):
            return Disturbance(f"{broken} {DURING_MEASUREMENT}", "failed")
        reports = [worker.done.findings for worker in ended if worker.done]
        for findings in reports:
            if findings.broken_seal:
                return Disturbance(f"{findings.broken_seal} {DURING_MEASUREMENT}")
        changes_alone = experiment_of(self._place.case).opens_database and not self._redefines
        if changes_alone and self._before and (changed := self._before.changed(self._pulse)):
            if changed.by_outsider:
                return changed._replace(text=experiment_of(self._place.case).name_outsider(changed.text))
            return changed
        for findings in reports if experiment_of(self._place.case).applies_settings else ():
            for name, requested, answer in self._place.differences(findings.effective):
                return Disturbance(f"{name} was {requested} and became {answer} {DURING_MEASUREMENT}")
        return None


def unread(disturbance: Disturbance) -> Verdict | None:
    """Return the verdict if a disturbance has made the data unreadable; None if it can be verified."""
    if disturbance.unread is None:
        return None
    if disturbance.unread == "failed":
        return Verdict((Check("database files", "failed", 0, 1, (disturbance.text,)),))
    return Verdict((Check("database files", disturbance.unread, note=disturbance.text),))


# Detection of stalls: a sleeping machine, a frozen virtual machine, a stopped program.
#
# Whether the clock of the latencies advances during a stall depends on the system; in either case the figures
# are not those of a running machine. There are two signs of a stall: the parent reads the clock about ten
# times a second, and a late reading shows that nothing ran; and one of the system's clocks counts sleep,
# while another does not.


MIN_STALL_S = 1.0
"""Minimum stall, in seconds. On a busy machine a waking process runs within a fraction of this."""


def seconds_asleep() -> float:
    """Return the lead of the clock that counts sleep over the clock that does not, in seconds.

    0.0 on Windows: `perf_counter` counts sleep there, so that sleep shows as a late reading.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    if sys.platform == "darwin":
        # Two raw clocks, because CLOCK_MONOTONIC is slewed there, by up to a second in some hours.
        return time.clock_gettime(time.CLOCK_MONOTONIC_RAW) - time.clock_gettime(time.CLOCK_UPTIME_RAW)
    return 0.0


class StallDetector:
    """Detector of stalls, which reads the clocks from its creation on."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, asleep: Callable[[], float] = seconds_asleep
    ) -> None:
        """`asleep` returns the seconds that the machine has slept since any fixed time."""
        self._clock, self._asleep = clock, asleep
        self._slept_before = self._asleep()
        self._last = clock()
        self._longest = (self._last, self._last)
        """Longest interval between two readings: its begin and end, in seconds of `clock`."""

    def look(self) -> None:
        """Read the clock. Call it several times a second."""
        now = self._clock()
        begin, end = self._longest
        if now - self._last > end - begin:
            self._longest = (self._last, now)
        self._last = now

    def seconds(self, went_on: Callable[[float, float], bool] = lambda begin_s, end_s: False) -> float:
        """Return the longest stall in seconds; 0 if a busy machine can explain it.

        `went_on` returns whether workers went on between two times of the clock. If so, a late reading shows
        only that this process got no processor.
        """
        begin, end = self._longest
        late_s = end - begin
        if late_s > MIN_STALL_S and went_on(begin, end):
            late_s = 0.0
        longest = max(late_s, self._asleep() - self._slept_before)
        return longest if longest > MIN_STALL_S else 0.0


def went_on(window: Window, ended: Sequence[WorkerExit], begin_s: float, end_s: float) -> bool:
    """Return whether workers finished operations in most bins of a window between two times.

    False if no bin lies completely between the two times.
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


# The window of a trial, and workers that come late to it.


MIN_LEAD_S = 0.005
"""Minimum time between the announcement of the window and the common start, in seconds."""
LEAD_ANSWERS = 2.0
"""Time added to MIN_LEAD_S, as a multiple of the time in which all processes answered a call."""


def plan_window(case: Case, now_ns: int, answer_s: float, extra_s: float = 0.0) -> Window:
    """Return the window, late enough that every worker receives it in time.

    The window opens later by `extra_s`: the warm-up is longer or, without warm-up, the start is later.
    """
    starts_ns = now_ns + int((MIN_LEAD_S + LEAD_ANSWERS * answer_s) * NS_PER_S)
    if not has_window(case):
        return Window(starts_ns, starts_ns, FOREVER_NS)
    opens = starts_ns + int((case.warmup_s + extra_s) * NS_PER_S)
    starts = starts_ns if case.warmup_s else opens
    return Window(starts, opens, opens + int(case.duration_s * NS_PER_S))


def lateness_s(case: Case, window: Window, ended: Sequence[WorkerExit]) -> float:
    """Return the delay of the last worker after the window opened, in seconds; 0 if all were in time.

    Also 0 if a worker has died: a late trial is repeated, and that would hide the death.
    """
    if window.closes_ns == FOREVER_NS or not all(worker.done for worker in ended):
        return 0.0
    # A worker that never began counts as if it had begun at the end of the window.
    begins = [worker.done.totals.first_ns or window.closes_ns for worker in ended if worker.done]
    late_s = (max(begins, default=0) - window.opens_ns) / NS_PER_S
    # Without warm-up the window opens at the common start, which no worker meets to the nanosecond.
    tolerance_s = 0.0 if case.warmup_s else max(0.02, case.duration_s / 50)
    return late_s if late_s > tolerance_s else 0.0


class RetryReason(NamedTuple):
    """Reason why a trial without failure is not valid, and may be repeated."""

    late_s: float
    """Delay of the last worker after the window opened, in seconds; 0 means all were in time."""
    still_s: float
    """Longest stall, in seconds; 0 means no stall."""
    missing: str = ""
    """Missing event, such as "transaction ended within the window of 300ms"; empty if none is missing."""
    crowd: str = ""
    """More processes than the cores can run, such as "1,000 processes on 2 cores"; empty if they are few."""
    quota: Throttling | None = None
    """Effect of the container's CPU quota if it was used up; else None."""

    def message(self, attempts: int) -> str:
        """Return a message on the last of `attempts` attempts, with a remedy."""
        if self.missing:
            trials = f", in {attempts} trials" if attempts > 1 else ""
            return f"no {self.missing}{trials}: give a longer --duration, or --ops"
        times = f" {attempts} times" if attempts > 1 else ""
        if self.still_s and self.quota:
            return (
                f"the CPU quota of {self.quota.cores:.3g} cores stopped the processes{times} (for up to "
                f"{self.still_s:.1f} s): raise the quota, or lower --concurrency"
            )
        if self.still_s and self.crowd:
            return (
                f"nothing ran for up to {self.still_s:.1f} s{times}: {self.crowd} wait too long for a "
                "processor. Lower --concurrency, or use a machine with more processors"
            )
        if self.still_s:
            return (
                f"the machine slept, or this program was stopped, while it measured{times} "
                f"(for {self.still_s:.1f} s): let it run undisturbed"
            )
        late = f"a worker came late to the window{times}"
        if self.quota:
            return (
                f"{late}: the CPU quota of {self.quota.cores:.3g} cores stopped the processes. Raise the "
                "quota, or lower --concurrency"
            )
        if self.crowd:
            return f"{late}: {self.crowd}. Lower --concurrency, or use a machine with more processors"
        return f"{late}: give a longer --warmup"


CROWDED_PROCESSES_PER_CORE = 50
"""Processes per core from which on a process may wait seconds for a processor."""


def retry_reason(
    late_s: float, still_s: float, workers: int = 1, quota: Throttling | None = None
) -> RetryReason | None:
    """Return the reason to repeat a trial, or None."""
    if not (late_s or still_s):
        return None
    cores = usable_cores()
    crowd = (
        f"{workers:,} processes on {cores} core{'s' * (cores != 1)}"
        if workers >= CROWDED_PROCESSES_PER_CORE * cores
        else ""
    )
    return RetryReason(late_s, still_s, crowd=crowd, quota=quota if quota and quota.throttled else None)


def empty_window_reason(case: Case, trial: Trial) -> RetryReason | None:
    """Return the flaw of a window in which no operation ended, or None.

    The operations may be slow, or the disk stalled.
    """
    # In an open loop the table shows unfinished operations as queued.
    done = trial.transactions or trial.failed or trial.arrived
    if done or trial.error or not has_window(case) or not experiment_of(case).retries_empty:
        return None
    unit, window = unit_of(case), format_duration(case.duration_s)
    return RetryReason(0.0, 0.0, f"{unit} ended within the window of {window}")


class TrialMeasurement(NamedTuple):
    """Measurements of a trial after its processes have ended."""

    window: Window
    ended: list[WorkerExit]
    start_s: float
    """Seconds from the first call (published script: from the start) until all processes were connected."""
    whole_s: float
    """Seconds from the first call (published script: from the start) until all processes had ended."""
    series: list[Series]
    """Series that the companions recorded."""
    problem: str | None
    """Problem of a companion; None if there is none."""
    others: Shares | None
    """Processor time that other programs took; None if unknown."""
    quota: Throttling | None
    """Periods and time in which the CPU quota stopped processes; None if unknown or without a quota."""
    disk_share: float | None
    """Share of the time in which other programs kept the disk busy, 0 to 1; None if unknown."""
    still_s: float
    """Longest stall, in seconds; 0 means no stall."""


ATTEMPTS = 3
READY_S = 30.0
READY_PER_WORKER_S = 0.5
STALL_S = 30.0
HEAVY_SHARE = 0.25
"""Share of processors or disk taken by other programs above which a trial is repeated."""
MAX_RERUNS = 3
"""Maximum number of such repeats per study: a machine may be busy all the time."""


class TrialRunner:
    """Runner of the trials of one measurement. It gives each trial a different salt."""

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
        """`crew` keeps workers for the next trial; if it is None, no worker stays."""
        self.folder, self.keep, self.signals, self.observer = folder, keep, signals, observer
        self.starter, self._crew = starter, crew
        self.case_number = 0
        self.salt = first_salt
        """Salt of the last trial. The next trial has the next number, or a later one if it is repeated."""
        self.carry: dict[Any, Any] = {}
        """Objects that trials pass on to later trials."""
        self._copies: dict[Any, Any] | None = None if keep else {}
        self._patience = 0 if is_omitted(RERUNS) else MAX_RERUNS
        self._disk = disk_of(folder)

    def run(self, case: Case, index: int) -> Trial:
        """Run a trial; if other programs took a large share, run it again and return the quieter one."""
        trial = self.flawless(case, index)
        sound = trial.error is None and trial.verdict.status != "failed"
        if (
            not sound
            or self._patience <= 0
            or self._attempts(case) == 1
            or _foreign_share(trial) <= HEAVY_SHARE
        ):
            return trial
        self._patience -= 1
        again = self.flawless(case, index)
        # A second trial that failed is not better.
        worse = again.error is not None or (_foreign_share(again) >= _foreign_share(trial))
        chosen = again if again.verdict.status == "failed" or not worse else trial
        return replace(chosen, attempts=trial.attempts + again.attempts)

    def once(self, case: Case, index: int, pauses: Pauses | None) -> Trial:
        """Run a trial once, for its verdict rather than its figures: a flaw is not a reason to repeat it."""
        trial, flaw = self._attempt(case, index, 0.0, pauses)
        # A trial without operations proves nothing.
        return replace(trial, error=flaw.message(1)) if flaw and flaw.missing else trial

    def flawless(self, case: Case, index: int) -> Trial:
        """Run a trial, and repeat it if it has a flaw; at most ATTEMPTS times in all."""
        attempt, extra_s = 0, 0.0
        while True:
            attempt += 1
            trial, flaw = self._attempt(case, index, extra_s)
            # A trial with wrong data is never repeated.
            if flaw is None or attempt == self._attempts(case) or trial.verdict.status == "failed":
                return replace(trial, attempts=attempt, error=flaw.message(attempt) if flaw else trial.error)
            # With many busy workers it takes some time until each has had a processor.
            extra_s += 2 * flaw.late_s

    def _attempts(self, case: Case) -> int:
        # The published script uses its files for a whole sweep, so a trial cannot be repeated.
        return ATTEMPTS if experiment_of(case).common_start else 1

    def _attempt(
        self, case: Case, index: int, extra_s: float, pauses: Pauses | None = None
    ) -> tuple[Trial, RetryReason | None]:
        """Return a trial and its flaw, or None: the reason to repeat it although nothing failed."""
        self.salt += 1
        folder = self.folder
        if self.keep and experiment_of(case).common_start:
            label = re.sub(r"\W+", "-", case_label(case)).strip("-")
            folder = folder / f"case-{self.case_number}-{label}"
            folder.mkdir(exist_ok=True)
        if not experiment_of(case).applies_settings and not case.server:
            folder = make_trial_folder(folder)  # the user's code may make files next to the database
        place = open_place(case, folder)
        place.copies = self._copies
        work: Work = experiment_of(case).open_work(case, place, self.salt, self.carry)
        try:
            self.observer.phase("preparing")
            work.share(self._wait)
            with self._pool(case, place, work, pauses) as pool, self._unless_stopped():
                guard = self._prepare(case, place, work, pool)
                measured = self._measure(case, work, pool, extra_s)
            work.ended(self._wait)
            trial = self._summarise(case, index, measured)
            late_s = lateness_s(case, measured.window, measured.ended)
            flaw = retry_reason(late_s, measured.still_s, case.concurrency, measured.quota)
            self.observer.phase("verifying")
            trial = self._examine(case, work, guard, trial, measured.ended)
            return trial, flaw or empty_window_reason(case, trial)
        finally:
            work.release()
            self.discard(work.discard)

    def _pool(self, case: Case, place: Place, work: Work, pauses: Pauses | None) -> Pool:
        starter = self.starter if experiment_of(case).common_start else SPAWNING
        return Pool(
            case, place, self.salt, work.shared, work.companions, work.trace, starter, pauses, self._crew
        )

    def _prepare(self, case: Case, place: Place, work: Work, pool: Pool) -> Guard:
        """Prepare the data while the processes start; return the snapshot of the data.

        The published script's processes start after the preparation, since its time includes their start.
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
        """Call `discard` to remove files, unless all files are kept; ignore errors.

        Windows does not remove files that another program has open. If so, later trials get a new folder, and
        the end of the run removes the files. The measurement stays valid.
        """
        if self.keep:
            return
        try:
            discard()
        except OSError:
            with suppress(OSError):
                self.folder = further(self.folder)

    def _examine(
        self, case: Case, work: Work, guard: Guard, trial: Trial, ended: Sequence[WorkerExit]
    ) -> Trial:
        """Return the trial with its verdict and the measurements that follow the workers' end.

        If that fails, the figures are kept in a trial that is marked as not valid.
        """
        try:
            disturbance = guard.disturbance(ended)
            if disturbance:
                self.carry.clear()  # no later trial begins with these files
                if self._copies:
                    self._copies.clear()
                trial = replace(trial, error=disturbance.text)
                if verdict := unread(disturbance):
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

    def _measure(self, case: Case, work: Work, pool: Pool, extra_s: float) -> TrialMeasurement:
        """Run the load, and wait until the processes have ended."""
        # Before the load our processes do not use the disk.
        disk = DiskMonitor(self._disk if starts_without_disk(case) else None)
        begun_ns = time.perf_counter_ns()
        pool.call()
        if not experiment_of(case).common_start:
            # The published script has no barrier: each process begins as soon as it has started.
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
        standstill = StallDetector()
        watch = CpuMonitor(ours(case), window.starts_ns, window.closes_ns)
        quota = QuotaMonitor(window.opens_ns, window.closes_ns)

        def pulse() -> None:
            self.signals.check()
            standstill.look()
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
        return TrialMeasurement(
            window,
            ended,
            start_s,
            whole_s,
            series,
            problem,
            watch.shares(),
            throttling,
            disk_share,
            standstill.seconds(partial(went_on, window, ended)),
        )

    def _summarise(self, case: Case, index: int, measured: TrialMeasurement) -> Trial:
        window = measured.window
        trial = summarise(case, index, window, measured.ended, measured.whole_s, measured.start_s)
        series = (*trial.series, *measured.series)
        error = trial.error or measured.problem
        trial = replace(
            trial, series=series, error=error, disk_share=measured.disk_share, quota=measured.quota
        )
        if shares := measured.others:
            trial = replace(
                trial, foreign_share=shares.foreign, stolen_share=shares.stolen, throttled=shares.throttled
            )
        return trial

    def _window(self, case: Case, pool: Pool, extra_s: float) -> Window:
        """Return a window that begins late enough for all workers to receive it in time."""
        # Measure the time until all processes have received and answered a message.
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
        """Raise Interrupted instead of WorkerFailure after a stop signal, which may also end workers."""
        try:
            yield
        except WorkerFailure:
            self._wait()
            raise

    def _wait(self) -> None:
        self.signals.check()
        self.observer.waiting()


def _foreign_share(trial: Trial) -> float:
    """Return the larger of other programs' shares of processors and disk, 0 to 1; 0 if unknown."""
    taken = (trial.foreign_share or 0.0) + (trial.stolen_share or 0.0)
    # A repeat does not help a trial that the CPU quota stopped.
    return max(0.0 if trial.quota and trial.quota.throttled else taken, trial.disk_share or 0.0)


def hang_limit_s(case: Case) -> float:
    """Return the time without progress after which workers count as hung, in seconds."""
    return 2 * max(case.settings.busy_timeout_ms / 1000, experiment_of(case).timeout_s(case)) + STALL_S
