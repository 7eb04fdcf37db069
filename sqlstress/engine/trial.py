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

from sqlstress.engine.folder import further, trial_folder
from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.pool import Crew, Ended, Pauses, Pool, WorkerFailure, ours, starts_silently
from sqlstress.engine.protocols import Work
from sqlstress.engine.study import Observer, as_failure
from sqlstress.engine.summary import outcomes, summarise
from sqlstress.errors import Interrupted
from sqlstress.experiment import case_label, experiment_of, has_window, unit_of
from sqlstress.machine.foreign_load import DiskWatch, Shares, Watch, disk_of
from sqlstress.machine.host import usable_cores
from sqlstress.machine.quota import QuotaWatch
from sqlstress.report import Check, Throttling, Trial, Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_S, format_duration
from sqlstress.system.interrupt import Pulse, StopSignals
from sqlstress.system.processes import SPAWNING, Starter
from sqlstress.targets import open_place
from sqlstress.targets.place import MEANWHILE, Disturbance, Place

# Whether somebody else had a hand in a trial's data, so that its figures are not those of its case.


class Guard:
    """The data of a trial as it was when it had been prepared."""

    def __init__(self, place: Place, pulse: Pulse, *, redefines: bool = False) -> None:
        """`redefines`: the workers may change what is defined, so that nobody else can be told from them."""
        self._place, self._pulse, self._redefines = place, pulse, redefines
        self._before = place.snapshot(pulse)

    def begins(self) -> None:
        """Take the files as they are now: the workers are about to open them."""
        if self._before:
            self._before.seal()

    def disturbance(self, ended: Sequence[Ended]) -> Disturbance | None:
        """Say what somebody else did by now; None when nothing is to be seen of it.

        No worker may be connected any more.
        """
        if self._before and (broken := self._before.exchanged()):
            return Disturbance(f"{broken} {MEANWHILE}", "failed")
        told = [one.done.findings for one in ended if one.done]
        for findings in told:
            if findings.broken_seal:
                return Disturbance(f"{findings.broken_seal} {MEANWHILE}")
        changes_alone = experiment_of(self._place.case).opens_database and not self._redefines
        if changes_alone and self._before and (changed := self._before.changed(self._pulse)):
            if changed.by_outsider:
                return changed._replace(text=experiment_of(self._place.case).name_outsider(changed.text))
            return changed
        for findings in told if experiment_of(self._place.case).applies_settings else ():
            for name, asked, answer in self._place.differences(findings.effective):
                return Disturbance(f"{name} was {asked} and became {answer} {MEANWHILE}")
        return None


def unread(disturbance: Disturbance) -> Verdict | None:
    """Return the verdict where a disturbance has left nothing to read; None where the proof can be made."""
    if disturbance.unread is None:
        return None
    if disturbance.unread == "failed":
        return Verdict((Check("database files", "failed", 0, 1, (disturbance.text,)),))
    return Verdict((Check("database files", disturbance.unread, note=disturbance.text),))


# Whether a measurement stood still: a machine that slept, a virtual one that was frozen, a stopped program.
#
# The clock that latencies are taken with goes on meanwhile, or it does not, as the system has it; either
# way the figures are not those of a machine that was awake. Seen from two sides: the parent looks about
# ten times a second, and a look that comes late says that nothing ran; and of a system's clocks one counts
# sleep and another does not.


NOTICED_S = 1.0
"""A machine that is only busy lets a process that sleeps run within a fraction of this."""


def seconds_asleep() -> float:
    """Return how far the clock that counts sleep is ahead of the one that does not.

    On Windows 0.0: what we look at there counts sleep, so that a look comes late.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    if sys.platform == "darwin":
        # Both of them raw: CLOCK_MONOTONIC is slewed there, by a second in some hours at worst.
        return time.clock_gettime(time.CLOCK_MONOTONIC_RAW) - time.clock_gettime(time.CLOCK_UPTIME_RAW)
    return 0.0


class Standstill:
    """Looks at the clocks, from when it is made."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, asleep: Callable[[], float] = seconds_asleep
    ) -> None:
        """`asleep` returns the seconds that the machine has slept, from any beginning."""
        self._clock, self._asleep = clock, asleep
        self._slept_before = self._asleep()
        self._last = clock()
        self._longest = (self._last, self._last)
        """The longest time between two looks: its begin and end."""

    def look(self) -> None:
        """Look at the clock: to be called several times a second."""
        now = self._clock()
        begin, end = self._longest
        if now - self._last > end - begin:
            self._longest = (self._last, now)
        self._last = now

    def seconds(self, went_on: Callable[[float, float], bool] = lambda begin_s, end_s: False) -> float:
        """Return how long nothing ran, at most; 0 for what a busy machine does, too.

        `went_on` returns whether workers went on between two times of the clock. If so, a look that comes
        late shows only that this process got no processor.
        """
        begin, end = self._longest
        late_s = end - begin
        if late_s > NOTICED_S and went_on(begin, end):
            late_s = 0.0
        longest = max(late_s, self._asleep() - self._slept_before)
        return longest if longest > NOTICED_S else 0.0


def went_on(window: Window, ended: Sequence[Ended], begin_s: float, end_s: float) -> bool:
    """Return whether workers finished operations in most bins of a window between two times.

    The bins are tenths of a second. False if none of them lies between the times as a whole.
    """
    counts = [one.done.totals.bins for one in ended if one.done]
    if window.closes_ns == FOREVER_NS or not any(counts):
        return False
    whole = (window.closes_ns - window.opens_ns) // window.bin_ns
    first = max(0, math.ceil((begin_s * NS_PER_S - window.opens_ns) / window.bin_ns))
    last = min(whole, math.floor((end_s * NS_PER_S - window.opens_ns) / window.bin_ns))
    merged = [sum(parts) for parts in zip_longest(*counts, fillvalue=0)]
    between = [merged[place] if place < len(merged) else 0 for place in range(first, last)]
    return 2 * sum(count > 0 for count in between) > len(between)


# When a trial's window opens and closes, and whether all workers were there in time.


LEAD_S = 0.005
"""How long before the common start the window is announced, where everybody hears of it at once."""
ANSWERS = 2.0
"""By how many times as long as all processes took to answer a call it is announced earlier."""


def plan_window(case: Case, now_ns: int, answer_s: float, extra_s: float = 0.0) -> Window:
    """Return the window, far enough ahead that every worker hears of it in time.

    By `extra_s` the window opens later: the warm-up is longer, or where none is wanted, the start is
    announced earlier.
    """
    starts_ns = now_ns + int((LEAD_S + ANSWERS * answer_s) * NS_PER_S)
    if not has_window(case):
        return Window(starts_ns, starts_ns, FOREVER_NS)
    opens = starts_ns + int((case.warmup_s + extra_s) * NS_PER_S)
    starts = starts_ns if case.warmup_s else opens
    return Window(starts, opens, opens + int(case.duration_s * NS_PER_S))


def lateness_s(case: Case, window: Window, ended: Sequence[Ended]) -> float:
    """Return how long the window was open when the last worker reached its loop; 0 when all were in time,
    and where one has died: a trial that is late is run again, and a death is not to be lost thereby.
    """
    if window.closes_ns == FOREVER_NS or not all(one.done for one in ended):
        return 0.0
    # One that never began has not done so by the end of the window.
    begins = [one.done.totals.first_ns or window.closes_ns for one in ended if one.done]
    late_s = (max(begins, default=0) - window.opens_ns) / NS_PER_S
    # Without a warm-up the window opens at the common start itself, which nobody meets to the nanosecond.
    tolerance_s = 0.0 if case.warmup_s else max(0.02, case.duration_s / 50)
    return late_s if late_s > tolerance_s else 0.0


class Flaw(NamedTuple):
    """Why a trial is not valid although nothing failed."""

    late_s: float
    """How long the window was open when the last worker reached its loop; 0: all were in time."""
    still_s: float
    """How long nothing ran; 0: everything did."""
    missing: str = ""
    """What did not happen, such as "transaction ended within the window of 300ms"; empty: it did."""
    crowd: str = ""
    """More processes than the cores can run, such as "1,000 processes on 2 cores"; empty if they are few."""
    quota: Throttling | None = None
    """Effect of a CPU quota that was used up; None if there was none."""

    def message(self, attempts: int) -> str:
        """Say what happened in the last of so many attempts, and what to do."""
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


CROWD = 50
"""Processes per core from which on each waits for seconds for its turn at a processor."""


def flaw_of(late_s: float, still_s: float, workers: int = 1, quota: Throttling | None = None) -> Flaw | None:
    """Return the flaw of a trial, if it has one."""
    if not (late_s or still_s):
        return None
    cores = usable_cores()
    crowd = f"{workers:,} processes on {cores} core{'s' * (cores != 1)}" if workers >= CROWD * cores else ""
    return Flaw(late_s, still_s, crowd=crowd, quota=quota if quota and quota.throttled else None)


def empty_flaw(case: Case, trial: Trial) -> Flaw | None:
    """Return the flaw of a window in which no operation ended: they are slow, or the disk stood still."""
    # At a rate what was not done stands in the table as queued.
    done = trial.transactions or trial.failed or trial.arrived
    if done or trial.error or not has_window(case) or not experiment_of(case).retries_empty:
        return None
    unit, window = unit_of(case), format_duration(case.duration_s)
    return Flaw(0.0, 0.0, f"{unit} ended within the window of {window}")


class Measured(NamedTuple):
    """What is known of a trial when its processes have ended."""

    window: Window
    ended: list[Ended]
    start_s: float
    """Until all were connected: since they were called, or with the published script started."""
    whole_s: float
    """The same, until all had ended."""
    series: list[Series]
    """What the companions have seen."""
    problem: str | None
    """What went wrong with them."""
    others: Shares | None
    """What others took of the processors; None: not observed."""
    quota: Throttling | None
    """Effect of the container's CPU quota; None if there is none."""
    disk_share: float | None
    """The share of the time in which others kept the disk busy; None: not seen."""
    still_s: float
    """How long nothing ran; 0: everything did."""


ATTEMPTS = 3
READY_S = 30.0
READY_EACH_S = 0.5
STALL_S = 30.0
HEAVY = 0.25
"""A trial during which others took more than this share of the processors, or of the disk, is run again."""
PATIENCE = 3
"""So many trials of a study are: a machine that is always busy would else be waited for without end."""


class TrialRunner:
    """Runs the trials of one measurement: it knows the folder, and gives each trial a salt of its own."""

    def __init__(
        self,
        folder: Path,
        keep: bool,
        signals: StopSignals,
        observer: Observer,
        first_salt: int,
        starter: Starter = SPAWNING,
        crew: Crew | None = None,
    ) -> None:
        """`crew`: who stays for the next trial; None: nobody does."""
        self.folder, self.keep, self.signals, self.observer = folder, keep, signals, observer
        self.starter, self._crew = starter, crew
        self.case_number = 0
        self.salt = first_salt
        """What the trial before began with: the next one has the next number, or one of those after it."""
        self.carry: dict[Any, Any] = {}
        """What trials hand on to later ones."""
        self._copies: dict[Any, Any] | None = None if keep else {}
        self._patience = PATIENCE
        self._disk = disk_of(folder)

    def run(self, case: Case, index: int) -> Trial:
        """Run one trial; one that others disturbed much is run once more, and the quieter one counts."""
        trial = self.flawless(case, index)
        sound = trial.error is None and trial.verdict.status != "failed"
        if not sound or self._patience <= 0 or self._attempts(case) == 1 or _others(trial) <= HEAVY:
            return trial
        self._patience -= 1
        again = self.flawless(case, index)
        # A second trial that failed is no better.
        worse = again.error is not None or (_others(again) >= _others(trial))
        chosen = again if again.verdict.status == "failed" or not worse else trial
        return replace(chosen, attempts=trial.attempts + again.attempts)

    def once(self, case: Case, index: int, pauses: Pauses | None) -> Trial:
        """Run a trial whose proof is wanted, and not its figures: however it went, it is examined."""
        trial, flaw = self._attempt(case, index, 0.0, pauses)
        # Where nothing was done, nothing was proved.
        return replace(trial, error=flaw.message(1)) if flaw and flaw.missing else trial

    def flawless(self, case: Case, index: int) -> Trial:
        """Run one trial; one with a flaw is run again, at most three times in all."""
        attempt, extra_s = 0, 0.0
        while True:
            attempt += 1
            trial, flaw = self._attempt(case, index, extra_s)
            # Wrong data is never given a second chance.
            if flaw is None or attempt == self._attempts(case) or trial.verdict.status == "failed":
                return replace(trial, attempts=attempt, error=flaw.message(attempt) if flaw else trial.error)
            # Many busy workers need some time until each has had its turn at a processor.
            extra_s += 2 * flaw.late_s

    def _attempts(self, case: Case) -> int:
        # The published script's files serve its whole sweep: what was done to them can't be done again.
        return ATTEMPTS if experiment_of(case).common_start else 1

    def _attempt(
        self, case: Case, index: int, extra_s: float, pauses: Pauses | None = None
    ) -> tuple[Trial, Flaw | None]:
        """Return a trial, and why it is not valid although nothing failed: then it may be run again."""
        self.salt += 1
        folder = self.folder
        if self.keep and experiment_of(case).common_start:
            label = re.sub(r"\W+", "-", case_label(case)).strip("-")
            folder = folder / f"case-{self.case_number}-{label}"
            folder.mkdir(exist_ok=True)
        if not experiment_of(case).applies_settings and not case.server:
            folder = trial_folder(folder)  # the user's code may make files next to the database
        place = open_place(case, folder)
        place.copies = self._copies
        work: Work = experiment_of(case).open_work(case, place, self.salt, self.carry)
        try:
            self.observer.phase("preparing")
            work.share(self._wait)
            with self._pool(case, place, work, pauses) as pool, self._unless_stopped():
                guard = self._prepared(case, place, work, pool)
                measured = self._measure(case, work, pool, extra_s)
            work.ended(self._wait)
            trial = self._summed(case, index, measured)
            late_s = lateness_s(case, measured.window, measured.ended)
            flaw = flaw_of(late_s, measured.still_s, case.concurrency, measured.quota)
            self.observer.phase("verifying")
            trial = self._examined(case, work, guard, trial, measured.ended)
            return trial, flaw or empty_flaw(case, trial)
        finally:
            work.release()
            self.discard(work.discard)

    def _pool(self, case: Case, place: Place, work: Work, pauses: Pauses | None) -> Pool:
        starter = self.starter if experiment_of(case).common_start else SPAWNING
        return Pool(
            case, place, self.salt, work.shared, work.companions, work.trace, starter, pauses, self._crew
        )

    def _prepared(self, case: Case, place: Place, work: Work, pool: Pool) -> Guard:
        """Prepare what is measured, while the processes come up; those of the published script begin when it
        is there, since their start is in its time.
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
        """Discard files, unless all are kept. What can't be removed does not replace what was measured.

        Windows refuses it while another program has them open: what comes next gets a folder of its own,
        and what stayed is removed with the run's.
        """
        if self.keep:
            return
        try:
            discard()
        except OSError:
            with suppress(OSError):
                self.folder = further(self.folder)

    def _examined(self, case: Case, work: Work, guard: Guard, trial: Trial, ended: Sequence[Ended]) -> Trial:
        """Add the verdict, and what else is learned when the workers have ended.

        Where that fails, what was measured is kept, as a trial that is not valid.
        """
        try:
            disturbance = guard.disturbance(ended)
            if disturbance:
                self.carry.clear()  # no further trial begins with these files
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
            why = str(as_failure(problem, case.driver)).removesuffix(".")
            if not trial.verdict.checks:
                trial = replace(trial, verdict=Verdict((Check("verification", "unknown", note=why),)))
                why = f"the data could not be verified: {why}"
            return replace(trial, error=trial.error or why)

    def _measure(self, case: Case, work: Work, pool: Pool, extra_s: float) -> Measured:
        """Let the processes work, and wait until they have ended."""
        # Until they work, nothing of ours uses the disk.
        disk = DiskWatch(self._disk if starts_silently(case) else None)
        begun_ns = time.perf_counter_ns()
        pool.call()
        if not experiment_of(case).common_start:
            # The published script has no barrier: each process begins when it is up.
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
        standstill = Standstill()
        watch = Watch(ours(case), window.starts_ns, window.closes_ns)
        quota = QuotaWatch(window.opens_ns, window.closes_ns)

        def pulse() -> None:
            self.signals.check()
            standstill.look()
            watch.pulse()
            quota.pulse()
            work.meanwhile(window, self.signals.check)
            self.observer.tick(pool.done_so_far())

        work.meanwhile(window, self.signals.check)
        ended = pool.gather(stall_s(case), pulse)
        throttling = quota.throttling()
        series, problem = pool.dismiss(STALL_S, self._wait)
        pool.join(STALL_S, self._wait)
        whole_s = (time.perf_counter_ns() - begun_ns) / NS_PER_S
        return Measured(
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

    def _summed(self, case: Case, index: int, measured: Measured) -> Trial:
        window = measured.window
        trial = summarise(case, index, window, measured.ended, measured.whole_s, measured.start_s)
        series = (*trial.series, *measured.series)
        error = trial.error or measured.problem
        trial = replace(
            trial, series=series, error=error, disk_share=measured.disk_share, quota=measured.quota
        )
        if others := measured.others:
            trial = replace(
                trial, foreign_share=others.foreign, stolen_share=others.stolen, throttled=others.throttled
            )
        return trial

    def _window(self, case: Case, pool: Pool, extra_s: float) -> Window:
        """Return the window: when all workers can have heard of it."""
        # How long it takes here and now until each process has heard something.
        begun = time.perf_counter_ns()
        pool.call()
        self._wait_ready(case, pool)
        now = time.perf_counter_ns()
        answer_s = (now - begun) / NS_PER_S
        return plan_window(case, now, answer_s, extra_s)

    def _wait_ready(self, case: Case, pool: Pool) -> None:
        failed = pool.wait_ready(READY_S + READY_EACH_S * case.concurrency, self._wait)
        if failed:
            raise WorkerFailure(f"{pool.name(failed[0].worker)} could not start: {failed[0].reason}")

    @contextmanager
    def _unless_stopped(self) -> Iterator[None]:
        """Let a failure count only if nobody has stopped us: that may have ended other processes first."""
        try:
            yield
        except WorkerFailure:
            self._wait()
            raise

    def _wait(self) -> None:
        self.signals.check()
        self.observer.waiting()


def _others(trial: Trial) -> float:
    """Return which share others took of the processors, or of the disk if that is more; 0: not seen."""
    taken = (trial.foreign_share or 0.0) + (trial.stolen_share or 0.0)
    # A trial that the quota has stopped is not quieter the next time.
    return max(0.0 if trial.quota and trial.quota.throttled else taken, trial.disk_share or 0.0)


def stall_s(case: Case) -> float:
    """Return how long no operation may end before the workers are taken for hung."""
    return 2 * max(case.settings.busy_timeout_ms / 1000, experiment_of(case).timeout_s(case)) + STALL_S
