"""A/B: two arms measured in turns, pair by pair, until the gate has seen enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from sqlstress.analysis.ab import Pairs, arm_differences, figure, look, too_many_failed
from sqlstress.analysis.wording import signed
from sqlstress.engine.study import Progress, Steps, kept_reason
from sqlstress.errors import UsageError
from sqlstress.experiment import get_experiment
from sqlstress.options.option import REST, Option, chosen, option, options_of
from sqlstress.options.parsing import choice, duration, percentage, switch, whole
from sqlstress.plan import all_parsed, cases_of, fixed_options, options_of_load, seeded
from sqlstress.registry import DEFAULT
from sqlstress.report import AbTest, Arm, Report, Run
from sqlstress.report.case import Case, words
from sqlstress.report.study_results import ARMS, DRAWN
from sqlstress.request import AT_A_RATE
from sqlstress.statistics import sequential as gate
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE, MOST, UNDECIDED, Look, looks
from sqlstress.statistics.units import plural
from sqlstress.studies.same_code import Side, same_environment, same_module
from sqlstress.studies.slices import OwnPython, SliceBench, check_loops
from sqlstress.target import stores_nothing


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
    """Return which pair is being measured, how B differs from A by now, and the time that is left.

    After the first look it is known about how long it takes until all is decided.
    """
    assert report.ab
    pairs = sum(len(run.trials) for run in report.runs) / max(1, report.planned)
    pair_s = elapsed_s / pairs if pairs else 0.0
    most = next((look.pairs for look in looks if look.pairs >= pairs), looks[-1].pairs)
    found, note = Pairs(report, report.ab), "B/A ?"
    if found.means:
        now = found.together()
        ends = "" if now.low is None or now.high is None else f" [{signed(now.low)} to {signed(now.high)}]"
        note = f"B/A {signed(now.ratio)}{ends}"
    if report.ab.looks:
        needed = found.needed()
        most = min(looks[-1].pairs, max(most, needed or MOST), _fitting(report.ab, pair_s))
        note += f", {_how_long(report.ab, needed, pair_s)}"
    target = max(most, math.ceil(pairs))
    left_s = pair_s * (target - pairs)
    return Progress(f"pair {min(int(pairs) + 1, target)} of {target}", pairs, target, note, left_s)


def _fitting(test: AbTest, pair_s: float) -> int:
    """Return how many pairs the time is enough for."""
    return MOST if test.max_time_s is None or not pair_s else max(1, int(test.max_time_s / pair_s))


def _how_long(test: AbTest, needed: int | None, pair_s: float) -> str:
    """Say how long it takes until so many pairs have decided it."""
    if needed is None:
        return "near the limit"
    minutes = plural(max(1, round(needed * pair_s / 60)), "minute")
    if needed > _fitting(test, pair_s):
        return f"would take about {minutes} (--max-time)"
    return f"decided after about {minutes}"


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

    def steps(self, bench: SliceBench) -> Steps:
        """Measure until it is decided, the time is over, or a slice can't be measured."""
        self.test, begun = bench.learn(self.test), self.clock()
        limit_s = math.inf if self.test.max_time_s is None else self.test.max_time_s
        for pair in range(self.looks[-1].pairs):
            arms = order(self.test.first, self.cases[0][0].seed, pair)
            for cell, arm in product(range(len(self.cases[0])), arms):
                self._measure(bench, pair, cell, arm)
                bench.observer.progress(how_far(self.report(bench.report), self.looks, self.clock() - begun))
                yield
                if self._ended():
                    return
            pairs, elapsed_s = pair + 1, self.clock() - begun
            # Another pair would end too late.
            is_last = pairs == self.looks[-1].pairs or elapsed_s / pairs * (pairs + 1) > limit_s
            due = next((planned for planned in self.looks if planned.pairs == pairs), None)
            if is_last:  # it may err as often as the looks before it left of the whole
                whole, spent = (sum(each.alpha for each in taken) for taken in (self.looks, self.test.looks))
                due = Look(pairs, whole - spent)
            if due and too_many_failed(self.report(bench.report)):
                self.test = replace(self.test, looks=())
                return
            if due:
                found = replace(look(self.report(bench.report), self.test, due), seconds=elapsed_s)
                if is_last and found.verdict == UNDECIDED:
                    found = replace(found, verdict=INCONCLUSIVE)
                self.test = replace(self.test, looks=(*self.test.looks, found), verdict=found.verdict)
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

    def _measure(self, bench: SliceBench, pair: int, cell: int, arm: int) -> None:
        run = self._runs.get((cell, arm)) or Run(bench.described(arm, self.cases[arm][cell]), arm=ARMS[arm])
        try:
            trial = bench.measure(arm, run.case, pair)
        except Exception as problem:
            reason = kept_reason(problem, run.case.driver, nothing_yet=not self._runs)
            self._runs[cell, arm] = replace(run, error=reason)
        else:
            error: str | None = trial.error
            if error is None and figure(trial, self.test.metric) is None:
                failed = f"{plural(trial.failed, 'operation')} failed" if trial.failed else ""
                error = f"nothing was completed within a slice: {failed or 'give a longer --duration'}"
            run = self._runs[cell, arm] = replace(run, trials=(*run.trials, trial), error=error)
            if trial.verdict.status == "failed":
                wrong = f"the data of {ARMS[arm]} is wrong"
                self.test = replace(self.test, verdict=FAIL, reason=wrong)
            elif error is None and (refusal := self._refusal(bench.report, cell)):
                # No pair is valid, neither this one nor those before it.
                self.test = replace(self.test, looks=())
                emptied = {
                    place: replace(each, trials=(), skipped=SAME) for place, each in self._runs.items()
                }
                self._runs = {**emptied, (cell, arm): replace(run, trials=(), error=refusal)}

    def _refusal(self, blank: Report, cell: int) -> str | None:
        """Return an error if both arms of a cell ran the same code although it should differ."""
        runs = [run for arm in range(2) if (run := self._runs.get((cell, arm))) and _imports(run)]
        if len(runs) < 2:
            return None
        a, b = (
            Side(arm.name, arm.python, run.case.spec.file, run.trials[-1].modules)
            for arm, run in zip(self.test.arms, runs, strict=True)
        )
        if error := same_module(a, b):
            return error
        differ = any(arm_differences(self.report(blank), self.test, *runs))
        return None if differ else same_environment(a, b)

    def _ended(self) -> bool:
        """Say whether there is no sense in another slice: it is decided, or one can't be measured."""
        return self.test.verdict != UNDECIDED or any(run.error for run in self._runs.values())


SAME = "Both arms ran the same code."
"""Reason why the other runs of a refused test have no trials."""


def _imports(run: Run) -> bool:
    """Return whether a run has imported a Python file of the user."""
    has_file = bool(getattr(run.case.spec, "file", None))
    return has_file and bool(run.trials) and not stores_nothing(run.case.driver)


# The options of A/B tests: what is compared, and those of the experiment.


COMPARED = "Comparison"
_OTHERWISE: dict[str, dict[str, Any]] = {
    "concurrency": {
        "default": "2",
        "help": "Number of processes. With a list, the geometric mean is judged.",
    },
    "duration": {"default": "2s", "help": "Length of the measured window of one slice."},
    "warmup": {"default": "500ms"},
}
"""What options of the experiment mean here, where there is a single trial to a slice."""
_NOT_HERE = ("repeat", *AT_A_RATE)
"""Options of the experiment that mean nothing where slices are measured in turns."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What is compared, and when it fails."""

    a: str = option(str, "", COMPARED, 'Options of A, the baseline: "--synchronous full".', metavar="OPTIONS")
    b: str = option(str, "", COMPARED, "Options of B, which is compared with A.", metavar="OPTIONS")
    python_a: str | None = option(
        str, None, COMPARED, "Python interpreter that measures A.", metavar="PYTHON"
    )
    python_b: str | None = option(
        str, None, COMPARED, "Python interpreter that measures B.", metavar="PYTHON"
    )
    metric: str = option(
        choice(*gate.METRICS),
        "tps",
        COMPARED,
        "Figure to compare: tps, or p99 of all operations.",
        metavar="NAME",
    )
    max_drop: float = option(
        percentage(0.005, 0.9),
        "10%",
        COMPARED,
        "How much TPS may fall, or p99 rise: 10% or 0.1.",
        metavar="SHARE",
    )
    max_pairs: int = option(
        whole(gate.FEWEST, gate.MOST),
        "200",
        COMPARED,
        f"Largest number of pairs to measure, {gate.FEWEST} to {gate.MOST}.",
    )
    max_time: float = option(
        duration(1.0),
        "3m",
        COMPARED,
        "Time limit. No pair starts that would end after it.",
        metavar="DURATION",
    )
    strict: bool = option(switch, None, COMPARED, "Exit 3 if the result is inconclusive.", flag=True)


GATE = chosen(options_of(Gate))
"""What is compared."""
Given = dict[str, Any]
"""Unparsed values by option name."""


def ab_options(command: str = DEFAULT) -> tuple[Option, ...]:
    """Return all options of the command for an experiment."""
    return (*GATE, *load_options(command))


def load_options(command: str) -> tuple[Option, ...]:
    """Return those of the experiment, which each arm may have for itself."""
    return options_of_load(command, _OTHERWISE, left_out(command))


def left_out(command: str) -> frozenset[str]:
    """Return the options of an experiment that mean nothing in a test."""
    return frozenset((*_NOT_HERE, *get_experiment(command).single_case_values))


def defaults(given: Collection[str], command: str = DEFAULT) -> dict[str, Any]:
    """Return what stands for options that an arm was not given: other Pythons may have other defaults."""
    counted = ("duration", "warmup") if "ops" in given else ()
    usual = {name: said["default"] for name, said in _OTHERWISE.items() if name not in counted}
    return {**usual, **fixed_options(command)}


def of_gate_and_load(given: Given) -> tuple[Given, Given]:
    """Return the options that say what is compared, and those of the load."""
    gate = {option.name: given[option.name] for option in GATE if option.name in given}
    return gate, {name: value for name, value in given.items() if name not in gate}


def merged(command: str, common: Given, own: Given) -> Given:
    """Return the options of an arm: its own take the place of common ones, those of a list come beside them.

    But a command is one, whatever its words are.
    """
    wholes = {known.name for known in load_options(command) if known.argument == REST}
    given = {**common, **own}
    for name, value in own.items():
        if isinstance(value, tuple) and name not in wholes:
            given[name] = (*common.get(name, ()), *value)
    return {**defaults(given, command), **given}


# An A/B test as it was asked for: the cells of both arms, the test, and where they are measured.


Cells = tuple[tuple[Case, ...], tuple[Case, ...]]
"""The cases of A, and those of B: they are compared one with one."""


def checked(experiment: str, given: Mapping[str, Any]) -> Given:
    """Return the options of a call in Python: of those that are lists, tuples. Raises UsageError."""
    load = {known.name: known for known in load_options(experiment)}
    for name in given.keys() & {*left_out(experiment), "python-a", "python-b", "strict"}:
        raise UsageError(f"{name} is not an option of ab() in Python. Leave it out.")
    lists = {name for name, known in load.items() if known.multiple or known.argument}
    return {
        name: tuple(value) if name in lists and isinstance(value, list) else value
        for name, value in given.items()
        if value or not (name in load and load[name].flag)
    }


def typed(experiment: str, own: Given) -> list[str]:
    """Return the options of an arm as they would be typed."""
    flags = {known.name for known in load_options(experiment) if known.flag}
    found: list[str] = []
    for name, values in own.items():
        for value in values if isinstance(values, tuple) else [values]:
            found += [f"--{name}"] if name in flags else [f"--{name}", words(value)]
    return found


def cells(experiment: str, arms: tuple[Given, Given]) -> Cells:
    """Return the cells of both arms, all of one seed. Raises UsageError."""
    if arms[0].get("seed") != arms[1].get("seed"):
        raise UsageError("both arms use the same seed. Give --seed outside of --a and --b.")
    seed = seeded({**arms[0], **arms[1]})["seed"]
    a, b = (cases_of({**arm, "seed": seed, "repeat": 1}, experiment) for arm in arms)
    if len(a) != len(b):
        raise UsageError(
            f"A has {len(a)} cases and B has {len(b)}. Give both the same number, since cases are "
            "compared in pairs."
        )
    return a, b


def study_of(cases: Cells, gate: Mapping[str, Any], arms: tuple[Arm, Arm]) -> AbStudy:
    """Return the study: `gate` holds unparsed values of what is compared. Raises UsageError."""
    own = all_parsed(GATE, gate)
    pairs: int = own["max-pairs"]
    test = AbTest(
        own["metric"],
        own["max-drop"],
        arms,
        first_arm(cases[0][0].seed),
        order=DRAWN,
        max_pairs=pairs,
        max_time_s=own["max-time"],
    )
    return AbStudy(cases, test, looks(pairs))


def own_python(
    arms: tuple[Given, Given], cases: Cells, directory: Path, command: tuple[str, ...]
) -> OwnPython:
    """Return where both arms are measured by this Python. Raises UsageError for loops that differ."""
    check_loops((cases[0][0], cases[1][0]), arms)
    return OwnPython((*cases[0], *cases[1]), directory, command)
