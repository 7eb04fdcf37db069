"""A/B test: measure two sets of options (arms A and B) in pairs, until a sequential test decides.

A slice is a single trial of one arm. A cell is a case of A and the case of B that is compared with it. A pair
has a slice of each arm, for each cell. A look is an interim test of the pairs so far. The test is a gate,
which B passes or fails. So `gate` has the options of the test itself, such as --max-drop.
"""

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
from sqlstress.options.option import REST, Option, option, options_of, select_options
from sqlstress.options.parsing import choice, duration, percentage, switch, whole_number
from sqlstress.plan import cases_of, fixed_options, options_of_load, parse_options, seeded
from sqlstress.registry import DEFAULT
from sqlstress.report import AbTest, Arm, Report, Run
from sqlstress.report.case import Case, words
from sqlstress.report.study_results import ARMS, DRAWN
from sqlstress.request import OPEN_LOOP_OPTIONS
from sqlstress.statistics import sequential as gate
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE, MOST, UNDECIDED, InterimLook, looks
from sqlstress.statistics.units import plural
from sqlstress.studies.same_code import ArmCode, same_environment, same_module
from sqlstress.studies.slices import OwnPython, SliceBench, check_loops
from sqlstress.target import stores_nothing


def arm_order(first: str, seed: int, pair: int) -> tuple[int, int]:
    """Return the order in which a pair measures the arms: (0, 1) for A then B, or (1, 0).

    Arm `first` begins pair 0. Later pairs have a random order, as the signed-rank test assumes. If A and B
    took turns, a periodic effect of the machine could always disturb the same arm.
    """
    drawn = Random(f"{seed}:order:{pair}").getrandbits(1) if pair else 0
    leader = ARMS.index(first) ^ drawn
    return leader, 1 - leader


def draw_first_arm(seed: int) -> str:
    """Return the arm that begins the first pair, "A" or "B": a random choice, with this seed."""
    return Random(f"{seed}:order").choice(ARMS)


def pair_progress(report: Report, looks: Sequence[InterimLook], elapsed_s: float) -> Progress:
    """Return the progress of a test: the current pair, the ratio B/A so far, and the time left."""
    assert report.ab
    pairs = sum(len(run.trials) for run in report.runs) / max(1, report.planned)
    pair_s = elapsed_s / pairs if pairs else 0.0
    most = next((look.pairs for look in looks if look.pairs >= pairs), looks[-1].pairs)
    data, note = Pairs(report, report.ab), "B/A ?"
    if data.means:
        estimate = data.together()
        interval = (
            ""
            if estimate.low is None or estimate.high is None
            else f" [{signed(estimate.low)} to {signed(estimate.high)}]"
        )
        note = f"B/A {signed(estimate.ratio)}{interval}"
    if report.ab.looks:
        needed = data.pairs_needed()
        most = min(looks[-1].pairs, max(most, needed or MOST), _affordable_pairs(report.ab, pair_s))
        note += f", {_time_to_decision(report.ab, needed, pair_s)}"
    target = max(most, math.ceil(pairs))
    left_s = pair_s * (target - pairs)
    return Progress(f"pair {min(int(pairs) + 1, target)} of {target}", pairs, target, note, left_s)


def _affordable_pairs(test: AbTest, pair_s: float) -> int:
    return MOST if test.max_time_s is None or not pair_s else max(1, int(test.max_time_s / pair_s))


def _time_to_decision(test: AbTest, needed: int | None, pair_s: float) -> str:
    """Return a text on the time to the decision, such as "decided after about 5 minutes".

    `needed` is the estimated number of pairs that decide the test; None if no number of pairs would.
    """
    if needed is None:
        return "near the limit"
    minutes = plural(max(1, round(needed * pair_s / 60)), "minute")
    if needed > _affordable_pairs(test, pair_s):
        return f"would take about {minutes} (--max-time)"
    return f"decided after about {minutes}"


@dataclass
class AbStudy:
    """An A/B test as a study. Each step is a slice (one trial of one arm) or an interim result."""

    cases: tuple[Sequence[Case], Sequence[Case]]
    """Cases of A and cases of B. Cases with equal indices are compared, and form a cell."""
    test: AbTest
    """Settings of the test, with its results so far."""
    looks: Sequence[InterimLook]
    """Planned interim tests, in order."""
    clock: Callable[[], float] = time.monotonic
    """Function that returns the time in seconds since any fixed moment."""
    _runs: dict[tuple[int, int], Run] = field(default_factory=dict)
    """Results by (index of the cell, index of the arm)."""

    def steps(self, bench: SliceBench) -> Steps:
        """Measure pairs until the test is decided, the time is over, or a slice cannot be measured."""
        self.test, start_s = bench.learn(self.test), self.clock()
        limit_s = math.inf if self.test.max_time_s is None else self.test.max_time_s
        for pair in range(self.looks[-1].pairs):
            arms = arm_order(self.test.first, self.cases[0][0].seed, pair)
            for cell, arm in product(range(len(self.cases[0])), arms):
                self._measure(bench, pair, cell, arm)
                bench.observer.progress(
                    pair_progress(self.report(bench.report), self.looks, self.clock() - start_s)
                )
                yield
                if self._ended():
                    return
            pairs, elapsed_s = pair + 1, self.clock() - start_s
            # This pair is also the last if a further pair would end after the time limit.
            is_last = pairs == self.looks[-1].pairs or elapsed_s / pairs * (pairs + 1) > limit_s
            due = next((planned for planned in self.looks if planned.pairs == pairs), None)
            if is_last:  # The last look may use all of the error probability that earlier looks left.
                total, spent = (sum(step.alpha for step in steps) for steps in (self.looks, self.test.looks))
                due = InterimLook(pairs, total - spent)
            if due and too_many_failed(self.report(bench.report)):
                self.test = replace(self.test, looks=())
                return
            if due:
                result = replace(look(self.report(bench.report), self.test, due), seconds=elapsed_s)
                if is_last and result.verdict == UNDECIDED:
                    result = replace(result, verdict=INCONCLUSIVE)
                self.test = replace(self.test, looks=(*self.test.looks, result), verdict=result.verdict)
                yield
                if self._ended():
                    return

    def report(self, blank: Report) -> Report:
        """Return `blank`, a report without results, with the results of the test so far."""
        return replace(
            blank,
            ab=self.test,
            runs=tuple(self._runs[key] for key in sorted(self._runs)),
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
                # The earlier pairs are not valid either, so their trials and interim results are removed.
                self.test = replace(self.test, looks=())
                emptied = {
                    key: replace(other, trials=(), skipped=SAME_CODE) for key, other in self._runs.items()
                }
                self._runs = {**emptied, (cell, arm): replace(run, trials=(), error=refusal)}

    def _refusal(self, blank: Report, cell: int) -> str | None:
        """Return an error if the test compares user code, but both arms ran the same code; else None."""
        runs = [run for arm in range(2) if (run := self._runs.get((cell, arm))) and _has_imported_file(run)]
        if len(runs) < 2:
            return None
        a, b = (
            ArmCode(arm.name, arm.python, run.case.spec.file, run.trials[-1].modules)
            for arm, run in zip(self.test.arms, runs, strict=True)
        )
        if error := same_module(a, b):
            return error
        differ = any(arm_differences(self.report(blank), self.test, *runs))
        return None if differ else same_environment(a, b)

    def _ended(self) -> bool:
        return self.test.verdict != UNDECIDED or any(run.error for run in self._runs.values())


SAME_CODE = "Both arms ran the same code."
"""Value of `Run.skipped` for runs whose trials were removed, because both arms ran the same code."""


def _has_imported_file(run: Run) -> bool:
    has_file = bool(getattr(run.case.spec, "file", None))
    return has_file and bool(run.trials) and not stores_nothing(run.case.driver)


COMPARED = "Comparison"
_OVERRIDES: dict[str, dict[str, Any]] = {
    "concurrency": {
        "default": "2",
        "help": "Number of processes. With a list, the geometric mean is judged.",
    },
    "duration": {"default": "2s", "help": "Length of the measured window of one slice."},
    "warmup": {"default": "500ms"},
}
"""Defaults and help texts that options of the load have in an A/B test only, by option name."""
_UNSUPPORTED = ("repeat", *OPEN_LOOP_OPTIONS)
"""Options that an A/B test does not support: the number of trials follows from the test."""


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Options of the comparison, and limits of the test."""

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
        whole_number(gate.FEWEST, gate.MOST),
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


COMPARISON_OPTIONS = select_options(options_of(ComparisonOptions))
"""The fields of ComparisonOptions, as options of the command line."""
OptionValues = dict[str, Any]
"""Unparsed option values, by option name."""


def ab_options(command: str = DEFAULT) -> tuple[Option, ...]:
    """Return all options of the command `ab` for an experiment."""
    return (*COMPARISON_OPTIONS, *load_options(command))


def load_options(command: str) -> tuple[Option, ...]:
    """Return the options of an experiment that an arm of an A/B test can have."""
    return options_of_load(command, _OVERRIDES, left_out(command))


def left_out(command: str) -> frozenset[str]:
    """Return the names of an experiment's options that an A/B test does not support."""
    return frozenset((*_UNSUPPORTED, *get_experiment(command).single_case_values))


def defaults(given: Collection[str], command: str = DEFAULT) -> dict[str, Any]:
    """Return the options that an arm gets if the user does not set them, by option name.

    `given` has the names of the options that the user set. With --ops, an arm gets no duration. The arm's
    Python gets these defaults as options, because its version of sqlstress may have other defaults.
    """
    counted = ("duration", "warmup") if "ops" in given else ()
    usual = {name: texts["default"] for name, texts in _OVERRIDES.items() if name not in counted}
    return {**usual, **fixed_options(command)}


def split_gate_options(given: OptionValues) -> tuple[OptionValues, OptionValues]:
    """Split option values into those of the test (`COMPARISON_OPTIONS`) and those of the load."""
    gate = {option.name: given[option.name] for option in COMPARISON_OPTIONS if option.name in given}
    return gate, {name: value for name, value in given.items() if name not in gate}


def merged(command: str, common: OptionValues, own: OptionValues) -> OptionValues:
    """Return all option values of an arm: defaults, `common` options, and the arm's `own` options.

    An own value replaces the common value. But a list, as of --pragma, is appended to the common list.
    """
    commands = {option.name for option in load_options(command) if option.argument == REST}
    options = {**common, **own}
    for name, value in own.items():
        if isinstance(value, tuple) and name not in commands:
            options[name] = (*common.get(name, ()), *value)
    return {**defaults(options, command), **options}


Cells = tuple[tuple[Case, ...], tuple[Case, ...]]
"""Cases of A and cases of B. Cases with equal indices are compared."""


def checked(experiment: str, given: Mapping[str, Any]) -> OptionValues:
    """Return keyword arguments of the Python function `ab` as option values of the command line.

    Raises UsageError for an option that this function does not support.
    """
    load = {option.name: option for option in load_options(experiment)}
    for name in given.keys() & {*left_out(experiment), "python-a", "python-b", "strict"}:
        raise UsageError(f"{name} is not an option of ab() in Python. Leave it out.")
    lists = {name for name, option in load.items() if option.multiple or option.argument}
    return {
        name: tuple(value) if name in lists and isinstance(value, list) else value
        for name, value in given.items()
        if value or not (name in load and load[name].flag)
    }


def to_words(experiment: str, own: OptionValues) -> list[str]:
    """Return the options of an arm as words of a command line, such as "--synchronous" and "full"."""
    flags = {option.name for option in load_options(experiment) if option.flag}
    result: list[str] = []
    for name, values in own.items():
        for value in values if isinstance(values, tuple) else [values]:
            result += [f"--{name}"] if name in flags else [f"--{name}", words(value)]
    return result


def cells(experiment: str, arms: tuple[OptionValues, OptionValues]) -> Cells:
    """Return the cases of both arms, all with one seed.

    Raises UsageError if the seeds or the numbers of cases differ between the arms.
    """
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


def make_study(cases: Cells, gate: Mapping[str, Any], arms: tuple[Arm, Arm]) -> AbStudy:
    """Return the study for an A/B test. Raises UsageError for an invalid option in `gate`."""
    values = parse_options(COMPARISON_OPTIONS, gate)
    pairs: int = values["max-pairs"]
    test = AbTest(
        values["metric"],
        values["max-drop"],
        arms,
        draw_first_arm(cases[0][0].seed),
        order=DRAWN,
        max_pairs=pairs,
        max_time_s=values["max-time"],
    )
    return AbStudy(cases, test, looks(pairs))


def make_own_python(
    arms: tuple[OptionValues, OptionValues], cases: Cells, directory: Path, command: tuple[str, ...]
) -> OwnPython:
    """Return the factory of the bench that measures both arms with this process's Python.

    Raises UsageError if one arm uses the C loop, the other the Python loop, and no option chose the loop.
    """
    check_loops((cases[0][0], cases[1][0]), arms)
    return OwnPython((*cases[0], *cases[1]), directory, command)
