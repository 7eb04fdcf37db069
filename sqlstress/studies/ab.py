"""A/B: two arms measured in turns, pair by pair, until the gate has seen enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from sqlstress.analysis.ab import differences, estimate, figure, look, signed
from sqlstress.analysis.wording import plural
from sqlstress.engine.failure import kept_reason
from sqlstress.engine.study import Progress, Steps
from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT, face
from sqlstress.options.option import REST, Option, chosen, option, options_of
from sqlstress.options.parsing import choice, duration, percentage, switch, whole
from sqlstress.plan import AT_A_RATE, cases_of, parsed, seeded
from sqlstress.report import AbTest, Arm, Report, Run, Trial
from sqlstress.report import Look as Found
from sqlstress.report.case import Case, words
from sqlstress.report.study_results import ARMS, DRAWN
from sqlstress.statistics import sequential as gate
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE, MOST, UNDECIDED, Look, geometric_means, looks
from sqlstress.studies.slices import OwnPython, SliceBench, check_loops


def order(first: str, seed: int, pair: int) -> tuple[int, int]:
    """Return in which order the arms of a pair are measured: the seed draws it, for each pair anew.

    Then it is chance alone that gives a drift, a neighbour or whatever the machine does to one arm or the
    other, and that chance is known: it is what the signed-rank test counts. Fixed turns share a period of
    theirs with whatever else comes around, and give it to one arm each time.
    """
    drawn = Random(f"{seed}:order:{pair}").getrandbits(1) if pair else 0
    begins = ARMS.index(first) ^ drawn
    return begins, 1 - begins


def first_arm(seed: int) -> str:
    """Draw which arm the first pair begins with."""
    return Random(f"{seed}:order").choice(ARMS)


def how_far(report: Report, looks: Sequence[Look], elapsed_s: float) -> Progress:
    """Return which pair is being measured, how B differs from A by now, and the time to the next look."""
    pairs = sum(len(run.trials) for run in report.runs) / max(1, report.planned)
    target = next((look.pairs for look in looks if look.pairs >= pairs), looks[-1].pairs)
    left_s = elapsed_s / pairs * (target - pairs) if pairs else 0.0
    label = f"pair {min(int(pairs) + 1, target)} of {target}"
    return Progress(label, pairs, target, _so_far(report), left_s)


def _so_far(report: Report) -> str:
    """Return how B differs from A by now: "B/A -2.1% [-8.4% to +3.0%]"."""
    assert report.ab
    means = geometric_means(found) if (found := differences(report, report.ab)) else []
    if not means:
        return "B/A ?"
    now = estimate(means, report.ab.metric, 0.0)
    ends = "" if now.low is None or now.high is None else f" [{signed(now.low)} to {signed(now.high)}]"
    return f"B/A {signed(now.ratio)}{ends}"


@dataclass
class AbStudy:
    """Measures an A/B test; a step is a slice, or a look."""

    cases: tuple[Sequence[Case], Sequence[Case]]
    """The cells of A and of B: those of the same place are compared."""
    test: AbTest
    """What is asked, and what has been found."""
    looks: Sequence[Look]
    """When one looks, in order: after the last it ends."""
    clock: Callable[[], float] = time.monotonic
    """Seconds since any moment."""
    _runs: dict[tuple[int, int], Run] = field(default_factory=dict)
    """By cell and arm."""
    save_every_s = 0.0

    def steps(self, bench: SliceBench) -> Steps:
        """Measure until it is decided, the time is over, or a slice can't be measured."""
        self.test, begun = bench.learn(self.test), self.clock()
        for pair in range(self.looks[-1].pairs):
            for cell, arm in self._slices(pair):
                self._measure(bench, pair, cell, arm)
                bench.observer.progress(how_far(self.report(bench.report), self.looks, self.clock() - begun))
                yield
                if self._ended():
                    return
            elapsed_s = self.clock() - begun
            last = pair + 1 == self.looks[-1].pairs or self._over(pair + 1, elapsed_s)
            if due := self._rest(pair + 1) if last else self._planned(pair + 1):
                found = replace(look(self.report(bench.report), self.test, due), seconds=elapsed_s)
                self._keep(_at_the_end(found) if last else found)
                yield
                if self._ended():
                    return

    def report(self, blank: Report) -> Report:
        """Return what has been measured, and what was decided of it."""
        return replace(
            blank,
            ab=self.test,
            runs=tuple(self._runs[place] for place in sorted(self._runs)),
            planned=sum(map(len, self.cases)),
        )

    def _slices(self, pair: int) -> list[tuple[int, int]]:
        """Return the slices of a pair in their order, each by its cell and arm."""
        arms = order(self.test.first, self.cases[0][0].seed, pair)
        return [(cell, arm) for cell in range(len(self.cases[0])) for arm in arms]

    def _measure(self, bench: SliceBench, pair: int, cell: int, arm: int) -> None:
        run = self._runs.get((cell, arm)) or Run(bench.told(arm, self.cases[arm][cell]), arm=ARMS[arm])
        try:
            trial = bench.measure(arm, run.case, pair)
        except Exception as problem:
            error = kept_reason(problem, run.case.driver, nothing_yet=not self._runs)
            self._runs[cell, arm] = replace(run, error=error)
        else:
            self._runs[cell, arm] = replace(run, trials=(*run.trials, trial), error=self._problem(trial))
            if trial.verdict.status == "failed":
                wrong = f"the data of {ARMS[arm]} is not what its processes were told it is"
                self.test = replace(self.test, verdict=FAIL, reason=wrong)

    def _problem(self, trial: Trial) -> str | None:
        """Return why a slice can't be one of a pair; None when it can."""
        if trial.error is None and figure(trial, self.test.metric) is None:
            if trial.failed:
                return f"nothing was completed within a slice: {plural(trial.failed, 'operation')} failed"
            return "nothing was completed within a slice: give a longer --duration"
        return trial.error

    def _ended(self) -> bool:
        """Say whether there is no sense in another slice: it is decided, or one can't be measured."""
        return self.test.verdict != UNDECIDED or any(run.error for run in self._runs.values())

    def _over(self, pairs: int, elapsed_s: float) -> bool:
        """Say whether another pair would end too late."""
        limit_s = self.test.max_time_s
        return limit_s is not None and elapsed_s / pairs * (pairs + 1) > limit_s

    def _planned(self, pairs: int) -> Look | None:
        """Return the look that is due after so many pairs."""
        return next((planned for planned in self.looks if planned.pairs == pairs), None)

    def _rest(self, pairs: int) -> Look:
        """Return the last look, which may err as often as those before it left of the whole."""
        whole, spent = (sum(one.alpha for one in taken) for taken in (self.looks, self.test.looks))
        return Look(pairs, whole - spent)

    def _keep(self, found: Found) -> None:
        self.test = replace(self.test, looks=(*self.test.looks, found), verdict=found.verdict)


def _at_the_end(found: Found) -> Found:
    return replace(found, verdict=INCONCLUSIVE) if found.verdict == UNDECIDED else found


# The options of A/B tests: what is compared, and those of the experiment.


COMPARED = "What is compared"
_OTHERWISE: dict[str, dict[str, Any]] = {
    "concurrency": {"default": "2", "help": "Processes; of a list the geometric mean is judged."},
    "duration": {"default": "2s", "help": "Length of the measured window of a slice."},
    "warmup": {"default": "500ms"},
}
"""What options of the experiment mean here, where there is a single trial to a slice."""
_NOT_HERE = ("repeat", "max-failed", *AT_A_RATE)
"""Options of the experiment that mean nothing where slices are measured in turns."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What is compared, and when it fails."""

    a: str = option(str, "", COMPARED, 'Options of A, the baseline: "--synchronous full".', metavar="OPTIONS")
    b: str = option(str, "", COMPARED, "Options of B, which is compared with A.", metavar="OPTIONS")
    python_a: str | None = option(str, None, COMPARED, "Interpreter that measures A.", metavar="PYTHON")
    python_b: str | None = option(str, None, COMPARED, "Interpreter that measures B.", metavar="PYTHON")
    metric: str = option(
        choice(*gate.METRICS), "tps", COMPARED, "tps, or p99 of all operations.", metavar="NAME"
    )
    max_drop: float = option(
        percentage(0.005, 0.9),
        "10%",
        COMPARED,
        "By how much TPS may fall, or p99 rise: 10% or 0.1.",
        metavar="SHARE",
    )
    max_pairs: int = option(
        whole(gate.FEWEST, gate.MOST), "200", COMPARED, "Pairs after which it ends, decided or not."
    )
    max_time: float = option(
        duration(1.0),
        "20m",
        COMPARED,
        "No other pair is begun where it would end later.",
        metavar="DURATION",
    )
    strict: bool = option(switch, None, COMPARED, "Exit 3 when it stays inconclusive.", flag=True)


GATE = chosen(options_of(Gate))
"""What is compared."""
_GATE_NAMES = frozenset(option.name for option in GATE)

Given = dict[str, Any]
"""Unparsed values by option name."""


def ab_options(command: str = DEFAULT) -> tuple[Option, ...]:
    """Return all options of the command for an experiment."""
    return (*GATE, *load_options(command))


def load_options(command: str) -> tuple[Option, ...]:
    """Return those of the experiment, which each arm may have for itself."""
    return tuple(_own(one) for one in face(command).options if one.name not in left_out(command))


def left_out(command: str) -> frozenset[str]:
    """Return the options of an experiment that mean nothing in a test."""
    return frozenset((*_NOT_HERE, *face(command).by_itself))


def defaults(given: Collection[str], command: str = DEFAULT) -> dict[str, Any]:
    """Return what stands for options that an arm was not given: other Pythons may have other defaults."""
    counted = ("duration", "warmup") if "ops" in given else ()
    usual = {name: said["default"] for name, said in _OTHERWISE.items() if name not in counted}
    return {**usual, **{name: value for name, value in face(command).by_itself.items() if value is not None}}


def _own(one: Option) -> Option:
    return replace(one, **_OTHERWISE.get(one.name, {}))


def of_gate_and_load(given: Given) -> tuple[Given, Given]:
    """Return the options that say what is compared, and those of the load."""
    gate = {name: value for name, value in given.items() if name in _GATE_NAMES}
    return gate, {name: value for name, value in given.items() if name not in gate}


def merged(command: str, common: Given, own: Given) -> Given:
    """Return the options of an arm: its own take the place of common ones, those of a list come beside them.

    But a command is one, whatever its words are.
    """
    wholes = {one.name for one in load_options(command) if one.argument == REST}
    lists = {
        name: (*common.get(name, ()), *value)
        for name, value in own.items()
        if isinstance(value, tuple) and name not in wholes
    }
    given = {**common, **own, **lists}
    return {**defaults(given, command), **given}


# An A/B test as it was asked for: the cells of both arms, the test, and where they are measured.


Cells = tuple[tuple[Case, ...], tuple[Case, ...]]
"""The cases of A, and those of B: they are compared one with one."""
_OF_THE_COMMAND = frozenset({"python-a", "python-b", "strict"})
"""Other Pythons, and an exit code."""


def checked(experiment: str, given: Mapping[str, Any]) -> Given:
    """Return the options of a call in Python: of those that are lists, tuples. Raises UsageError."""
    load = {one.name: one for one in load_options(experiment)}
    for name in given.keys() & (left_out(experiment) | _OF_THE_COMMAND):
        raise UsageError(f"{name} is no option of an A/B test in Python: leave it out.")
    lists = {name for name, one in load.items() if one.multiple or one.argument}
    return {
        name: tuple(value) if name in lists and isinstance(value, list) else value
        for name, value in given.items()
        if value or not (name in load and load[name].flag)
    }


def typed(experiment: str, own: Given) -> list[str]:
    """Return the options of an arm as they would be typed."""
    flags = {one.name for one in load_options(experiment) if one.flag}
    found: list[str] = []
    for name, value in own.items():
        for one in value if isinstance(value, tuple) else [value]:
            found += [f"--{name}"] if name in flags else [f"--{name}", words(one)]
    return found


def cells(experiment: str, arms: tuple[Given, Given]) -> Cells:
    """Return the cells of both arms, all of one seed. Raises UsageError."""
    if arms[0].get("seed") != arms[1].get("seed"):
        raise UsageError("both arms draw the same, by one seed: give --seed beside --a and --b, not in them.")
    seed = seeded({**arms[0], **arms[1]})["seed"]
    a, b = (cases_of({**arm, "seed": seed, "repeat": 1}, experiment) for arm in arms)
    if len(a) != len(b):
        raise UsageError(f"A has {len(a)} cells and B has {len(b)}: they are compared one with one.")
    return a, b


def study_of(cases: Cells, gate: Mapping[str, Any], arms: tuple[Arm, Arm]) -> AbStudy:
    """Return the study: `gate` holds unparsed values of what is compared. Raises UsageError."""
    known = {option.name: option for option in GATE}
    metric, max_drop, max_pairs, max_time_s = (
        parsed(known[name], gate.get(name, known[name].default))
        for name in ("metric", "max-drop", "max-pairs", "max-time")
    )
    test = AbTest(
        metric,
        max_drop,
        arms,
        first_arm(cases[0][0].seed),
        order=DRAWN,
        max_pairs=max_pairs,
        max_time_s=max_time_s,
    )
    return AbStudy(cases, test, looks(test.max_pairs or MOST))


def own_python(
    arms: tuple[Given, Given], cases: Cells, directory: Path, command: tuple[str, ...]
) -> OwnPython:
    """Return where both arms are measured by this Python. Raises UsageError for loops that differ."""
    check_loops((cases[0][0], cases[1][0]), arms)
    return OwnPython((*cases[0], *cases[1]), directory, command)
