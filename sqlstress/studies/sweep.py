"""A sweep: cases in passes, a trial of each; and which study it is that is asked for."""

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
from sqlstress.analysis.disturbances import CHANGED_OVER
from sqlstress.analysis.group import group_runs
from sqlstress.analysis.wording import places
from sqlstress.engine.harness_cost import harness_ns
from sqlstress.engine.pool import HUNG, WorkerFailure
from sqlstress.engine.session import Bench, Session
from sqlstress.engine.study import NOBODY, B, Observer, Opening, Progress, Steps, Study, kept_reason
from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import EnvironmentFailure, Interrupted
from sqlstress.experiment import case_label, experiment_of
from sqlstress.machine.sync_cost import measure
from sqlstress.plan import Planned
from sqlstress.report import LEFT_OUT, Report, Run, SyncCost
from sqlstress.report.case import Case
from sqlstress.statistics.compare import spread

# In which order cases are measured: in passes over all of them, so that drift meets all alike.
#
# What changes while we measure (heat, a neighbour, the disk's mood) would else be taken for what differs
# between the cases: the trials of one case would meet it, and those of another one not. Two trials of one
# pass lie near each other in time, and are a pair.


class Turn(NamedTuple):
    """One trial of a sweep."""

    case: int
    """Which case."""
    number: int
    """Which of its trials, from 0: the number of the pass."""
    is_longer: bool = False
    """Whether it is none of the passes, but the longer window behind them."""

    def measured(self, cases: Sequence[Case]) -> Case:
        """Return the case that it measures."""
        case = cases[self.case]
        return replace(case, duration_s=LONGER_S) if self.is_longer else case


LONGER_S = 2.0
"""Length of the window in which waits show that others are too short for."""


def turns(cases: Sequence[Case]) -> Iterator[Turn]:
    """Yield the trials of a sweep in their order.

    The first pass goes as the cases were asked for, the second one backwards; each further one goes in an
    order of its own that is drawn from the seed. The reverse of the order before would let what comes around
    at regular times meet a case in the same way twice. The published script's files serve all of its cases,
    one after the other: they are measured so.
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
    """Return the turn with a longer window, if there is one: of the case whose processes wait longest.

    That is the one with the most processes, on the fewest files.
    """
    hidden = [place for place, case in enumerate(cases) if experiment_of(case).misses_long_waits(case)]
    if not hidden:
        return []
    largest = max(hidden, key=lambda place: (cases[place].concurrency, -cases[place].buckets))
    return [Turn(largest, cases[largest].repeat, is_longer=True)]


# How far a sweep has come: which case of which pass, the TPS of the moment, and the time that is left.


TRIAL_S = 0.1
WORKER_S = 0.02
"""What a trial takes around its work, and more for each worker."""
RECENT = 10
"""Ticks over which the TPS of the moment is taken: about a second."""
NOTE_WIDTH = len("1,234,567 TPS")


def expected_s(case: Case) -> float:
    """Return a guess of how long a trial takes, in seconds; a Pace corrects it as trials end."""
    return TRIAL_S + WORKER_S * case.concurrency + experiment_of(case).estimated_s(case)


class Pace(Observer):
    """An Observer of trials: hands on what it hears, and adds how far the sweep has come.

    That is measured in the seconds that the trials are expected to take, corrected as they end.
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
            return f"[{'waits' if turn.is_longer else number}] {case_label(cases[turn.case])}"

        self._labels = [*map(label, order)]
        self._width = max(map(len, self._labels))
        self._count = [
            partial(experiment_of(case).count_transactions, case)
            for case in (turn.measured(cases) for turn in order)
        ]
        self._until = [0.0, *accumulate(expected_s(turn.measured(cases)) for turn in order)]
        """Expected seconds of the trials before each, and of all."""
        self._index, self._done, self._note, self._best = 0, 0.0, "", ""
        self._started = self._begun = clock()
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)

    def begin(self, index: int) -> None:
        """Go on to the trial of this number."""
        self._index, self._begun, self._note = index, self._clock(), ""

    def best(self, text: str) -> None:
        """From now on tell this answer, as far as it is known; "": there is none yet."""
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
        then, before = self._recent[0]
        if operations > before and now > then:
            rate = self._count[self._index](operations - before) / (now - then)
            self._note = f"{rate:,.0f} TPS"
        self._report_progress()
        self._observer.tick(operations)

    def progress(self, progress: Progress) -> None:
        self._observer.progress(progress)

    def left_s(self) -> float:
        """Return the seconds that are left, as far as the finished trials teach it."""
        before, after = self._until[self._index], self._until[self._index + 1]
        pace = (self._begun - self._started) / before if before else 1.0
        current = pace * (after - before) - (self._clock() - self._begun)
        return max(current, 0.0) + pace * (self._until[-1] - after)

    def _report_progress(self) -> None:
        left, elapsed = self.left_s(), self._clock() - self._started
        # What has once been said to be done stays so when a trial takes longer than expected.
        self._done = max(self._done, elapsed / ((elapsed + left) or 1.0))
        label = self._labels[self._index]
        note = self._best or self._note
        self.progress(Progress(label, self._done, 1.0, note, left, self._width, NOTE_WIDTH))


def best_so_far(runs: Sequence[Run]) -> str:
    """Return which of some runs may be the best by now, and what the first of them reaches.

    "" of cases that are not set beside each other, and of too few passes.
    """
    groups = group_runs(runs)
    if len(groups) != 1 or groups[0].case.rate or not experiment_of(groups[0].case).windowed:
        return ""
    believed = [run for run in groups[0].runs if groups[0].is_believed(run)]
    tested = groups[0].tested(believed) if len(believed) > 1 else None
    if tested is None:
        return ""
    lead = leaders(tested, believed)
    reach = spread([*lead.best.rates().values()])
    about = "" if reach is None else f" ±{reach:.0%}" if reach < 1 else " ±>99%"
    return (
        f"best so far {lead.best.median_tps():,.0f} TPS{about} with {places(run.case for run in lead.runs)}"
    )


SECOND_BUDGET_NS = 50_000_000
"""Time for the second samples of a sync, of each kind; they only confirm the first ones."""


def _confirmed_sync(
    folder: Path, before: SyncCost, again: SyncCost | None
) -> tuple[SyncCost | None, SyncCost | None]:
    """Return the cost of a sync now, and a second sample if the first one differs from those before."""
    after: SyncCost | None = None
    with suppress(EnvironmentFailure):
        after = measure(folder, (before.primitive,))
        known = [cost.overwrite_p50_ns for cost in (before, again) if cost]
        if max(*known, after.overwrite_p50_ns) > CHANGED_OVER * min(*known, after.overwrite_p50_ns):
            return after, measure(folder, (before.primitive,), budget_ns=SECOND_BUDGET_NS)
    return after, None


class Sweep:
    """Measures cases; a step is a trial of one of them."""

    def __init__(self, cases: Sequence[Case], keep_going: bool = False) -> None:
        """`keep_going`: measure the other cases too when the data of one is wrong."""
        self.cases, self._keep_going = tuple(cases), keep_going
        self._runs: dict[int, Run] = {}
        """By the place of their cases."""
        self._harness_ns: dict[Case, float | None] = {}
        """By the case that one process alone would have."""
        self._sync_again: SyncCost | None = None
        self._sync_after: tuple[SyncCost | None, SyncCost | None] = (None, None)

    def report(self, blank: Report) -> Report:
        """Return the cases that have been measured, in the order in which they were asked for."""
        runs = tuple(_whole(self._runs[index]) for index in sorted(self._runs) if _says(self._runs[index]))
        after, again = self._sync_after
        environment = replace(
            blank.environment, sync_again=self._sync_again, sync_after=after, sync_after_again=again
        )
        return replace(blank, runs=runs, planned=len(self.cases), environment=environment)

    def steps(self, bench: Bench) -> Steps:
        """Measure all cases, or up to wrong data. What stops the first one would stop the others: raised."""
        order, runner = [*turns(self.cases), *longer_turn(self.cases)], bench.runner
        # A target that stores nothing syncs nothing.
        before = bench.report.environment.sync if bench.report.environment.builds else None
        if before:
            with suppress(EnvironmentFailure):
                self._sync_again = measure(runner.folder, (before.primitive,), budget_ns=SECOND_BUDGET_NS)
        runner.observer = pace = Pace(self.cases, order, runner.observer)
        for number, turn in enumerate(order):
            pace.begin(number)
            runner.case_number = turn.case + 1
            try:
                self._take(turn, runner)
            except Exception as problem:
                # A worker that fails stops its own case only.
                nothing_yet = not (any(map(_says, self._runs.values())) or isinstance(problem, WorkerFailure))
                error = kept_reason(problem, self.cases[turn.case].driver, nothing_yet=nothing_yet)
                # Of what went wrong, the first thing explains the others.
                run = _whole(self._runs[turn.case])
                self._runs[turn.case] = replace(run, error=run.error or error)
            wrong = not self._keep_going and self._runs[turn.case].verdict.status == "failed"
            if wrong:
                self._leave_out_the_others()
            is_last = wrong or number == len(order) - 1
            if is_last and before:
                self._sync_after = _confirmed_sync(runner.folder, before, self._sync_again)
            if number + 1 < len(order) and order[number + 1].number != turn.number:  # a pass has ended
                pace.best(best_so_far([*self._runs.values()]))
            yield
            if is_last:
                return

    def _leave_out_the_others(self) -> None:
        for index, case in enumerate(self.cases):
            self._runs.setdefault(index, Run(case, skipped=LEFT_OUT))

    def _take(self, turn: Turn, runner: TrialRunner) -> None:
        """Run a trial of a case, unless the case has ended by now, or need not be measured."""
        case, run = self.cases[turn.case], self._runs.get(turn.case)
        if run and (run.error or run.skipped):
            return
        # Later passes depend on the earlier passes of their case only, so that all cases keep their passes.
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
            trial = runner.flawless(turn.measured(self.cases), turn.number)
            self._runs[turn.case] = replace(run, longer=trial, error=trial.error)
            return
        trial = runner.run(run.case, turn.number)
        # What hangs would do so in the next pass, and that takes its time.
        hung = any((worker.error or "").startswith(HUNG) for worker in trial.workers)
        self._runs[turn.case] = replace(
            run, trials=(*run.trials, trial), error=trial.error if hung else run.error
        )
        runner.signals.check()


def _says(run: Run) -> bool:
    """Return whether there is anything to report of a run, which may only have begun."""
    return bool(run.trials or run.error or run.skipped)


def _whole(run: Run) -> Run:
    """Return a run; where one of its trials is not valid, the run says so too."""
    return replace(run, error=run.error or next((trial.error for trial in run.trials if trial.error), None))


def study_of_plan(
    plan: Planned, directory: Path, keep: bool, command: tuple[str, ...], keep_going: bool = False
) -> tuple[Study[Bench], Session]:
    """Return the study of an experiment that has one of its own, else a sweep of the cases."""
    own = plan.experiment and plan.experiment.study
    study: Study[Bench] = own.make(plan.cases, plan.selection) if own else Sweep(plan.cases, keep_going)
    return study, Session(plan.cases, directory, keep, command)


# The one way in which a study is carried out: measured step by step, saved after each, ended.


Save = Callable[[Report], None]
"""Called with the report as it is by then; must not raise."""


SAVING = 20
"""So many times as long as saving took, nothing is saved. Each long step is saved at once; many short ones
do not wait for the saving, whose cost grows with what there is already."""


def nowhere(_: Report) -> None:
    """Save nothing."""


def carry_out(
    study: Study[B], opening: Opening[B], save: Save = nowhere, observer: Observer = NOBODY
) -> Report:
    """Return what a study found; the report says whether it was interrupted.

    Raises SqlstressError when nothing could be measured at all.
    """
    with opening.opened(observer) as bench:
        return follow(study, bench, save)


def follow(
    study: Study[B], bench: B, save: Save = nowhere, clock: Callable[[], float] = time.monotonic
) -> Report:
    """Do the same with a bench that is open already."""
    saved, next_s, interrupted = None, -math.inf, False
    try:
        with closing(study.steps(bench)) as steps:
            for _ in steps:
                if (begun_s := clock()) >= next_s:
                    saved = study.report(bench.report)
                    save(saved)
                    ended_s = clock()
                    next_s = ended_s + SAVING * (ended_s - begun_s)
    except Interrupted:
        interrupted = True
    report = replace(study.report(bench.report), interrupted=interrupted)
    if report.holds_something and report != saved:
        save(report)
    return report
