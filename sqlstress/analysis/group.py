"""Group: the runs (a run is all trials of a case) in one table, and the tests that compare them.

A pass is one trial of each case: pass 2 is the second trial of all cases. A layout is a number of database
files (buckets) over which the keys are partitioned.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.sentences import Noise
from sqlstress.analysis.wording import buckets_label, listing, place, places, process_counts, truncate
from sqlstress.experiment import experiment_of, units_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case, Settings
from sqlstress.report.results import Sighting
from sqlstress.statistics.compare import MIN_PASSES, NEAR, Passes, Ratio
from sqlstress.statistics.units import finite
from sqlstress.target import stores_nothing

T = TypeVar("T")
MAX_VALUE_LENGTH = 24
"""Maximum length of an option's value in tables and sentences, in characters."""

ERROR = 0.05
"""Maximum probability that a report has any wrong conclusion because of noise."""
BEST, TREND = 0.4, 0.4
"""Shares of ERROR for two kinds of tests: which runs are best, and where throughput stops rising."""


@dataclass(frozen=True, slots=True)
class Point:
    """Point of a plot: files and processes of a case, and the median TPS of its valid trials."""

    files: int
    processes: int
    tps: float
    """Transactions per second of all processes together; finite and above 0."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one experiment that are compared in one table."""

    case: Case
    """Case of the first run. The other cases differ only in options that the experiment varies."""
    runs: tuple[Run, ...]
    """Runs in the order of the report; at least one."""
    groups: int = 1
    """Number of groups in the report. Each group gets an equal part of the error probability ERROR."""
    setting: str = ""
    """Option in which the merged `parts` differ, such as "synchronous"; empty without parts."""
    parts: tuple[Group, ...] = ()
    """Groups that were merged into this group, one for each value of `setting`; empty if not merged."""

    def value(self, case: Case) -> str:
        """Return a case's value of the option `setting`, such as "normal"; "" without a setting."""
        return truncate(experiment_of(case).traits(case).get(self.setting, ""), MAX_VALUE_LENGTH)

    def place(self, case: Case) -> str:
        """Return the label of a case: "normal, 8 processes on 1 bucket".

        Return only the value ("normal") if each value of the option `setting` has a single case.
        """
        if self.parts and len(self.parts) == len(self.runs):
            return self.value(case)
        return ", ".join(filter(None, (self.value(case), place(case))))

    def places(self, cases: Iterable[Case]) -> str:
        """Return a label of cases: "synchronous full and synchronous normal with 8 processes".

        In this example, `cases` has all cases with "full", but with "normal" only those with 8 processes. The
        label of all cases is "every case".
        """
        if not self.parts:
            return places(cases)
        requested = set(cases)
        complete, partial = [], []
        for part in self.parts:
            shared = [run.case for run in part.runs if run.case in requested]
            if len(shared) == len(part.runs):
                complete.append(self.value(part.case))
            elif shared:
                partial.append(f"{self.setting} {self.value(part.case)} with {places(shared)}")
        if len(complete) == len(self.parts):
            return "every case"
        return listing([*([f"{self.setting} {listing(complete)}"] if complete else []), *partial])

    def short_places(self, cases: Iterable[Case]) -> str:
        """Return a label of cases: "4 and 8 processes" if nothing else differs, else as `places` does."""
        layouts = {(run.case.buckets, run.case.rate) for run in self.runs}
        if self.parts or len(layouts) > 1 or self.case.rate or not experiment_of(self.case).sweeps:
            return self.places(cases)
        return process_counts(cases)

    def layout_value_label(self, value: str, layout: int) -> str:
        """Return the label of an option's `value` on `layout` buckets: "full, 20 buckets".

        Return only the value, "full", if all cases have one number of buckets.
        """
        cases = [run.case for run in self.runs]
        layout_text = buckets_label(layout, cases) if len({case.buckets for case in cases}) > 1 else ""
        return ", ".join(filter(None, (value, layout_text)))

    @property
    def unit(self) -> str:
        """Plural of the counted operation, such as "transactions" or "pairs"."""
        return units_of(self.case)

    @property
    def met_quota(self) -> bool:
        """Whether a CPU quota stopped the processes of any run, which can cause long waits."""
        return any(run.met_quota for run in self.runs)

    @property
    def writes(self) -> bool:
        """Whether the worker processes take SQLite's write lock."""
        if stores_nothing(self.case.driver):
            return False
        return experiment_of(self.case).writes(self.case)

    def is_comparable(self, run: Run) -> bool:
        """Return whether a run can be compared: it has a rate, no wrong data, and few enough failures."""
        is_sound = run.verdict.status != "failed" and not run.failed_too_many
        return is_sound and bool(finite(run.median_tps()))

    def pairwise_tests(
        self, runs: Sequence[Run], figures: Callable[[Run], Mapping[int, float]] = Run.rates
    ) -> PairwiseTests | None:
        """Return tests that compare runs in pairs; None if fewer than MIN_PASSES passes have all runs.

        A pass is one trial of each case. `figures` returns what to compare, such as TPS: a number above 0 for
        each pass of a run.
        """
        tests = PairwiseTests(runs, [figures(run) for run in runs], ERROR / self.groups)
        return tests if tests.passes >= MIN_PASSES else None

    def points(self) -> tuple[Point, ...]:
        """Return a point for each run that can be compared (see `is_comparable`)."""
        return tuple(
            Point(run.case.buckets, run.case.concurrency, tps)
            for run in self.runs
            if self.is_comparable(run) and (tps := finite(run.median_tps())) and tps > 0
        )

    def measured(self) -> Iterator[tuple[Run, Trial]]:
        """Yield each run that has a valid trial, with its valid trial of median TPS."""
        for run in self.runs:
            if trial := run.valid_median_trial():
                yield run, trial


Topic = Callable[[Group], Iterator[Finding]]
"""Function that yields the findings on one subject for a group."""


class PairwiseTests:
    """Tests that compare two runs at a time by a figure, such as TPS, which each trial has.

    A pass is one trial of each case. Trials are compared pass by pass, in the passes that all runs have.
    `error` is the probability that any result is wrong. A caller may use only one of two sets of methods,
    because they share a part of `error`: `ratio`, `is_less` and `adds_little`, or `rises`, `gain` and
    `base_ratio`. A caller may repeat a test for several sets of runs, such as for each number of files.
    `divide_error_by` is the number of these sets.
    """

    def __init__(self, runs: Sequence[Run], figures: Sequence[Mapping[int, float]], error: float) -> None:
        # Runs are not hashable, so their identities are the keys.
        self._passes = Passes(dict(zip(map(id, runs), figures, strict=True)), error * (1 - BEST))
        self._error, self._count = error, len(runs)
        self._best = error * BEST / max(1, len(runs) - 1)

    @property
    def passes(self) -> int:
        """Number of passes that all runs have in common."""
        return self._passes.count

    def middle(self, run: Run) -> float:
        """Return the geometric mean of the figures of a run's trials."""
        return self._passes.middle(id(run))

    def best(self, runs: Iterable[Run]) -> Run:
        """Return the run with the highest geometric mean of its figures."""
        return max(runs, key=self.middle)

    def ratio(self, base: Run, other: Run) -> Ratio | None:
        """Return the figure of `other` divided by that of `base`; None for too few passes.

        The intervals are simultaneous: valid even if ratios of all pairs of runs are requested.
        """
        return self._passes.ratio(id(base), id(other))

    # The next two tests find the best runs: each run is compared with each other run. Only the comparisons
    # with the truly best run must be right (Hsu 1984). So the error probability is divided by the number of
    # other runs, not by the larger number of pairs.

    def is_behind(self, run: Run, other: Run, divide_error_by: int = 1) -> bool:
        """Return whether `other` is significantly better than `run`."""
        return self._passes.at_least(id(run), [id(other)], self._best / divide_error_by) > 1

    def is_near(self, run: Run, other: Run, divide_error_by: int = 1) -> bool:
        """Return whether a lead of `other` over `run` is significantly below 10% (NEAR)."""
        return self._passes.at_most(id(run), id(other), self._best / divide_error_by) < 1 / (1 - NEAR)

    # The next tests are for a curve: throughput by number of processes, for one number of files (a layout).

    def rises(self, run: Run, others: Sequence[Run], divide_error_by: int) -> bool:
        """Return whether throughput is significantly higher with more processes: in `others` than in `run`.

        `run` is compared with the first of `others`, with the mean of the first two, and so on. A mean of
        several runs has less noise, so it shows a rise after fewer passes.
        """
        error = self._error * TREND / 2 / divide_error_by / max(1, len(others))
        ends = range(1, len(others) + 1)
        return any(self._passes.at_least(id(run), list(map(id, others[:end])), error) > 1 for end in ends)

    def gain(self, run: Run, other: Run, divide_error_by: int) -> float:
        """Return an upper bound of the throughput of `other` (more processes) divided by that of `run`."""
        return self._passes.at_most(id(run), id(other), self._error * TREND / 2 / divide_error_by)

    def base_ratio(self, base: Run, other: Run) -> Ratio | None:
        """Return the figure of `other` divided by that of `base`; None for too few passes.

        The interval is narrower than that of `ratio`, because callers request at most one ratio for each run.
        """
        return self._passes.ratio(id(base), id(other), self._error * (1 - BEST - TREND) / self._count)

    def is_less(self, run: Run, other: Run) -> bool:
        """Return whether the figure of `run` is significantly below that of `other`."""
        ratio = self.ratio(other, run)
        return ratio is not None and ratio.is_below

    def adds_little(self, run: Run, other: Run) -> bool:
        """Return whether the upper bound of the lead of `other` over `run` is below 10% (NEAR)."""
        ratio = self.ratio(run, other)
        return ratio is not None and ratio.high < 1 / (1 - NEAR)

    @cached_property
    def passes_needed(self) -> int:
        """Estimated number of trials of each case that would show a difference of NEAR (10%)."""
        return self._passes.passes_needed(NEAR, self._error * TREND)


MAX_ADVISED_PASSES = 100
"""Largest number of trials (--repeat) that a sentence advises."""


def noise(tested: PairwiseTests) -> Noise:
    """Return the reason why tests are unclear: the number of trials made, and the number needed."""
    return too_noisy(tested.passes, tested.passes_needed)


def too_noisy(count: int, needed: int) -> Noise:
    """Return the reason why tests are unclear: only `count` of the `needed` trials of each case were made."""
    enough = None if needed > MAX_ADVISED_PASSES else max(needed, count + 1)
    return Noise(count, NEAR, enough, MAX_ADVISED_PASSES)


def longest_wait_ns(run: Run) -> int:
    """Return the latency of the slowest operation in a run's valid trials, in ns; 0 if unknown."""
    return max((trial.longest_wait_ns or 0 for trial in run.valid), default=0)


def by_files(items: Iterable[T], files: Callable[[T], int]) -> dict[int, list[T]]:
    """Group items by number of files, ascending. `files` returns the number of files of an item."""
    by_count: dict[int, list[T]] = {}
    for item in items:
        by_count.setdefault(files(item), []).append(item)
    return dict(sorted(by_count.items()))


class ExperimentReader(Protocol):
    """Methods of a presenter (object that shows an experiment's results) that this package calls."""

    def rate(self, run: Run) -> float | None:
        """Return the rate of a run (transactions, cycles or rows per second); None if unknown."""

    def findings(self, group: Group) -> Iterator[Finding]:
        """Yield the experiment's own findings on a group, in addition to those for all experiments."""

    def activity(self, group: Group) -> str:
        """Return a clause on the work of the worker processes, to begin the description of a table."""

    def failure_reason(self, run: Run) -> str:
        """Return a clause on the reason why operations of a run failed."""

    def loads(self, cases: Sequence[Case]) -> list[str]:
        """Return a text such as "batch 10" for each case: options of the work in which the cases differ."""


def reader_of(case: Case) -> ExperimentReader:
    """Return the presenter of a case's experiment: the object that shows its results."""
    reader: ExperimentReader = experiment_of(case).presenter()
    return reader


def group_runs(runs: Iterable[Run]) -> tuple[Group, ...]:
    """Return the runs in groups, one for each table. The experiment decides which options vary in a table."""
    runs = tuple(runs)
    if any(run.met_quota for run in runs):
        runs = tuple(map(_without_foreign_load, runs))
    groups: dict[tuple[str | None, Case], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.arm, experiment_of(run.case).table_key(run.case)), []).append(run)
    return tuple(Group(members[0].case, tuple(members), len(groups)) for members in groups.values())


def _without_foreign_load(run: Run) -> Run:
    """Return a copy of a run without figures on the load of other programs.

    If a CPU quota stops our processes, other programs use processors that we could not use anyway.
    """
    return replace(
        run,
        trials=tuple(
            replace(trial, foreign_share=None, stolen_share=None, disk_share=None) for trial in run.trials
        ),
    )


def rate_of(run: Run) -> float | None:
    """Return a run's rate per second; None for an incomplete run, wrong data or too many failures."""
    trial = run.valid_median_trial()
    if trial is None or trial.outcome != "done" or run.verdict.status == "failed" or run.failed_too_many:
        return None
    rate = finite(reader_of(run.case).rate(run))
    return rate if rate is not None and rate > 0 else None


# Merging of groups whose cases differ in a single option, so that they share a table.


def merge_groups(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Merge groups (tables) that differ in a single option, as the `parts` of one larger group.

    If groups can be merged by several options, choose the option that leaves the fewest groups.
    """
    families: dict[Hashable, list[Group]] = {}
    for group in groups:
        families.setdefault(_merge_key(group), []).append(group)
    merged = []
    for family in families.values():
        traits = [experiment_of(group.case).traits(group.case) for group in family]
        splits = (
            [(name, _split_family(family, traits, name)) for name in traits[0]] if len(family) > 1 else []
        )
        name, lists = min(
            splits, key=lambda split: len(split[1]), default=("", [[group] for group in family])
        )
        for parts in lists:
            runs = tuple(run for part in parts for run in part.runs)
            is_merged = len(parts) > 1
            merged.append(
                Group(parts[0].case, runs, setting=name, parts=tuple(parts)) if is_merged else parts[0]
            )
    # ERROR is divided by this count. Merged groups count once more, because their parts are compared, too.
    count = len(groups) + sum(bool(group.parts) for group in merged)
    return tuple(
        replace(group, groups=count, parts=tuple(replace(part, groups=count) for part in group.parts))
        for group in merged
    )


def _merge_key(group: Group) -> Hashable:
    """Return a key that is equal for groups that may be merged, because they differ only in options."""
    experiment = experiment_of(group.case)
    if not experiment.traits(group.case):
        return id(group)
    bare = replace(
        experiment.table_key(group.case),
        name="",
        driver="",
        settings=Settings(),
        server=None,
        spec=experiment.spec(),
    )
    return group.runs[0].arm, bare, stores_nothing(group.case.driver)


def _split_family(family: list[Group], traits: list[Mapping[str, str]], name: str) -> list[list[Group]]:
    """Divide groups into lists. Groups in one list differ only in the option `name`.

    `traits` has the options of each group, such as {"synchronous": "full"}.
    """
    lists: dict[Hashable, list[Group]] = {}
    seen_labels: set[Hashable] = set()
    # Drivers of different targets, such as SQLite and PostgreSQL, support different options. So if drivers
    # are compared, only the options that all groups have must agree.
    common = set.intersection(*map(set, traits)) if name == "driver" else set().union(*traits)
    for group, values_by_name in zip(family, traits, strict=True):
        other_traits = tuple(
            sorted((key, value) for key, value in values_by_name.items() if key != name and key in common)
        )
        # If two groups agree in all options, their rows would have equal labels. So the second group gets its
        # own list.
        labels = (other_traits, values_by_name.get(name))
        lists.setdefault((other_traits, id(group) if labels in seen_labels else None), []).append(group)
        seen_labels.add(labels)
    return list(lists.values())


def sightings(group: Group, topic: str) -> Iterator[Sighting]:
    """Yield the workers' observations on a topic, such as failed statements, in a group's trials."""
    trials = (trial for run in group.runs for trial in run.all_trials)
    return (sighting for trial in trials for sighting in trial.sightings if sighting.topic == topic)
