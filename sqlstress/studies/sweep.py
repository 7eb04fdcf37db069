"""Sweep: cases measured in passes, with one trial of each case in a pass."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import NamedTuple

from sqlstress.analysis.answers import leaders
from sqlstress.analysis.disturbances import MAX_SYNC_CHANGE
from sqlstress.analysis.group import group_runs
from sqlstress.analysis.wording import places
from sqlstress.engine.harness_cost import harness_ns
from sqlstress.engine.omissions import COSTS, is_omitted
from sqlstress.engine.pool import HUNG, WorkerFailure
from sqlstress.engine.session import Bench, MeasuringSession
from sqlstress.engine.study import SILENT, B, BenchOpener, Observer, Progress, Steps, Study, kept_reason
from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import EnvironmentFailure, Interrupted
from sqlstress.experiment import case_label, experiment_of
from sqlstress.machine.sync_cost import measure
from sqlstress.plan import Plan
from sqlstress.report import LEFT_OUT, Report, Run, SyncCost
from sqlstress.report.case import Case
from sqlstress.statistics.compare import spread

# With passes, a drift of the machine (heat, another program's load, the state of the disk) affects all cases
# equally. If all trials of a case came in succession, drift would look like a difference between the cases.
# Trials of one pass are close in time, so they can be compared in pairs.


class Turn(NamedTuple):
    """Planned trial of a sweep."""

    case: int
    """Index of the case in the sweep."""
    number: int
    """Number of the pass, from 0; also the index of the trial among those of the case."""
    is_longer: bool = False
    """Whether this is the additional trial after all passes, with a longer measurement."""

    def measured(self, cases: Sequence[Case]) -> Case:
        """Return the case of this trial, with the longer duration if `is_longer`."""
        case = cases[self.case]
        return replace(case, duration_s=LONGER_S) if self.is_longer else case


LONGER_S = 2.0
"""Length of the longer measurement, in seconds: long enough to show long waits and rare events."""


def plan_turns(cases: Sequence[Case]) -> Iterator[Turn]:
    """Yield the trials of a sweep in order.

    The first pass has the given order of cases, the second pass the reverse order. Later passes have a random
    order: with reversals only, a periodic effect of the machine could always disturb the same case. If all
    trials share files (`common_start` is False), the trials of a case follow one another.
    """
    if any(not experiment_of(case).common_start for case in cases):
        yield from (Turn(index, trial) for index, case in enumerate(cases) for trial in range(case.repeat))
        return
    draw, order = Random(f"{cases[0].seed}:passes"), list(range(len(cases)))
    for number in range(max(case.repeat for case in cases)):
        if number == 1:
            order.reverse()
        elif number:
            draw.shuffle(order)
        yield from (Turn(index, number) for index in order if number < cases[index].repeat)


def longer_turn(cases: Sequence[Case]) -> list[Turn]:
    """Return a list with an additional, longer trial for long waits and rare events, or [].

    It repeats the case with the most processes among those whose usual trials are too short.
    """
    hidden = [index for index, case in enumerate(cases) if experiment_of(case).needs_longer_window(case)]
    if not hidden:
        return []
    largest = max(hidden, key=lambda index: (cases[index].concurrency, -cases[index].buckets))
    return [Turn(largest, cases[largest].repeat, is_longer=True)]


TRIAL_S = 0.1
WORKER_S = 0.02
"""Estimated overhead in seconds: TRIAL_S per trial, and WORKER_S per worker of it."""
AVERAGED_TICKS = 10
"""Number of reports of progress, about a second, over which the displayed TPS is averaged."""
NOTE_WIDTH = len("1,234,567 TPS")


def expected_trial_s(case: Case) -> float:
    """Return the estimated duration of a trial, in seconds, before any trial has ended."""
    return TRIAL_S + WORKER_S * case.concurrency + experiment_of(case).estimated_s(case)


class SweepProgress(Observer):
    """Observer of trials, which reports the progress of the whole sweep to another observer.

    Progress is the elapsed time as a share of the expected duration. The estimate improves with each trial.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        order: Sequence[Turn],
        observer: Observer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer, self._clock = observer, clock
        passes = 1 + max(turn.number for turn in order if not turn.is_longer)

        def label(turn: Turn) -> str:
            number = f"pass {turn.number + 1}/{passes}" if passes > 1 else f"{turn.case + 1}/{len(cases)}"
            return f"[{'longer' if turn.is_longer else number}] {case_label(cases[turn.case])}"

        self._labels = [*map(label, order)]
        self._width = max(map(len, self._labels))
        self._count = [
            partial(experiment_of(case).count_transactions, case)
            for case in (turn.measured(cases) for turn in order)
        ]
        self._until = [0.0, *accumulate(expected_trial_s(turn.measured(cases)) for turn in order)]
        """Expected time from the start of the sweep to each trial's start, in seconds; last, the total."""
        self._index, self._done, self._note, self._best = 0, 0.0, "", ""
        self._started = self._begun = clock()
        self._recent: deque[tuple[float, int]] = deque(maxlen=AVERAGED_TICKS)

    def begin(self, index: int) -> None:
        """Start the trial with this index in `order`."""
        self._index, self._begun, self._note = index, self._clock(), ""

    def best(self, text: str) -> None:
        """Set the text on the best result so far; "" if there is no result yet."""
        self._best = text

    def phase(self, name: str) -> None:
        self._note = name
        self._recent.clear()
        self._report_progress()
        self._observer.phase(name)

    def waiting(self) -> None:
        self._report_progress()
        self._observer.waiting()

    def tick(self, operations: int) -> None:
        now = self._clock()
        self._recent.append((now, operations))
        earlier, earlier_operations = self._recent[0]
        if operations > earlier_operations and now > earlier:
            rate = self._count[self._index](operations - earlier_operations) / (now - earlier)
            self._note = f"{rate:,.0f} TPS"
        self._report_progress()
        self._observer.tick(operations)

    def progress(self, progress: Progress) -> None:
        self._observer.progress(progress)

    def left_s(self) -> float:
        """Return the time left, in seconds, estimated from the trials that have ended."""
        before, after = self._until[self._index], self._until[self._index + 1]
        pace = (self._begun - self._started) / before if before else 1.0
        current = pace * (after - before) - (self._clock() - self._begun)
        return max(current, 0.0) + pace * (self._until[-1] - after)

    def _report_progress(self) -> None:
        left, elapsed = self.left_s(), self._clock() - self._started
        # The share of done work must not decrease, even if a trial takes longer than expected.
        self._done = max(self._done, elapsed / ((elapsed + left) or 1.0))
        label = self._labels[self._index]
        note = self._best or self._note
        self.progress(Progress(label, self._done, 1.0, note, left, self._width, NOTE_WIDTH))


def best_so_far(runs: Sequence[Run]) -> str:
    """Return a text on the fastest cases so far; "" if they cannot be compared yet."""
    groups = group_runs(runs)
    if len(groups) != 1 or groups[0].case.rate or not experiment_of(groups[0].case).windowed:
        return ""
    usable = [run for run in groups[0].runs if groups[0].is_comparable(run)]
    tested = groups[0].pairwise_tests(usable) if len(usable) > 1 else None
    if tested is None:
        return ""
    lead = leaders(tested, usable)
    width = spread([*lead.best.rates().values()])
    about = "" if width is None else f" ±{width:.0%}" if width < 1 else " ±>99%"
    return (
        f"best so far {lead.best.median_tps():,.0f} TPS{about} with {places(run.case for run in lead.runs)}"
    )


SECOND_BUDGET_NS = 50_000_000
"""Time limit of a second measurement of the cost of a sync, in ns, which confirms the first."""


def _confirmed_sync(
    folder: Path, before: SyncCost, again: SyncCost | None
) -> tuple[SyncCost | None, SyncCost | None]:
    """Return the cost of a sync after the sweep, measured once or twice; None if not measured.

    It is measured twice if the first cost differs much from `before` or `again`, the costs before the sweep.
    """
    after: SyncCost | None = None
    with suppress(EnvironmentFailure):
        after = measure(folder, (before.primitive,))
        costs_ns = [cost.overwrite_p50_ns for cost in (before, again) if cost]
        if max(*costs_ns, after.overwrite_p50_ns) > MAX_SYNC_CHANGE * min(*costs_ns, after.overwrite_p50_ns):
            return after, measure(folder, (before.primitive,), budget_ns=SECOND_BUDGET_NS)
    return after, None


class Sweep:
    """Measurement of cases in passes, as a study. Each step is a trial of one case."""

    def __init__(self, cases: Sequence[Case], keep_going: bool = False) -> None:
        """`keep_going` is whether to go on after a case with wrong data."""
        self.cases, self._keep_going = tuple(cases), keep_going
        self._runs: dict[int, Run] = {}
        """Results by the index of the case."""
        self._harness_ns: dict[Case, float | None] = {}
        """Time of sqlstress's own code per operation, in ns, by case with one process; None if unknown."""
        self._sync_again: SyncCost | None = None
        self._sync_after: tuple[SyncCost | None, SyncCost | None] = (None, None)

    def report(self, blank: Report) -> Report:
        """Return `blank`, a report without results, with those so far, in the plan's order."""
        runs = tuple(
            _with_trial_error(self._runs[index])
            for index in sorted(self._runs)
            if _has_content(self._runs[index])
        )
        after, again = self._sync_after
        environment = replace(
            blank.environment, sync_again=self._sync_again, sync_after=after, sync_after_again=again
        )
        return replace(blank, runs=runs, planned=len(self.cases), environment=environment)

    def steps(self, bench: Bench) -> Steps:
        """Run at most one trial per step until all cases are measured, or one has wrong data.

        Raise an error that occurs before any result, because it probably affects all cases. The failure of a
        worker ends only its own case.
        """
        order, runner = [*plan_turns(self.cases), *longer_turn(self.cases)], bench.runner
        # For a target that stores no data, and so never syncs, the environment lists no library.
        syncs = bench.report.environment.builds and not is_omitted(COSTS)
        before = bench.report.environment.sync if syncs else None
        if before:
            with suppress(EnvironmentFailure):
                self._sync_again = measure(runner.folder, (before.primitive,), budget_ns=SECOND_BUDGET_NS)
        runner.observer = pace = SweepProgress(self.cases, order, runner.observer)
        for number, turn in enumerate(order):
            pace.begin(number)
            runner.case_number = turn.case + 1
            try:
                self._run_turn(turn, runner)
            except Exception as problem:
                # The failure of a worker concerns only its case, so it is no reason to raise.
                nothing_yet = not (
                    any(map(_has_content, self._runs.values())) or isinstance(problem, WorkerFailure)
                )
                error = kept_reason(problem, self.cases[turn.case].driver, nothing_yet=nothing_yet)
                # Keep the first error of a run, because later errors follow from it.
                run = _with_trial_error(self._runs[turn.case])
                self._runs[turn.case] = replace(run, error=run.error or error)
            wrong = not self._keep_going and self._runs[turn.case].verdict.status == "failed"
            if wrong:
                for index, case in enumerate(self.cases):
                    self._runs.setdefault(index, Run(case, skipped=LEFT_OUT))
            is_last = wrong or number == len(order) - 1
            if is_last and before:
                self._sync_after = _confirmed_sync(runner.folder, before, self._sync_again)
            if number + 1 < len(order) and order[number + 1].number != turn.number:  # a pass has ended
                pace.best(best_so_far([*self._runs.values()]))
            yield
            if is_last:
                return

    def _run_turn(self, turn: Turn, runner: TrialRunner) -> None:
        case, run = self.cases[turn.case], self._runs.get(turn.case)
        if run and (run.error or run.skipped):
            return
        # Results of other cases may be a reason to skip a case before its first trial. Later, only its own
        # results count, so that a case that has begun is measured in all passes.
        runs = (run,) if run else tuple(self._runs.values())
        reason = experiment_of(case).skip_reason(case, runs)
        if run and reason:
            return
        if run is None:
            self._runs[turn.case] = run = Run(case, skipped=reason)
            if reason:
                return
            alone = replace(case, concurrency=1)
            if alone not in self._harness_ns:
                self._harness_ns[alone] = harness_ns(alone, runner.carry, runner.signals.check)
            self._runs[turn.case] = run = Run(case, harness_ns=self._harness_ns[alone])
        if turn.is_longer:
            trial = runner.run_valid(turn.measured(self.cases), turn.number)
            self._runs[turn.case] = replace(run, longer=trial, error=trial.error)
            return
        trial = runner.run(run.case, turn.number)
        # After a hang the case gets no further trial: it would probably hang again, which takes long to
        # detect.
        hung = any((worker.error or "").startswith(HUNG) for worker in trial.workers)
        self._runs[turn.case] = replace(
            run, trials=(*run.trials, trial), error=trial.error if hung else run.error
        )
        runner.signals.check()


def _has_content(run: Run) -> bool:
    return bool(run.trials or run.error or run.skipped)


def _with_trial_error(run: Run) -> Run:
    """Return a copy of the run. If it has no error, it gets the error of its first invalid trial."""
    return replace(run, error=run.error or next((trial.error for trial in run.trials if trial.error), None))


def study_of_plan(
    plan: Plan, directory: Path, keep: bool, command: tuple[str, ...], keep_going: bool = False
) -> tuple[Study[Bench], MeasuringSession]:
    """Return the study of a plan (usually a sweep) and the session in which it runs."""
    study_spec = plan.experiment and plan.experiment.study
    study: Study[Bench] = (
        study_spec.make(plan.cases, plan.selection) if study_spec else Sweep(plan.cases, keep_going)
    )
    return study, MeasuringSession(plan.cases, directory, keep, command)


Save = Callable[[Report], None]
"""Function that saves the report so far. It must not raise an exception."""


SAVE_PAUSE_FACTOR = 50
"""Least time between two saves of the report, as a multiple of the last save's time."""


def run_study(
    study: Study[B], opening: BenchOpener[B], save: Save = lambda _: None, observer: Observer = SILENT
) -> Report:
    """Open a bench (the objects with which a study measures), and return the study's report.

    `save` gets the report from time to time. Raises SqlstressError if there is no result.
    """
    with opening.opened(observer) as bench:
        return run_on_bench(study, bench, save)


def run_on_bench(
    study: Study[B], bench: B, save: Save = lambda _: None, clock: Callable[[], float] = time.monotonic
) -> Report:
    """Run a study with an open bench, and return its report. `clock` returns a time in seconds."""
    saved, next_s, interrupted = None, -math.inf, False
    try:
        with closing(study.steps(bench)) as steps:
            for _ in steps:
                if (begun_s := clock()) >= next_s:
                    saved = study.report(bench.report)
                    save(saved)
                    ended_s = clock()
                    next_s = ended_s + SAVE_PAUSE_FACTOR * (ended_s - begun_s)
    except Interrupted:
        interrupted = True
    report = replace(study.report(bench.report), interrupted=interrupted)
    if report.holds_something and report != saved:
        save(report)
    return report
