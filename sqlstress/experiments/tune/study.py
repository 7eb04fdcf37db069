"""The search for better settings, carried out: the slices that it asks for, and what is known after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlstress.engine.failure import kept_reason
from sqlstress.engine.session import Bench
from sqlstress.engine.study import Progress, ReadWords, Steps, StudyRequest
from sqlstress.errors import UsageError
from sqlstress.experiments.tune.experiment import OTHERWISE, Patience
from sqlstress.experiments.tune.results import TunedLevel, TunedRow, Tuning
from sqlstress.experiments.tune.search import (
    DESIGN,
    FRESH,
    RACE,
    Options,
    Search,
    Slice,
    Slices,
    Space,
    factors_of,
    pragmas,
)
from sqlstress.options.option import options_of
from sqlstress.plan import cases_of, parsed, seeded
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Case
from sqlstress.report.study_results import Gain
from sqlstress.statistics.search import Row

SAVE_EVERY_S = 1.0
"""Slices are many: to write all of them after each would take as long as they do."""
NOTHING = "nothing was completed within a slice: give a longer --duration"


class TuneStudy:
    """Searches; a step is a slice."""

    save_every_s = SAVE_EVERY_S

    def __init__(self, tuning: Tuning, space: Space, clock: Callable[[], float] = time.monotonic) -> None:
        """`tuning` says what is to be done, and has what was found; `clock` tells seconds."""
        self.tuning, self._space, self._clock, self._begun = tuning, space, clock, 0.0
        self._search = Search(space.sizes, tuning.case.seed, self._spent)
        self._runs: dict[tuple[str, Row], Run] = {}
        self._slices = 0
        self._refused: UsageError | None = None
        """The last thing that SQLite did not take."""

    def report(self, blank: Report) -> Report:
        """Return what was found by now, and the slices, stage by stage."""
        runs = tuple(run for run in self._runs.values() if run.trials or run.error)
        return replace(blank, runs=runs, planned=len(runs), results={"tune": self.tuning} if runs else {})

    def steps(self, bench: Bench) -> Steps:
        """Measure what the search asks for, until it is over or a slice can't be measured.

        Raises UsageError when SQLite takes nothing of it.
        """
        self._begun = self._clock()
        slices = self._search.slices()
        wanted = next(slices, None)
        while wanted is not None:
            done, rate = wanted, self._measured(bench, wanted)
            wanted = _after(slices, rate)
            self._learn()
            bench.runner.observer.progress(self._progress(done))
            if self._has_trials():
                yield
            if self.tuning.wrong or self.tuning.error:
                return
        if self._refused is not None and not self._has_trials():
            raise self._refused

    def _has_trials(self) -> bool:
        return any(run.trials for run in self._runs.values())

    def _spent(self) -> float:
        return (self._clock() - self._begun) / self.tuning.max_time_s

    def _measured(self, bench: Bench, wanted: Slice) -> float | None:
        """Return what a slice did in a second; None where it could not be measured."""
        place = wanted.stage, wanted.row
        run = self._runs.get(place) or Run(self._space.case(wanted.row), arm=wanted.stage)
        self._runs[place] = run
        self._slices += 1
        try:
            trial = bench.runner.run(run.case, wanted.round)
        except UsageError as problem:
            if not any(wanted.row):
                self._keep_error(problem, place)
            else:
                self._refuse(wanted.row, problem)
        except Exception as problem:
            self._keep_error(problem, place)
        else:
            self._take(trial, place)
            return trial.tps or None
        return None

    def _take(self, trial: Trial, place: tuple[str, Row]) -> None:
        run = self._runs[place]
        error = trial.error or (None if trial.tps else NOTHING)
        self._runs[place] = replace(run, trials=(*run.trials, trial), error=error)
        if trial.verdict.status == "failed":
            example = next(iter(trial.verdict.counterexamples), "see the report")
            self.tuning = replace(self.tuning, wrong=example)
        elif error:
            self.tuning = replace(self.tuning, error=error)

    def _refuse(self, row: Row, problem: UsageError) -> None:
        """Note what SQLite does not take: the search goes on without it."""
        self._refused = problem
        told = f"{' '.join(self._space.words(row))}: {problem}"
        self.tuning = replace(self.tuning, refused=(*self.tuning.refused, told))

    def _keep_error(self, problem: Exception, place: tuple[str, Row]) -> None:
        error = kept_reason(problem, self.tuning.case.driver, nothing_yet=not self._has_trials())
        self._runs[place] = replace(self._runs[place], error=error)
        self.tuning = replace(self.tuning, error=error)

    def _learn(self) -> None:
        """Enter what the search knows by now."""
        search, space, base = self._search, self._space, self.tuning.case.settings
        effects = {(one.factor, one.level): Gain.of(one.ratio) for one in search.effects()}
        chosen = search.chosen
        self.tuning = replace(
            self.tuning,
            levels=tuple(
                TunedLevel(factor.name, value, effects.get((number, level)))
                for number, factor in enumerate(space.factors)
                for level, (value, _) in enumerate(factor.levels)
                if level
            ),
            designed=sum(map(len, search.rates[DESIGN].values())),
            raced=tuple(
                TunedRow(
                    space.values(row), rounds, row in search.racing, Gain.of(ratio) if any(row) else None
                )
                for row, rounds, ratio in search.raced()
            ),
            chosen=space.words(chosen) if chosen else (),
            pragmas=pragmas(space.case(chosen).settings, base) if chosen else (),
            gain=Gain.of(search.gain()),
            seconds=self._clock() - self._begun,
        )

    def _progress(self, done: Slice) -> Progress:
        """Return how far it has come: the share of the time that is over, and what is known."""
        share = min(self._spent(), 1.0)
        label = {
            DESIGN: f"balanced design, slice {self._slices}",
            RACE: f"race, round {done.round + 1}, {len(self._search.racing)} left",
            FRESH: f"fresh pairs, {done.round + 1}",
        }[done.stage]
        gain = self.tuning.gain
        note = f"{gain.low:.2f} to {gain.high:.2f} times" if gain else ""
        return Progress(label, share, 1.0, note, max(0.0, self.tuning.max_time_s - self.tuning.seconds))


def _after(slices: Slices, rate: float | None) -> Slice | None:
    """Return which slice is asked for after that figure; None when there is none."""
    try:
        return slices.send(rate)
    except StopIteration:
        return None


# What the options of a search ask for: the study, over the cases of its load.


def study_of(given: Mapping[str, Any], _: ReadWords) -> StudyRequest:
    """Return the study that options ask for, as they were typed. Raises UsageError."""
    known = {one.name: one for one in options_of(Patience).values()}
    own = {name: parsed(option, given.get(name, option.default)) for name, option in known.items()}
    load = {name: value for name, value in given.items() if name not in known}
    usual = {name: said["default"] for name, said in OTHERWISE.items() if "default" in said}
    planned = seeded({**usual, **load})
    cases = cases_of(planned)
    buckets = list(dict.fromkeys(case.buckets for case in cases))
    if len(cases) > len(buckets):
        raise UsageError("one number of processes at a time: what is best for 2 need not be for 8.")

    def plan(options: Options) -> Case:
        (case,) = cases_of({**planned, "buckets": buckets[0], **options})
        # What fails for a busy database is part of what a setting does, and no failure.
        return replace(case, repeat=1, max_failed=1.0)

    base = plan({})
    factors = factors_of(load, base, buckets)
    tuning = Tuning(base, tuple(factor.name for factor in factors), own["max-time"])
    return StudyRequest(TuneStudy(tuning, Space(factors, plan)), (base,), bool(own["strict"]))
