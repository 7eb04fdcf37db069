"""The search for the highest rate that holds a promise: a closed loop first, then window after window."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.analysis.highest_rate import answered, enough, margin, unjudged
from sqlstress.engine.session import Bench
from sqlstress.engine.study import Progress, Steps, kept_reason
from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import UsageError
from sqlstress.experiment import experiment_of, get_experiment
from sqlstress.options.option import Option, chosen, option, options_of
from sqlstress.options.parsing import duration, switch
from sqlstress.plan import all_parsed, cases_of, fixed_options, options_of_load
from sqlstress.registry import DEFAULT
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Arrivals, Case
from sqlstress.report.study_results import PROMISE, LimitSearch, Promise
from sqlstress.show.shown import presenter_of
from sqlstress.statistics.search import next_rate
from sqlstress.statistics.units import format_duration

CLOSED_S = 2.0
"""Window of the closed loop that says where to begin."""
FIRST = 0.7
"""At which share of what that reaches."""
CHECKPOINTS = 3
"""So many a window is to span, at half of what the closed loop reaches."""
SHORTEST_S, LONGEST_S = 4.0, 10.0
MOST_S = 20.0
"""No window is longer, however few operations are due: lower rates are not tried."""
SURE = 4.0
"""Standard deviations of arrivals by chance, by which more than enough operations are to be due."""
PATIENCE = 2
"""Windows in a row of which nothing follows, after which the search ends."""
USUAL = 20
"""Windows of a search on a quiet machine, about."""


def window_s(case: Case, closed: Trial) -> float:
    """Return how long windows are to be, in seconds, so that each spans checkpoints.

    A commit writes a page of the WAL or more, and so many pages make a checkpoint, in each file.
    """
    experiment = experiment_of(case)
    commits = presenter_of(case).commits(closed)
    if commits is None and experiment.writes(case):
        commits = closed.transactions  # of which each may be one
    pages = closed.effective.get("wal_autocheckpoint", "")
    if not commits or not pages.isdecimal() or closed.effective.get("journal_mode") != "wal":
        return SHORTEST_S
    each_s = int(pages) * case.buckets * closed.seconds / (commits / 2)
    return min(max(math.ceil(CHECKPOINTS * each_s), SHORTEST_S), LONGEST_S)


def due(promise: Promise) -> int:
    """Return how many operations are to be due in a window, so that enough of them come by any chance."""
    least = enough(promise.bounds)
    return math.ceil(least + SURE * math.sqrt(least))


class LimitStudy:
    """Looks for the highest rate; a step is a window."""

    def __init__(
        self,
        case: Case,
        search: LimitSearch,
        spacing: str,
        duration_s: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`case` is one in a closed loop. `duration_s`: that of the windows; None: the study says it."""
        self.case, self.search, self._spacing, self._duration_s = case, search, spacing, duration_s
        self._clock = clock
        self._closed: Run | None = None
        self._runs: dict[int, Run] = {}
        self._seen: list[tuple[int, float]] = []
        """The rate and the margin of each window that was judged."""

    def report(self, blank: Report) -> Report:
        """Return what has been measured, the closed loop first, then the rates in ascending order."""
        runs = (*([self._closed] if self._closed else []), *(self._runs[rate] for rate in sorted(self._runs)))
        return replace(blank, runs=runs, planned=len(runs), limit=self.search)

    def steps(self, bench: Bench) -> Steps:
        """Measure until both ends of the answer are known, time is over, or a window can't be measured.

        A window is measured in any case.
        """
        begun = self._clock()
        closed = replace(self.case, duration_s=self._duration_s or CLOSED_S)
        self._closed = self._measured(Run(closed), bench.runner)
        yield
        trial = self._closed.shown()
        if trial is None or self._is_wrong(self._closed):
            return
        self._tell(bench, begun)
        yield from self._search(bench, begun, trial)

    def _search(self, bench: Bench, begun: float, closed: Trial) -> Steps:
        """Measure windows at rates."""
        usual_s, wanted = self._duration_s or window_s(self.case, closed), due(self.search.promise)
        most_s, in_vain = max(MOST_S, usual_s), 0
        first, lowest = max(1, int(FIRST * closed.tps)), max(1, math.ceil(wanted / most_s))
        while (rate := next_rate(self._seen, first, lowest)) is not None:
            elapsed_s = self._clock() - begun
            if self._runs and self.search.max_time_s is not None and elapsed_s > self.search.max_time_s:
                self._end(f"{self.search.max_time_s:g} s were over (--max-time)")
                return
            length_s = min(max(usual_s, math.ceil(10 * wanted / rate) / 10), most_s)
            case = replace(self.case, duration_s=length_s, arrivals=Arrivals(rate, self._spacing))
            run = self._runs[rate] = self._measured(self._runs.get(rate) or Run(case), bench.runner)
            self.search = replace(self.search, seconds=self._clock() - begun)
            in_vain = 0 if run.error or self._judged(rate, run.trials[-1]) else in_vain + 1
            self._tell(bench, begun)
            yield
            if run.error or self._is_wrong(run):
                return
            if in_vain == PATIENCE:
                self._end(f"{PATIENCE} windows in a row could not be judged")
                return
        if lowest > 1 and all(margin > 0 for _, margin in self._seen):
            self._end(f"at lower rates a window of {format_duration(most_s)} has too few operations")

    def _judged(self, rate: int, window: Trial) -> bool:
        """Note what a window says; return False where nothing follows from it."""
        if unjudged(window, self.search.promise):
            return False
        self._seen.append((rate, margin(window, self.search.promise)))
        return True

    def _measured(self, run: Run, runner: TrialRunner) -> Run:
        """Return a run with one more window, or with why there is none."""
        trials = run.trials
        try:
            trial = runner.run(run.case, len(trials))
        except Exception as problem:
            error: str | None = kept_reason(problem, run.case.driver, nothing_yet=self._closed is None)
        else:
            trials, error = (*trials, trial), trial.error
        if error:
            self._end(f"a window could not be measured: {error}")
        return replace(run, trials=trials, error=error)

    def _is_wrong(self, run: Run) -> bool:
        if run.verdict.status == "failed":
            self._end("the data is wrong")
        return run.verdict.status == "failed"

    def _end(self, why: str) -> None:
        self.search = replace(self.search, ended=why)

    def _tell(self, bench: Bench, begun: float) -> None:
        report = self.report(bench.report)
        found = answered(report, self.search)
        count = sum(len(run.valid) for run in self._runs.values())
        total = max(USUAL, count + 1)
        elapsed_s = self._clock() - begun
        known = f"about {found.about}/s" if found.about else "limit ?"
        if found.holds and found.breaks:
            known += f" [{found.holds} to {found.breaks}]"
        left_s = elapsed_s / (count + 1) * (total - count)
        bench.runner.observer.progress(Progress(f"window {count + 1}", count, total, known, left_s))


# The options of the search for the highest rate: what is promised, and those of the experiment.


_OTHERWISE: dict[str, dict[str, Any]] = {
    "concurrency": {
        "default": "4",
        "help": "Number of processes, each with one connection. Give a single number.",
    },
    "target": {"metavar": "NAME", "help": "Target to measure: sqlite or postgres."},
    "buckets": {"help": "Number of buckets: database files over which the keys are hash-partitioned."},
    "duration": {
        "default": None,
        "help": "Length of a window, longer at low rates. Default: the time of 3 checkpoints, 4s to 10s.",
    },
    "warmup": {"default": "500ms"},
}
"""What options of the experiment mean here."""
_NOT_HERE = ("repeat", "max-failed", "ops", "rate", "latency-limit")
"""Options of the experiment that the search decides itself, or that make the answer another one."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is searched."""

    max_time: float = option(
        duration(1.0), "5m", PROMISE, "Time limit. No window starts after it.", metavar="DURATION"
    )
    strict: bool = option(switch, None, PROMISE, "Exit 3 if the answer is incomplete.", flag=True)


PROMISED = (*chosen(options_of(Promise)), *chosen(options_of(Patience)))


def limit_options(command: str = DEFAULT) -> tuple[Option, ...]:
    """Return all options of the command for an experiment."""
    left_out = (*_NOT_HERE, *get_experiment(command).single_case_values)
    return (*PROMISED, *options_of_load(command, _OTHERWISE, left_out))


def search_for(given: Mapping[str, Any], command: str = DEFAULT) -> LimitStudy:
    """Return the search that options ask for: unparsed values by name. Raises UsageError."""
    own = all_parsed(PROMISED, given)
    promise = Promise(own["p50"], own["p99"], own["p999"], own["max"])
    if not promise.bounds:
        raise UsageError("no latency promise. Give --p99 10ms, or --p50, --p999 or --max.")
    load = {name: value for name, value in given.items() if name not in own}
    for name in load.keys() & {*_NOT_HERE, *get_experiment(command).single_case_values}:
        raise UsageError(f"--{name} is not an option of limit. Leave it out.")
    usual = {"concurrency": "4", "warmup": "500ms", "arrival": "poisson", "rate": "1"}
    cases = cases_of({**usual, **fixed_options(command), **load}, command)
    if len(cases) > 1:
        raise UsageError("limit finds a single rate. Give one --concurrency, one --buckets and one --target.")
    (case,) = cases
    assert case.arrivals
    return LimitStudy(
        # It looks for where operations begin to fail: that is no failure.
        replace(case, arrivals=None, repeat=1, max_failed=1.0),
        LimitSearch(promise, own["max-time"]),
        case.arrivals.spacing,
        case.duration_s if load.get("duration") else None,
    )
