"""Group: the runs of a report that share a table, and the tests that compare these runs.

A run is all trials of a case. A pass is one trial of each case in turn. Conclusions "hold together" if the
probability that any of them is wrong because of noise is at most ERROR. A layout is a number of buckets
(database files over which the keys are partitioned). A finding is a sentence with its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
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
"""Maximum length of an option's value in a table and in sentences, in characters."""

ERROR = 0.05
"""Maximum probability that a report has any wrong conclusion because of noise."""
BEST, TREND = 0.4, 0.4
"""Shares of ERROR. BEST is for the choice of the best runs. TREND is for the tests of the number of processes
at which throughput stops rising."""


@dataclass(frozen=True, slots=True)
class Point:
    """Point of a plot: the files and processes of a case, and the median TPS of its valid trials."""

    files: int
    """Number of database files over which the keys are partitioned."""
    processes: int
    """Number of worker processes."""
    tps: float
    """Transactions per second of all processes together; finite and above 0."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one experiment that are compared in one table."""

    case: Case
    """Case of the first run. The cases of the other runs differ from this case only in fields that the
    experiment varies, such as the number of processes."""
    runs: tuple[Run, ...]
    """Runs in the order of the report; at least one."""
    groups: int = 1
    """Number of groups in the report. Each group gets an equal part of ERROR, so that the conclusions on all
    groups hold together."""
    setting: str = ""
    """Option in which the parts differ, such as "synchronous"; empty if there are no parts."""
    parts: tuple[Group, ...] = ()
    """Groups into which `runs` is split: one for each value of the option `setting`; empty if `runs` is not
    split."""

    def value(self, case: Case) -> str:
        """Return a case's value of the option `setting`, such as "normal"; "" if there are no parts."""
        return truncate(experiment_of(case).traits(case).get(self.setting, ""), MAX_VALUE_LENGTH)

    def place(self, case: Case) -> str:
        """Return the label of a case within this group: "normal, 8 processes on 1 bucket".

        If each part has a single run, the label is only the value of the option: "normal".
        """
        if self.parts and len(self.parts) == len(self.runs):
            return self.value(case)
        return ", ".join(filter(None, (self.value(case), place(case))))

    def places(self, cases: Iterable[Case]) -> str:
        """Return the label of several cases: "synchronous full and synchronous normal with 8 processes".

        The label lists the values of the option `setting`, and for each value the processes and buckets. If
        `cases` has all cases of a value (here "full"), the label names only the value. If `cases` has all
        cases of the group, the label is "every case".
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
        """Return the label of several cases, like `places`, but shorter if possible.

        The label has only the numbers of processes if the group has no parts, no fixed rate, and a single
        number of buckets.
        """
        layouts = {(run.case.buckets, run.case.rate) for run in self.runs}
        if self.parts or len(layouts) > 1 or self.case.rate or not experiment_of(self.case).sweeps:
            return self.places(cases)
        return process_counts(cases)

    def layout_value_label(self, value: str, layout: int) -> str:
        """Return the label of the value `value` on `layout` buckets: "p99, 20 buckets".

        The number of buckets is left out if all runs have the same number.
        """
        cases = [run.case for run in self.runs]
        layout_text = buckets_label(layout, cases) if len({case.buckets for case in cases}) > 1 else ""
        return ", ".join(filter(None, (value, layout_text)))

    @property
    def unit(self) -> str:
        """Name of the counted operations in the plural, such as "transactions" or "pairs"."""
        return units_of(self.case)

    @property
    def met_quota(self) -> bool:
        """Whether a CPU quota stopped our processes. If so, the quota may be the cause of a long wait."""
        return any(run.met_quota for run in self.runs)

    @property
    def writes(self) -> bool:
        """Whether the workers take SQLite's write lock."""
        if stores_nothing(self.case.driver):
            return False
        return experiment_of(self.case).writes(self.case)

    def is_believed(self, run: Run) -> bool:
        """Return whether a run's figures can be compared with other figures.

        False if the run has no rate, its data is wrong, or more operations failed than --max-failed allows.
        """
        is_sound = run.verdict.status != "failed" and not run.failed_too_many
        return is_sound and bool(finite(run.median_tps()))

    def pairwise_tests(
        self, runs: Sequence[Run], figures: Callable[[Run], Mapping[int, float]] = Run.rates
    ) -> PairwiseTests | None:
        """Return the pairwise tests of runs; None if they have fewer than MIN_PASSES passes in common.

        `figures` returns the compared figures of a run, by the number of the pass. All figures are above 0.
        """
        tests = PairwiseTests(runs, [figures(run) for run in runs], ERROR / self.groups)
        return tests if tests.passes >= MIN_PASSES else None

    def points(self) -> tuple[Point, ...]:
        """Return a point for each run whose figures can be compared."""
        return tuple(
            Point(run.case.buckets, run.case.concurrency, tps)
            for run in self.runs
            if self.is_believed(run) and (tps := finite(run.median_tps())) and tps > 0
        )

    def measured(self) -> Iterator[tuple[Run, Trial]]:
        """Yield each run that has a valid trial, with its typical valid trial."""
        for run in self.runs:
            if trial := run.valid_median_trial():
                yield run, trial


Topic = Callable[[Group], Iterator[Finding]]
"""Function that yields the findings on one subject for a group, such as its leading runs."""


def closed_loop_only(topic: Topic) -> Topic:
    """Decorate a topic: restrict it to closed loops.

    In a closed loop, a process starts an operation when its last operation has ended. At a fixed rate, the
    throughput is only the requested rate, so the decorated topic yields nothing.
    """

    @wraps(topic)
    def closed_loop_topic(group: Group) -> Iterator[Finding]:
        return iter(()) if group.case.rate else topic(group)

    return closed_loop_topic


class PairwiseTests:
    """Pairwise tests of runs, by their figures in the passes that the runs have in common.

    The noise of a test comes from the two runs alone: from the scatter of their ratio over the passes.

    `error` is the probability that any result is wrong. The share BEST of `error` is for the choice of the
    best runs. A caller spends the rest in one of two ways: on the ratios of all pairs (`ratio`), or on the
    throughput curves of the layouts (the methods below "The curve of a layout").
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
        """Return the geometric mean of a run's figures in the passes that all runs have in common."""
        return self._passes.middle(id(run))

    def best(self, runs: Iterable[Run]) -> Run:
        """Return the run with the highest geometric mean of its figures."""
        return max(runs, key=self.middle)

    def ratio(self, base: Run, other: Run) -> Ratio | None:
        """Return the figure of `other` divided by that of `base`, with an interval.

        None if the two have too few passes in common. The intervals of all pairs of runs hold together.
        """
        return self._passes.ratio(id(base), id(other))

    # Choice of the best runs. Each run is compared with each other run. The error probability is divided by
    # the number of other runs. A division by the number of all pairs is not needed, because only the
    # comparisons with the truly best run must be right (Hsu 1984).

    def is_behind(self, run: Run, other: Run, families: int = 1) -> bool:
        """Return whether `other` is significantly better than `run`. If so, `run` is not the best run.

        `families` is the number of sets of runs in which a best run is sought.
        """
        return self._passes.at_least(id(run), [id(other)], self._best / families) > 1

    def is_near(self, run: Run, other: Run, families: int = 1) -> bool:
        """Return whether `other` is better than `run` by significantly less than the share NEAR.

        Also true if `other` is not better.
        `families` is the number of sets of runs in which a best run is sought.
        """
        return self._passes.at_most(id(run), id(other), self._best / families) < 1 / (1 - NEAR)

    # The curve of a layout (number of files): its throughput by number of processes. The methods test where
    # the throughput stops rising, and return ratios between runs of the curve.

    def rises(self, run: Run, others: Sequence[Run], layouts: int) -> bool:
        """Return whether throughput rises significantly from `run` to `others`.

        `others` has runs with more processes, in ascending order. `run` is compared with the first of
        `others`, with the mean of the first two, with the mean of the first three, and so on. A mean of
        several runs shows a rise after fewer passes than a single run. `layouts` is the number of layouts
        that are tested.
        """
        error = self._error * TREND / 2 / layouts / max(1, len(others))
        ends = range(1, len(others) + 1)
        return any(self._passes.at_least(id(run), list(map(id, others[:end])), error) > 1 for end in ends)

    def gain(self, run: Run, other: Run, bounds: int) -> float:
        """Return an upper bound of the figure of `other` divided by that of `run`.

        `bounds` is the number of bounds that must all be right; the error probability is divided by it.
        """
        return self._passes.at_most(id(run), id(other), self._error * TREND / 2 / bounds)

    def beside(self, base: Run, other: Run) -> Ratio | None:
        """Return the figure of `other` divided by that of `base`, with an interval; None with too few passes.

        Up to as many of these intervals as there are runs hold together. The intervals of `ratio` are wider,
        because they hold together for all pairs of runs.
        """
        return self._passes.ratio(id(base), id(other), self._error * (1 - BEST - TREND) / self._count)

    def is_less(self, run: Run, other: Run) -> bool:
        """Return whether the figure of `run` is significantly below that of `other`."""
        ratio = self.ratio(other, run)
        return ratio is not None and ratio.is_below

    def adds_little(self, run: Run, other: Run) -> bool:
        """Return whether `other` is better than `run` by significantly less than the share NEAR.

        Also true if `other` is not better.
        """
        ratio = self.ratio(run, other)
        return ratio is not None and ratio.high < 1 / (1 - NEAR)

    def are_equal(self, run: Run, other: Run) -> bool:
        """Return whether two runs differ by significantly less than the share NEAR."""
        ratio = self.ratio(other, run)
        return run is other or (ratio is not None and ratio.is_within(NEAR))

    @cached_property
    def passes_needed(self) -> int:
        """Estimated number of passes that are needed to detect a relative difference of NEAR."""
        return self._passes.passes_needed(NEAR, self._error * TREND)


MAX_ADVISED_PASSES = 100
"""Largest number of passes that a sentence advises."""


def noise(tested: PairwiseTests) -> Noise:
    """Return the reason why tests of runs are unclear: noise, and the number of passes that would suffice."""
    return too_noisy(tested.passes, tested.passes_needed)


def too_noisy(count: int, needed: int) -> Noise:
    """Return the reason why `count` passes are too few to show a difference of the share NEAR.

    `needed` is the number of passes that would suffice. It is left out if it exceeds MAX_ADVISED_PASSES.
    """
    enough = None if needed > MAX_ADVISED_PASSES else max(needed, count + 1)
    return Noise(count, NEAR, enough, MAX_ADVISED_PASSES)


def longest_wait_ns(run: Run) -> int:
    """Return the longest wait of an operation in a run's valid trials, in ns; 0 if no wait was observed."""
    return max((trial.longest_wait_ns or 0 for trial in run.valid), default=0)


def by_files(items: Iterable[T], files: Callable[[T], int]) -> dict[int, list[T]]:
    """Return the items in lists by number of files, in ascending order of that number.

    `files` returns the number of files of an item.
    """
    by_count: dict[int, list[T]] = {}
    for item in items:
        by_count.setdefault(files(item), []).append(item)
    return dict(sorted(by_count.items()))


class ExperimentReader(Protocol):
    """Methods that conclusions need of an experiment's presenter (the object that shows its results)."""

    def rate(self, run: Run) -> float | None:
        """Return the rate by which a run with a valid trial is compared, per second; None if there is none.

        Depending on the experiment, the rate counts transactions, cycles or rows.
        """

    def findings(self, group: Group) -> Iterator[Finding]:
        """Yield the findings on a group that only this experiment has."""

    def activity(self, group: Group) -> str:
        """Return the activity of the processes, as the beginning of a sentence."""

    def failure_reason(self, run: Run) -> str:
        """Return the reason why operations of a run failed, as a clause."""

    def loads(self, cases: Sequence[Case]) -> list[str]:
        """Return, for each case, the values of the load options in which the cases differ, as text.

        Options that vary within a table, such as the number of processes, are left out.
        """


def reader_of(case: Case) -> ExperimentReader:
    """Return the presenter of a case's experiment, typed by the methods that conclusions need."""
    reader: ExperimentReader = experiment_of(case).presenter()
    return reader


def group_runs(runs: Iterable[Run]) -> tuple[Group, ...]:
    """Return the groups of some runs, in order of appearance.

    The runs of a group differ only in fields that their experiment varies, such as the number of processes.
    """
    runs = tuple(runs)
    if any(run.met_quota for run in runs):
        runs = tuple(map(_without_foreign_load, runs))
    groups: dict[tuple[str | None, Case], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.arm, experiment_of(run.case).table_key(run.case)), []).append(run)
    return tuple(Group(members[0].case, tuple(members), len(groups)) for members in groups.values())


def _without_foreign_load(run: Run) -> Run:
    """Return a copy of a run without the recorded load of other programs.

    While a CPU quota stops our processes, other programs can use the processors without disturbing us. So the
    load of other programs must not cause a warning.
    """
    return replace(
        run,
        trials=tuple(
            replace(trial, foreign_share=None, stolen_share=None, disk_share=None) for trial in run.trials
        ),
    )


def rate_of(run: Run) -> float | None:
    """Return the rate of all processes of a run together, per second; None if it cannot be compared.

    A rate cannot be compared if the work was not completed, the data is wrong, or more operations failed than
    --max-failed allows.
    """
    trial = run.valid_median_trial()
    if trial is None or trial.outcome != "done" or run.verdict.status == "failed" or run.failed_too_many:
        return None
    rate = finite(reader_of(run.case).rate(run))
    return rate if rate is not None and rate > 0 else None


# Merging of groups whose cases differ in a single option, so that they share a table.


def merge_groups(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Merge groups whose cases differ in one option only, and return the resulting groups.

    The merged groups become the parts of a new group. If groups can be merged over any of several options,
    the option that leaves the fewest groups is chosen.
    """
    families: dict[Hashable, list[Group]] = {}
    for group in groups:
        families.setdefault(_family(group), []).append(group)
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
    # ERROR is divided by the number of groups. Each merged group also has a comparison of the values of an
    # option, which counts as another group.
    count = len(groups) + sum(bool(group.parts) for group in merged)
    return tuple(
        replace(group, groups=count, parts=tuple(replace(part, groups=count) for part in group.parts))
        for group in merged
    )


def _family(group: Group) -> Hashable:
    """Return a key that is equal for groups that may be merged.

    The key has all fields of the case except for its traits. Traits are the options that may differ between
    groups that are merged.
    """
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
    """Split a family into lists, and return the lists. The groups of a list differ in the option `name` only.

    The groups of a family have equal keys (`_family`). `traits` has the options of each group, by name, as
    text.
    """
    lists: dict[Hashable, list[Group]] = {}
    seen_labels: set[Hashable] = set()
    # Groups with different drivers may have different options, because each target (SQLite, PostgreSQL) has
    # its own. Such groups get into the same list if they agree in the options that all groups have.
    common = set.intersection(*map(set, traits)) if name == "driver" else set().union(*traits)
    for group, values_by_name in zip(family, traits, strict=True):
        other_traits = tuple(
            sorted((key, value) for key, value in values_by_name.items() if key != name and key in common)
        )
        # Rows of two groups with the same values of all options would have equal labels. So the second of
        # these groups gets a list of its own.
        labels = (other_traits, values_by_name.get(name))
        lists.setdefault((other_traits, id(group) if labels in seen_labels else None), []).append(group)
        seen_labels.add(labels)
    return list(lists.values())


def sightings(group: Group, topic: str) -> Iterator[Sighting]:
    """Yield the observations with this topic, from the workers of all trials of a group."""
    trials = (trial for run in group.runs for trial in run.trials)
    return (sighting for trial in trials for sighting in trial.sightings if sighting.topic == topic)
