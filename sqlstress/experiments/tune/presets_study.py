"""Presets measured in turns: a round has a slice of each, in an order that is drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from sqlstress.engine.failure import kept_reason
from sqlstress.engine.session import Bench
from sqlstress.engine.study import Progress, ReadWords, Steps, StudyRequest
from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT as MAIN
from sqlstress.experiment import Experiment, commands
from sqlstress.experiments.tune.presets import SQLITE, YOURS, Compared, Preset, catalogue
from sqlstress.experiments.tune.results import MeasuredPreset, PresetComparison
from sqlstress.experiments.tune.show_presets import listed
from sqlstress.options.option import options_of
from sqlstress.plan import AT_A_RATE, cases_of, options_of_command, parsed, seeded, suggestion
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Case
from sqlstress.report.study_results import Gain
from sqlstress.show.blocks import Block
from sqlstress.statistics.compare import Passes

ERROR = 0.05
"""With this probability at most, anything that is said of any two presets is wrong."""
NOTHING = "nothing was completed within a slice: give a longer --duration"


class PresetStudy:
    """Measures presets; a step is a slice."""

    save_every_s = 0.0

    def __init__(
        self,
        comparison: PresetComparison,
        cases: Mapping[str, Case],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`comparison` says what is to be done, and has what was found; `cases` are those of the presets."""
        self.comparison, self._clock, self._begun = comparison, clock, 0.0
        self._runs = {name: Run(case, arm=name) for name, case in cases.items()}
        self._presets = {one.name: one for one in comparison.presets}

    def report(self, blank: Report) -> Report:
        """Return what was found by now, and the slices, preset by preset."""
        runs = tuple(run for run in self._runs.values() if run.trials or run.error)
        results = {"presets": self.comparison} if runs else {}
        return replace(blank, runs=runs, planned=len(self._runs), results=results)

    def steps(self, bench: Bench) -> Steps:
        """Measure round by round, until there are enough, time is over, or nothing is left to compare."""
        self._begun = self._clock()
        for number in range(self.comparison.planned):
            order = [name for name, run in self._runs.items() if run.error is None]
            Random(f"{self.comparison.case.seed}:presets:{number}").shuffle(order)
            for name in order:
                self._measure(bench, name, number)
                self._learn(number)
                self._report_progress(bench, number)
                yield
                if self.comparison.wrong or self.comparison.error:
                    return
            if self._is_over(number + 1):
                return

    def _measure(self, bench: Bench, name: str, number: int) -> None:
        run = self._runs[name]
        try:
            trial = bench.runner.run(run.case, number)
        except Exception as problem:
            nothing_yet = not any(one.trials for one in self._runs.values())
            base = name == self.comparison.against
            # What SQLite does not take is no reason to leave out the others.
            refused = isinstance(problem, UsageError) and not base
            error = kept_reason(problem, run.case.driver, nothing_yet=nothing_yet and not refused)
            self._fail(name, error, ends=not refused)
        else:
            self._take(name, trial)

    def _take(self, name: str, trial: Trial) -> None:
        self._runs[name] = run = replace(self._runs[name], trials=(*self._runs[name].trials, trial))
        if trial.verdict.status == "failed":
            example = next(iter(trial.verdict.counterexamples), "see the report")
            self.comparison = replace(self.comparison, wrong=f"{name}: {example}")
        elif error := trial.error or (None if trial.tps else NOTHING):
            self._fail(name, error, ends=True)
        if trial.effective:
            self._presets[name] = replace(self._presets[name], effective=run.trials[0].effective)

    def _fail(self, name: str, error: str, *, ends: bool) -> None:
        self._runs[name] = replace(self._runs[name], error=error)
        self._presets[name] = replace(self._presets[name], error=error)
        if ends:
            self.comparison = replace(self.comparison, error=f"{name}: {error}")

    def _learn(self, number: int) -> None:
        """Enter what the slices say by now."""
        rates = {name: run.rates() for name, run in self._runs.items() if run.rates()}
        passes, base = Passes(rates, ERROR), self.comparison.against
        whole = [len(run.trials) for run in self._runs.values() if run.error is None]
        presets = (
            replace(one, gain=Gain.of(passes.ratio(base, one.name)))
            if one.name != base and {one.name, base} <= rates.keys()
            else one
            for one in self._presets.values()
        )
        self.comparison = replace(
            self.comparison,
            presets=tuple(presets),
            rounds=min(whole, default=number),
            seconds=self._clock() - self._begun,
        )

    def _is_over(self, rounds: int) -> bool:
        """Say whether another round would end too late, or would have nothing to compare."""
        if sum(run.error is None for run in self._runs.values()) < 2:
            return True
        limit_s, elapsed_s = self.comparison.max_time_s, self._clock() - self._begun
        return limit_s is not None and elapsed_s / rounds * (rounds + 1) > limit_s

    def _report_progress(self, bench: Bench, number: int) -> None:
        planned, each = self.comparison.planned, max(1, len(self._runs))
        done = sum(len(run.trials) for run in self._runs.values()) / each
        left_s = self.comparison.seconds / done * (planned - done) if done else 0.0
        limit_s = self.comparison.max_time_s
        if limit_s is not None:
            left_s = min(left_s, max(0.0, limit_s - self.comparison.seconds))
        label = f"round {number + 1} of {planned}"
        bench.runner.observer.progress(Progress(label, done, planned, "", left_s))


# What the options of a comparison ask for: a list of the presets, or a study over the cases of a load.


EVERY = "all"
_OTHERWISE = {"concurrency": "4", "duration": "1s", "warmup": "300ms"}
"""Options of the load that mean something else where there is a single trial to a slice."""
_NOT_HERE = ("repeat", "max-failed", "preset", *AT_A_RATE)
"""Options of a load that mean nothing where slices are measured in turns."""


def study_of(given: Mapping[str, Any], read: ReadWords) -> StudyRequest | tuple[Block, ...]:
    """Return what options ask for, as they were typed. Raises UsageError."""
    known = {one.name: one for one in options_of(Compared).values()}
    own = {name: parsed(option, given.get(name, option.default)) for name, option in known.items()}
    if own["compare"] is None:
        for name in given:
            what = "a load" if name == "load" else f"--{name}"
            raise UsageError(f"{what} is for presets that are measured: name them, --compare rails,django.")
        return tuple(listed(catalogue().values()))
    command, load = _load(own["load"], read)
    chosen = _chosen(own["compare"], own["against"] or (YOURS if _sets(load) else SQLITE))
    cases = {name: _case(command, load, preset) for name, preset in chosen.items()}
    (against, base), *_ = cases.items()
    comparison = PresetComparison(
        base,
        against,
        own["rounds"],
        presets=tuple(_measured(name, preset) for name, preset in chosen.items()),
        max_time_s=own["max-time"],
    )
    return StudyRequest(PresetStudy(comparison, cases), tuple(cases.values()), bool(own["strict"]))


def _chosen(names: tuple[str, ...], against: str) -> dict[str, Preset | None]:
    """Return presets by name, first the one that others are set against; None is the load's own settings."""
    known = catalogue()
    named = dict.fromkeys([against, *(known if names == (EVERY,) else names)])
    for name in named:
        if name not in known and name != YOURS:
            raise UsageError(
                f"there is no preset {name!r:.60}.{suggestion(name, known)} There are {', '.join(known)}; "
                f"{YOURS} is your own settings, behind --."
            )
    if len(named) < 2:
        raise UsageError("one preset has nothing beside it: name another one.")
    return {name: known.get(name) for name in named}


def _load(words: Sequence[str], read: ReadWords) -> tuple[str, Mapping[str, Any]]:
    """Return the command of a load, and its options. Raises UsageError for a load that can't be compared."""
    command, rest = _command(words)
    options = [one for one in options_of_command(command) if one.name not in _NOT_HERE]
    given = read(rest, options, "behind --")
    names = {one.name for one in options}
    counted = ("duration", "warmup") if "ops" in given else ()
    usual = {name: value for name, value in _OTHERWISE.items() if name in names and name not in counted}
    return command, seeded({**usual, **given})


def _sets(load: Mapping[str, Any]) -> bool:
    """Say whether a load has settings of its own that a preset would replace."""
    replaced = {"pragma", *(name for preset in catalogue().values() for name in preset.settings)}
    return not replaced.isdisjoint(load)


def _command(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the command of a load, and its words; that of the main experiment need not be named."""
    known = [name for name, one in commands().items() if _is_load(one)]
    if not words or words[0].startswith("-"):
        return MAIN, words
    if words[0] in known:
        return words[0], words[1:]
    raise UsageError(
        f"{words[0]!r:.60} is no load: behind -- stand options of {MAIN}, or one of {', '.join(known)} and "
        "its options."
    )


def _is_load(one: Experiment) -> bool:
    """Say whether an experiment has a window, and connections that a preset can set."""
    return one.behaviour.windowed and one.behaviour.connects and one.behaviour.sets


def _case(command: str, load: Mapping[str, Any], preset: Preset | None) -> Case:
    """Return the one case of a load, with the settings of a preset in the place of its own."""
    given = dict(load)
    if preset:
        given |= {**preset.settings, "pragma": (*load.get("pragma", ()), *preset.pragmas)}
    cases = cases_of(given, command)
    if len(cases) != 1:
        raise UsageError(f"these are {len(cases):,} cases: a load is one, such as --concurrency 4.")
    return replace(cases[0], repeat=1, max_failed=1.0)


def _measured(name: str, preset: Preset | None) -> MeasuredPreset:
    if preset is None:
        return MeasuredPreset(name)
    return MeasuredPreset(name, preset.project, preset.source, preset.looked_up, preset.words, preset.apart)
