"""Search for the highest rate of operations at which a latency promise still holds.

The first rate comes from a closed loop, in which each worker runs its operations back to back. After that,
operations are due at a fixed rate in each window (the measured time of a trial).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.analysis.highest_rate import answer_of, margin, min_operations, skip_reason
from sqlstress.engine.session import Bench
from sqlstress.engine.study import Progress, Steps, kept_reason
from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import UsageError
from sqlstress.experiment import experiment_of, get_experiment
from sqlstress.options.option import Option, option, options_of, select_options
from sqlstress.options.parsing import duration, switch
from sqlstress.plan import cases_of, fixed_options, options_of_load, parse_options
from sqlstress.registry import DEFAULT
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Arrivals, Case
from sqlstress.report.study_results import PROMISE, LimitSearch, Promise
from sqlstress.show.shown import presenter_of
from sqlstress.statistics.search import next_rate
from sqlstress.statistics.units import format_duration

CLOSED_S = 2.0
"""Length of the closed-loop trial that determines the first rate, in seconds."""
FIRST_RATE_SHARE = 0.7
"""First rate, as a share of the rate that the closed loop reached."""
CHECKPOINTS_PER_WINDOW = 3
"""Number of checkpoints that a window should contain at half of the closed loop's rate."""
SHORTEST_S, LONGEST_S = 4.0, 10.0
MAX_WINDOW_S = 20.0
"""Maximum length of a window, in seconds, unless --duration is longer.

The search does not try rates at which a window of this length has too few operations.
"""
DUE_MARGIN = 4.0
"""Surplus of planned over required operations, in standard deviations of their number."""
PATIENCE = 2
"""Number of consecutive windows without a conclusion after which the search ends."""
TYPICAL_WINDOWS = 20
"""Typical number of windows of a search on a quiet machine, used to estimate the time left."""


def window_s(case: Case, closed: Trial) -> float:
    """Return a window's length in seconds: the time of CHECKPOINTS_PER_WINDOW checkpoints.

    The result is from SHORTEST_S to LONGEST_S. The time between two checkpoints follows from the commits in
    the closed loop: each writes at least one page to the WAL, and SQLite starts a checkpoint after
    `wal_autocheckpoint` pages.
    """
    experiment = experiment_of(case)
    commits = presenter_of(case).commits(closed)
    if commits is None and experiment.writes(case):
        # The number of commits is unknown. It is at most the number of transactions.
        commits = closed.transactions
    pages = closed.effective.get("wal_autocheckpoint", "")
    if not commits or not pages.isdecimal() or closed.effective.get("journal_mode") != "wal":
        return SHORTEST_S
    checkpoint_s = int(pages) * case.buckets * closed.seconds / (commits / 2)
    return min(max(math.ceil(CHECKPOINTS_PER_WINDOW * checkpoint_s), SHORTEST_S), LONGEST_S)


def operations_to_schedule(promise: Promise) -> int:
    """Return the number of operations to plan for a window: those required, and a margin.

    A promise on p99, for example, cannot be judged with few operations. Because due times are random, fewer
    operations than planned may become due.
    """
    required = min_operations(promise.bounds)
    return math.ceil(required + DUE_MARGIN * math.sqrt(required))


class LimitStudy:
    """Search for the highest rate as a study. Each step measures one window."""

    def __init__(
        self,
        case: Case,
        search: LimitSearch,
        spacing: str,
        duration_s: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`duration_s` is the length of windows; None to compute it. `spacing` is one of ARRIVAL_SPACINGS."""
        self.case, self.search, self._spacing, self._duration_s = case, search, spacing, duration_s
        self._clock = clock
        self._closed: Run | None = None
        self._runs: dict[int, Run] = {}
        self._margins: list[tuple[int, float]] = []
        """(Rate, margin) of each judged window. The margin is above 0 if the promise was broken."""

    def report(self, blank: Report) -> Report:
        """Return `blank`, a report without runs, with the runs of the closed loop and of each rate."""
        runs = (*([self._closed] if self._closed else []), *(self._runs[rate] for rate in sorted(self._runs)))
        return replace(blank, runs=runs, planned=len(runs), limit=self.search)

    def steps(self, bench: Bench) -> Steps:
        """Measure at least one rate, until the limit is known, the time is over, or a window fails."""
        start_s = self._clock()
        closed = replace(self.case, duration_s=self._duration_s or CLOSED_S)
        self._closed = self._measure(Run(closed), bench.runner)
        yield
        trial = self._closed.valid_median_trial()
        if trial is None or self._is_wrong(self._closed):
            return
        self._report_progress(bench, start_s)
        yield from self._search(bench, start_s, trial)

    def _search(self, bench: Bench, start_s: float, closed_loop: Trial) -> Steps:
        usual_s, needed = (
            self._duration_s or window_s(self.case, closed_loop),
            operations_to_schedule(self.search.promise),
        )
        most_s, inconclusive = max(MAX_WINDOW_S, usual_s), 0
        first, lowest = max(1, int(FIRST_RATE_SHARE * closed_loop.tps)), max(1, math.ceil(needed / most_s))
        while (rate := next_rate(self._margins, first, lowest)) is not None:
            elapsed_s = self._clock() - start_s
            if self._runs and self.search.max_time_s is not None and elapsed_s > self.search.max_time_s:
                self._set_end(f"{self.search.max_time_s:g} s were over (--max-time)")
                return
            length_s = min(max(usual_s, math.ceil(10 * needed / rate) / 10), most_s)
            case = replace(self.case, duration_s=length_s, arrivals=Arrivals(rate, self._spacing))
            run = self._runs[rate] = self._measure(self._runs.get(rate) or Run(case), bench.runner)
            self.search = replace(self.search, seconds=self._clock() - start_s)
            inconclusive = 0 if run.error or self._record_margin(rate, run.trials[-1]) else inconclusive + 1
            self._report_progress(bench, start_s)
            yield
            if run.error or self._is_wrong(run):
                return
            if inconclusive == PATIENCE:
                self._set_end(f"{PATIENCE} windows in a row could not be judged")
                return
        if lowest > 1 and all(margin > 0 for _, margin in self._margins):
            self._set_end(f"at lower rates a window of {format_duration(most_s)} has too few operations")

    def _record_margin(self, rate: int, window: Trial) -> bool:
        """Record how far a window kept or broke the promise; False if it cannot be judged."""
        if skip_reason(window, self.search.promise):
            return False
        self._margins.append((rate, margin(window, self.search.promise)))
        return True

    def _measure(self, run: Run, runner: TrialRunner) -> Run:
        """Measure a window. Return `run` with the window, or with the error that prevented it."""
        trials = run.trials
        try:
            trial = runner.run(run.case, len(trials))
        except Exception as problem:
            error: str | None = kept_reason(problem, run.case.driver, nothing_yet=self._closed is None)
        else:
            trials, error = (*trials, trial), trial.error
        if error:
            self._set_end(f"a window could not be measured: {error}")
        return replace(run, trials=trials, error=error)

    def _is_wrong(self, run: Run) -> bool:
        if run.verdict.status == "failed":
            self._set_end("the data is wrong")
        return run.verdict.status == "failed"

    def _set_end(self, reason: str) -> None:
        self.search = replace(self.search, ended=reason)

    def _report_progress(self, bench: Bench, start_s: float) -> None:
        report = self.report(bench.report)
        answer = answer_of(report, self.search)
        count = sum(len(run.valid) for run in self._runs.values())
        total = max(TYPICAL_WINDOWS, count + 1)
        elapsed_s = self._clock() - start_s
        note = f"about {answer.about}/s" if answer.about else "limit ?"
        if answer.holds and answer.breaks:
            note += f" [{answer.holds} to {answer.breaks}]"
        left_s = elapsed_s / (count + 1) * (total - count)
        bench.runner.observer.progress(Progress(f"window {count + 1}", count, total, note, left_s))


_OVERRIDES: dict[str, dict[str, Any]] = {
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
"""Defaults and help texts that options of the load have in a search only, by option name."""
_UNSUPPORTED = ("repeat", "max-failed", "ops", "rate", "latency-limit")
"""Options that the search sets itself, or with which it would answer another question."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Options that limit the search."""

    max_time: float = option(
        duration(1.0), "5m", PROMISE, "Time limit. No window starts after it.", metavar="DURATION"
    )
    strict: bool = option(switch, None, PROMISE, "Exit 3 if the answer is incomplete.", flag=True)


PROMISE_OPTIONS = (*select_options(options_of(Promise)), *select_options(options_of(SearchLimits)))


def limit_options(command: str = DEFAULT) -> tuple[Option, ...]:
    """Return all options of the command `limit` for an experiment."""
    left_out = (*_UNSUPPORTED, *get_experiment(command).single_case_values)
    return (*PROMISE_OPTIONS, *options_of_load(command, _OVERRIDES, left_out))


def search_for(given: Mapping[str, Any], command: str = DEFAULT) -> LimitStudy:
    """Return the search for these unparsed options, given by name. Raises UsageError for invalid options."""
    values = parse_options(PROMISE_OPTIONS, given)
    promise = Promise(values["p50"], values["p99"], values["p999"], values["max"])
    if not promise.bounds:
        raise UsageError("no latency promise. Give --p99 10ms, or --p50, --p999 or --max.")
    load = {name: value for name, value in given.items() if name not in values}
    for name in load.keys() & {*_UNSUPPORTED, *get_experiment(command).single_case_values}:
        raise UsageError(f"--{name} is not an option of limit. Leave it out.")
    defaults = {"concurrency": "4", "warmup": "500ms", "arrival": "poisson", "rate": "1"}
    cases = cases_of({**defaults, **fixed_options(command), **load}, command)
    if len(cases) > 1:
        raise UsageError("limit finds a single rate. Give one --concurrency, one --buckets and one --target.")
    (case,) = cases
    assert case.arrivals
    return LimitStudy(
        # The search also tries rates that are too high. Failed operations at such rates are no error.
        replace(case, arrivals=None, repeat=1, max_failed=1.0),
        LimitSearch(promise, values["max-time"]),
        case.arrivals.spacing,
        case.duration_s if load.get("duration") else None,
    )
