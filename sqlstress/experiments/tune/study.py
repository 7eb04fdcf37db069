"""Both searches for settings, carried out: slices in turns, and what is known after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Generic, TypeVar

from sqlstress.engine.session import Bench
from sqlstress.engine.study import Progress, ReadWords, Steps, StudyRequest, kept_reason
from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT as MAIN
from sqlstress.experiment import commands
from sqlstress.experiments.tune.experiment import (
    NOT_HERE,
    OTHERWISE,
    SQLITE,
    YOURS,
    Compared,
    MeasuredPreset,
    Patience,
    Preset,
    PresetComparison,
    TunedLevel,
    TunedRow,
    Tuning,
    catalogue,
)
from sqlstress.experiments.tune.search import (
    DESIGN,
    FRESH,
    RACE,
    Options,
    Search,
    Slice,
    Space,
    factors_of,
    pragmas,
)
from sqlstress.experiments.tune.show import listed
from sqlstress.options.option import options_of
from sqlstress.options.parsing import suggestion
from sqlstress.plan import all_parsed, cases_of, options_of_command, seeded
from sqlstress.report import Report, Run
from sqlstress.report.case import Case
from sqlstress.report.study_results import Gain
from sqlstress.show.blocks import Block
from sqlstress.statistics.compare import Passes
from sqlstress.statistics.search import Row

R = TypeVar("R", Tuning, PresetComparison)
K = TypeVar("K", bound=Hashable)


class SliceStudy(Generic[R, K]):
    """Measures slices in turns: what both searches have in common. A step is a slice."""

    key = ""
    """Under which the result stands in a report."""

    def __init__(self, result: R, clock: Callable[[], float]) -> None:
        """`result` says what is to be done, and has what was found; `clock` tells seconds."""
        self.result: R = result
        self._clock, self._begun = clock, 0.0
        self._runs: dict[K, Run] = {}

    def report(self, blank: Report) -> Report:
        """Return what was found by now, and the slices, those of the same settings together."""
        runs = tuple(run for run in self._runs.values() if run.trials or run.error)
        results = {self.key: self.result} if runs else {}
        return replace(blank, runs=runs, planned=self._planned(runs), results=results)

    def _planned(self, runs: Sequence[Run]) -> int:
        return len(runs)

    def _has_trials(self) -> bool:
        return any(run.trials for run in self._runs.values())

    def _is_broken(self) -> bool:
        return bool(self.result.wrong or self.result.error)

    def _measure(self, bench: Bench, place: K, number: int, is_base: bool, label: str = "") -> float | None:
        """Return what a slice did in a second; None where it could not be measured.

        What SQLite does not take of settings is no reason to leave out the others, but for the base.
        """
        run: Run = self._runs[place]
        try:
            trial = bench.runner.run(run.case, number)
        except Exception as problem:
            if isinstance(problem, UsageError) and not is_base:
                self._refuse(place, problem)
                return None
            error = kept_reason(problem, run.case.driver, nothing_yet=not self._has_trials())
            self._runs[place] = replace(run, error=error)
            self.result = replace(self.result, error=f"{label}{error}")
            return None
        slow = None if trial.tps else "nothing was completed within a slice: give a longer --duration"
        error_of_trial = trial.error or slow
        self._runs[place] = replace(run, trials=(*run.trials, trial), error=error_of_trial)
        if trial.verdict.status == "failed":
            example = next(iter(trial.verdict.counterexamples), "see the report")
            self.result = replace(self.result, wrong=f"{label}{example}")
        elif error_of_trial:
            self.result = replace(self.result, error=f"{label}{error_of_trial}")
        return trial.tps or None

    def _refuse(self, place: K, problem: UsageError) -> None:
        raise NotImplementedError


class TuneStudy(SliceStudy[Tuning, tuple[str, Row]]):
    """Searches; the runs are those of a stage and a row of the grid."""

    key = "tune"

    def __init__(self, tuning: Tuning, space: Space, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(tuning, clock)
        self._space = space
        self._search = Search(space.sizes, tuning.case.seed, self._spent)
        self._refused: UsageError | None = None
        """The last thing that SQLite did not take."""

    def steps(self, bench: Bench) -> Steps:
        """Measure what the search asks for, until it is over or a slice can't be measured.

        Raises UsageError when SQLite takes nothing of it.
        """
        self._begun = self._clock()
        for wanted in self._search.slices():
            place = wanted.stage, wanted.row
            self._runs.setdefault(place, Run(self._space.case(wanted.row), arm=wanted.stage))
            rate = self._measure(bench, place, wanted.round, is_base=not any(wanted.row))
            self._search.enter(wanted, rate)
            self._learn()
            bench.runner.observer.progress(self._progress(wanted))
            if self._has_trials():
                yield
            if self._is_broken():
                return
        self._learn()
        if self._refused is not None and not self._has_trials():
            raise self._refused

    def _spent(self) -> float:
        return (self._clock() - self._begun) / self.result.max_time_s

    def _refuse(self, place: tuple[str, Row], problem: UsageError) -> None:
        self._refused = problem
        refused = f"{' '.join(self._space.words(place[1]))}: {problem}"
        self.result = replace(self.result, refused=(*self.result.refused, refused))

    def _learn(self) -> None:
        """Enter what the search knows by now."""
        search, space = self._search, self._space
        effects = {(effect.factor, effect.level): Gain.of(effect.ratio) for effect in search.effects()}
        chosen = search.chosen
        self.result = replace(
            self.result,
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
            pragmas=pragmas(space.case(chosen).settings, self.result.case.settings) if chosen else (),
            gain=Gain.of(search.gain()),
            seconds=self._clock() - self._begun,
        )

    def _progress(self, done: Slice) -> Progress:
        """Return how far it has come: the share of the time that is over, and what is known."""
        label = {
            DESIGN: f"balanced design, slice {self._search.entered}",
            RACE: f"race, round {done.round + 1}, {len(self._search.racing)} left",
            FRESH: f"fresh pairs, {done.round + 1}",
        }[done.stage]
        gain = self.result.gain
        note = f"{gain.low:.2f} to {gain.high:.2f} times" if gain else ""
        left_s = max(0.0, self.result.max_time_s - self.result.seconds)
        return Progress(label, min(self._spent(), 1.0), 1.0, note, left_s)


class PresetStudy(SliceStudy[PresetComparison, str]):
    """Measures presets, in rounds of a slice of each; the runs are those of the presets."""

    key = "presets"

    def __init__(
        self,
        comparison: PresetComparison,
        cases: Mapping[str, Case],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`cases` are those of the presets."""
        super().__init__(comparison, clock)
        self._runs = {name: Run(case, arm=name) for name, case in cases.items()}

    def _planned(self, runs: Sequence[Run]) -> int:
        return len(self._runs)

    def steps(self, bench: Bench) -> Steps:
        """Measure round by round, until there are enough, time is over, or nothing is left to compare."""
        self._begun = self._clock()
        for number in range(self.result.planned):
            order = [name for name, run in self._runs.items() if run.error is None]
            Random(f"{self.result.case.seed}:presets:{number}").shuffle(order)
            for name in order:
                self._measure(bench, name, number, name == self.result.against, f"{name}: ")
                self._learn(number)
                bench.runner.observer.progress(self._progress(number))
                yield
                if self._is_broken():
                    return
            # Another round would end too late, or would have nothing to compare.
            limit_s, elapsed_s = self.result.max_time_s, self._clock() - self._begun
            if limit_s is not None and elapsed_s / (number + 1) * (number + 2) > limit_s:
                return
            if sum(run.error is None for run in self._runs.values()) < 2:
                return

    def _refuse(self, place: str, problem: UsageError) -> None:
        self._runs[place] = replace(self._runs[place], error=str(problem))

    def _learn(self, number: int) -> None:
        """Enter what the slices say by now: all that is said of any two presets holds together."""
        rates = {name: run.rates() for name, run in self._runs.items() if run.rates()}
        passes, base = Passes(rates, error=0.05), self.result.against

        def known(preset: MeasuredPreset) -> MeasuredPreset:
            run, gain = self._runs[preset.name], preset.gain
            if preset.name != base and {preset.name, base} <= rates.keys():
                gain = Gain.of(passes.ratio(base, preset.name))
            effective = (run.trials[0].effective if run.trials else {}) or preset.effective
            return replace(preset, gain=gain, effective=effective, error=run.error)

        whole = [len(run.trials) for run in self._runs.values() if run.error is None]
        self.result = replace(
            self.result,
            presets=tuple(map(known, self.result.presets)),
            rounds=min(whole, default=number),
            seconds=self._clock() - self._begun,
        )

    def _progress(self, number: int) -> Progress:
        planned, limit_s, seconds = self.result.planned, self.result.max_time_s, self.result.seconds
        done = sum(len(run.trials) for run in self._runs.values()) / max(1, len(self._runs))
        left_s = seconds / done * (planned - done) if done else 0.0
        if limit_s is not None:
            left_s = min(left_s, max(0.0, limit_s - seconds))
        return Progress(f"round {number + 1} of {planned}", done, planned, "", left_s)


def tune_study(given: Mapping[str, Any], _: ReadWords) -> StudyRequest:
    """Return the search that options ask for, as they were typed. Raises UsageError."""
    own = all_parsed(options_of(Patience).values(), given)
    load = {name: value for name, value in given.items() if name not in own}
    usual = {name: said["default"] for name, said in OTHERWISE.items() if "default" in said}
    planned = seeded({**usual, **load})
    cases = cases_of(planned)
    buckets = list(dict.fromkeys(case.buckets for case in cases))
    if len(cases) > len(buckets):
        raise UsageError("tune takes one number of processes. Give one --concurrency.")

    def plan(options: Options) -> Case:
        (case,) = cases_of({**planned, "buckets": buckets[0], **options})
        # What fails for a busy database is part of what a setting does, and no failure.
        return replace(case, repeat=1, max_failed=1.0)

    base = plan({})
    factors = factors_of(load, base, buckets)
    tuning = Tuning(base, tuple(factor.name for factor in factors), own["max-time"])
    return StudyRequest(TuneStudy(tuning, Space(factors, plan)), (base,), bool(own["strict"]))


def preset_study(given: Mapping[str, Any], read: ReadWords) -> StudyRequest | tuple[Block, ...]:
    """Return the list of the presets, or the study that options ask for. Raises UsageError."""
    own = all_parsed(options_of(Compared).values(), given)
    if own["compare"] is None:
        for name in given:
            what = "a load" if name == "load" else f"--{name}"
            raise UsageError(f"{what} needs presets to measure. Add --compare rails,django.")
        return tuple(listed(catalogue().values()))
    command, load = _load(own["load"], read)
    replaced = {"pragma", *(name for preset in catalogue().values() for name in preset.settings)}
    sets_something = not replaced.isdisjoint(load)
    chosen = _chosen(own["compare"], own["against"] or (YOURS if sets_something else SQLITE))
    cases: dict[str, Case] = {}
    for name, preset in chosen.items():
        settings: dict[str, Any] = {}
        if preset:
            settings = {**preset.settings, "pragma": (*load.get("pragma", ()), *preset.pragmas)}
        planned = cases_of({**load, **settings}, command)
        if len(planned) != 1:
            raise UsageError(
                f"the load has {len(planned):,} cases, and presets takes one. Give single values, such as "
                "--concurrency 4.",
            )
        cases[name] = replace(planned[0], repeat=1, max_failed=1.0)
    (against, base), *_ = cases.items()
    presets = tuple(
        MeasuredPreset(name, preset.project, preset.source, preset.looked_up, preset.words, preset.apart)
        if preset
        else MeasuredPreset(name)
        for name, preset in chosen.items()
    )
    comparison = PresetComparison(base, against, own["rounds"], presets=presets, max_time_s=own["max-time"])
    return StudyRequest(PresetStudy(comparison, cases), tuple(cases.values()), bool(own["strict"]))


def _chosen(names: tuple[str, ...], against: str) -> dict[str, Preset | None]:
    """Return presets by name, first the one that others are set against; None is the load's own settings."""
    known = catalogue()
    named = dict.fromkeys([against, *(known if names == ("all",) else names)])
    for name in named:
        if name not in known and name != YOURS:
            raise UsageError(
                f"no such preset: {name!r:.60}.{suggestion(name, known)} Choose from {', '.join(known)}; "
                f"{YOURS} is your own settings, after --."
            )
    if len(named) < 2:
        raise UsageError("--compare needs two presets. Add another.")
    return {name: known.get(name) for name in named}


def _load(words: Sequence[str], read: ReadWords) -> tuple[str, Mapping[str, Any]]:
    """Return the command of a load, and its options. Raises UsageError for a load that can't be compared.

    It has a window, and connections that a preset can set; that of the main experiment need not be named.
    """
    loads = [
        name
        for name, experiment in commands().items()
        if experiment.behaviour.windowed and experiment.behaviour.connects and experiment.behaviour.sets
    ]
    command, rest = MAIN, words
    if words and not words[0].startswith("-"):
        command, rest = words[0], words[1:]
        if command not in loads:
            raise UsageError(
                f"{command!r:.60} is not a load. After --, give options of {MAIN}, or one of "
                f"{', '.join(loads)} and its options."
            )
    options = [known for known in options_of_command(command) if known.name not in NOT_HERE]
    given = read(rest, options, "behind --")
    counted = ("duration", "warmup") if "ops" in given else ()
    usual = {"concurrency": "4", "duration": "1s", "warmup": "300ms"}
    names = {known.name for known in options} - {*counted}
    return command, seeded({**{name: usual[name] for name in usual.keys() & names}, **given})
