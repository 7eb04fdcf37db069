"""Group: the runs of a report that share a table, and the rate by which each run is compared."""

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
from sqlstress.statistics.compare import MIN_PASSES, NEAR, Passes, Ratio
from sqlstress.statistics.units import finite
from sqlstress.target import stores_nothing

T = TypeVar("T")
MAX_VALUE_LENGTH = 24
"""Maximum length of a value in a table and in sentences, in characters."""

ERROR = 0.05
"""Maximum probability that a report has any wrong conclusion because of noise."""
BEST, TREND = 0.4, 0.4
"""Shares of ERROR: for the choice of the best runs, and for the point where throughput stops rising."""


@dataclass(frozen=True, slots=True)
class Point:
    """A trustworthy figure: a case with the median rate of its valid trials."""

    files: int
    """Database files over which the keys are partitioned."""
    processes: int
    """Worker processes."""
    tps: float
    """Transactions per second of all processes together; finite and above 0."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one experiment that are compared in one table."""

    case: Case
    """Case of the first run. It represents all cases, except for the fields that the experiment varies."""
    runs: tuple[Run, ...]
    """Runs in the order of the report; at least one."""
    groups: int = 1
    """Number of groups in the report. ERROR is divided by it, so that all conclusions hold together."""
    setting: str = ""
    """Option in which the parts differ, such as "synchronous"; empty if there are no parts."""
    parts: tuple[Group, ...] = ()
    """The runs, split into a group for each value of that option; empty if they are not split."""

    def value(self, case: Case) -> str:
        """Return a case's value of the option in which the parts differ: "normal"; "" without parts."""
        return truncate(experiment_of(case).traits(case).get(self.setting, ""), MAX_VALUE_LENGTH)

    def place(self, case: Case) -> str:
        """Return the label of a case within this group: "normal, 8 processes on 1 bucket".

        If each part has one run, the value of the option is enough.
        """
        if self.parts and len(self.parts) == len(self.runs):
            return self.value(case)
        return ", ".join(filter(None, (self.value(case), place(case))))

    def places(self, cases: Iterable[Case]) -> str:
        """Return the label of several cases. If all cases of a value are given, its layouts are left out."""
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
        """Return the label of several cases, like `places`, but without a layout that all runs share."""
        layouts = {(run.case.buckets, run.case.rate) for run in self.runs}
        if self.parts or len(layouts) > 1 or self.case.rate or not experiment_of(self.case).sweeps:
            return self.places(cases)
        return process_counts(cases)

    def layout_value_label(self, value: str, layout: int) -> str:
        """Return the name of a value on a layout: "p99, 20 buckets"; "p99" if there is only one layout."""
        cases = [run.case for run in self.runs]
        layout_text = buckets_label(layout, cases) if len({case.buckets for case in cases}) > 1 else ""
        return ", ".join(filter(None, (value, layout_text)))

    @property
    def unit(self) -> str:
        """Name of the counted unit in the plural, such as transactions or pairs."""
        return units_of(self.case)

    @property
    def met_quota(self) -> bool:
        """Whether a CPU quota stopped the processes. If so, no cause can be derived from a long wait."""
        return any(run.met_quota for run in self.runs)

    @property
    def writes(self) -> bool:
        """Whether the workers take SQLite's write lock."""
        if stores_nothing(self.case.driver):
            return False
        return experiment_of(self.case).writes(self.case)

    def is_believed(self, run: Run) -> bool:
        """Return whether a run's figures can be compared.

        They cannot if it has no rate, its data is wrong, or more operations failed than --max-failed allows.
        """
        is_sound = run.verdict.status != "failed" and not run.failed_too_many
        return is_sound and bool(finite(run.median_tps()))

    def pairwise_tests(
        self, runs: Sequence[Run], figures: Callable[[Run], Mapping[int, float]] = Run.rates
    ) -> PairwiseTests | None:
        """Return the pairwise tests of runs; None if they have fewer than MIN_PASSES passes in common.

        `figures` returns a run's figure by pass, each above 0.
        """
        tests = PairwiseTests(runs, [figures(run) for run in runs], ERROR / self.groups)
        return tests if tests.passes >= MIN_PASSES else None

    def points(self) -> tuple[Point, ...]:
        """Return the figures of the runs whose figures can be compared."""
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
"""Function that yields the findings on one subject for a group."""


def closed_loop_only(topic: Topic) -> Topic:
    """Restrict a topic to closed loops: at a fixed rate, throughput is just the requested rate."""

    @wraps(topic)
    def closed_loop_topic(group: Group) -> Iterator[Finding]:
        return iter(()) if group.case.rate else topic(group)

    return closed_loop_topic


class PairwiseTests:
    """Pairwise tests of runs, by their figures in common passes, each pair against its own noise."""

    def __init__(self, runs: Sequence[Run], figures: Sequence[Mapping[int, float]], error: float) -> None:
        # The keys are identities, because runs are not hashable.
        self._passes = Passes(dict(zip(map(id, runs), figures, strict=True)), error * (1 - BEST))
        self._error, self._count = error, len(runs)
        self._best = error * BEST / max(1, len(runs) - 1)

    @property
    def passes(self) -> int:
        """Number of passes that all runs have in common."""
        return self._passes.count

    def middle(self, run: Run) -> float:
        """Return the geometric mean of a run's figures."""
        return self._passes.middle(id(run))

    def best(self, runs: Iterable[Run]) -> Run:
        """Return the run with the highest geometric mean."""
        return max(runs, key=self.middle)

    def ratio(self, base: Run, other: Run) -> Ratio | None:
        """Return the figure of `other` over that of `base`. The ratios of all pairs hold together."""
        return self._passes.ratio(id(base), id(other))

    # Choice of the best runs. Each run is compared with every other. The error probability is divided by the
    # number of other runs, not of all pairs (Hsu 1984): only comparisons with the true best run must hold.

    def is_behind(self, run: Run, other: Run, families: int = 1) -> bool:
        """Return whether `other` is significantly better than `run`, which therefore is not the best.

        `families` is the number of sets of runs in which the best run is sought.
        """
        return self._passes.at_least(id(run), [id(other)], self._best / families) > 1

    def is_near(self, run: Run, other: Run, families: int = 1) -> bool:
        """Return whether any lead of `other` over `run` is significantly smaller than NEAR."""
        return self._passes.at_most(id(run), id(other), self._best / families) < 1 / (1 - NEAR)

    # Point where a layout's throughput stops rising, and ratios that describe its curve.

    def rises(self, run: Run, others: Sequence[Run], layouts: int) -> bool:
        """Return whether throughput rises significantly from `run` to `others`, in ascending order.

        The first of `others`, the mean of the first two, of the first three, ... are tested against `run`:
        a trend needs fewer passes than a single pair. `layouts` is the number of layouts tested.
        """
        error = self._error * TREND / 2 / layouts / max(1, len(others))
        ends = range(1, len(others) + 1)
        return any(self._passes.at_least(id(run), list(map(id, others[:end])), error) > 1 for end in ends)

    def gain(self, run: Run, other: Run, asked: int) -> float:
        """Return an upper bound of `other` / `run`. `asked` is the number of such bounds that must hold."""
        return self._passes.at_most(id(run), id(other), self._error * TREND / 2 / asked)

    def beside(self, base: Run, other: Run) -> Ratio | None:
        """Return `other` / `base`. The intervals of as many pairs as there are runs hold together."""
        return self._passes.ratio(id(base), id(other), self._error * (1 - BEST - TREND) / self._count)

    def is_less(self, run: Run, other: Run) -> bool:
        """Return whether the figure of `run` is significantly below that of `other`."""
        ratio = self.ratio(other, run)
        return ratio is not None and ratio.is_below

    def adds_little(self, run: Run, other: Run) -> bool:
        """Return whether any gain from `run` to `other` is significantly smaller than NEAR."""
        ratio = self.ratio(run, other)
        return ratio is not None and ratio.high < 1 / (1 - NEAR)

    def are_equal(self, run: Run, other: Run) -> bool:
        """Return whether two runs differ by significantly less than NEAR."""
        ratio = self.ratio(other, run)
        return run is other or (ratio is not None and ratio.is_within(NEAR))

    @cached_property
    def passes_needed(self) -> int:
        """Estimated number of passes needed to detect a relative difference of NEAR."""
        return self._passes.passes_needed(NEAR, self._error * TREND)


MAX_ADVISED_PASSES = 100
"""Largest number of passes that is advised."""


def noise(tested: PairwiseTests) -> Noise:
    """Return the reason why the passes of runs show no difference, and the number of passes that would."""
    return too_noisy(tested.passes, tested.passes_needed)


def too_noisy(count: int, needed: int) -> Noise:
    """Return the reason why `count` passes cannot show a difference; `needed` passes would."""
    enough = None if needed > MAX_ADVISED_PASSES else max(needed, count + 1)
    return Noise(count, NEAR, enough, MAX_ADVISED_PASSES)


def longest_wait_ns(run: Run) -> int:
    """Return the longest wait of a run's valid trials, in ns; 0 if no wait was observed."""
    return max((trial.longest_wait_ns or 0 for trial in run.valid), default=0)


def by_files(items: Iterable[T], files: Callable[[T], int]) -> dict[int, list[T]]:
    """Return lists of items by number of files, ascending. `files` returns an item's number of files."""
    by_count: dict[int, list[T]] = {}
    for item in items:
        by_count.setdefault(files(item), []).append(item)
    return dict(sorted(by_count.items()))


class ExperimentReader(Protocol):
    """Methods of an experiment's presenter that conclusions need."""

    def rate(self, run: Run) -> float | None:
        """Return the rate by which a valid run is compared, per second; None if it has no such rate."""

    def findings(self, group: Group) -> Iterator[Finding]:
        """Yield the findings of the experiment."""

    def activity(self, group: Group) -> str:
        """Return the activity of the processes, as the beginning of a sentence."""

    def failure_reason(self, run: Run) -> str:
        """Return the reason why operations of a run failed."""

    def loads(self, cases: Sequence[Case]) -> list[str]:
        """Return a text per case: the load options that differ, except those that vary in a table."""


def reader_of(case: Case) -> ExperimentReader:
    """Return the presenter of a case's experiment, by the methods that conclusions need."""
    reader: ExperimentReader = experiment_of(case).presenter()
    return reader


def group_runs(runs: Iterable[Run]) -> tuple[Group, ...]:
    """Group the runs that differ only in fields that their experiment varies, in order of appearance."""
    runs = tuple(runs)
    if any(run.met_quota for run in runs):
        runs = tuple(map(_without_foreign_load, runs))
    groups: dict[tuple[str | None, Case], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.arm, experiment_of(run.case).table_key(run.case)), []).append(run)
    return tuple(Group(members[0].case, tuple(members), len(groups)) for members in groups.values())


def _without_foreign_load(run: Run) -> Run:
    """Return a run without the recorded load of other programs.

    If a CPU quota stops our processes, other programs use the processors in their place and disturb nothing.
    """
    return replace(
        run,
        trials=tuple(
            replace(trial, foreign_share=None, stolen_share=None, disk_share=None) for trial in run.trials
        ),
    )


def rate_of(run: Run) -> float | None:
    """Return the rate of all processes together; None if it cannot be compared.

    It cannot if the work was not completed, its data is wrong, or more failed than --max-failed allows.
    """
    trial = run.valid_median_trial()
    if trial is None or trial.outcome != "done" or run.verdict.status == "failed" or run.failed_too_many:
        return None
    rate = finite(reader_of(run.case).rate(run))
    return rate if rate is not None and rate > 0 else None


# Merging of groups whose cases differ in a single option, so that they share a table.


def merge_groups(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Merge groups whose cases differ in one option only. They become the parts of the merged group.

    If several options qualify, the option that leaves the fewest tables is taken.
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
    # The comparison of the values of the option counts as one group more.
    count = len(groups) + sum(bool(group.parts) for group in merged)
    return tuple(
        replace(group, groups=count, parts=tuple(replace(part, groups=count) for part in group.parts))
        for group in merged
    )


def _family(group: Group) -> Hashable:
    """Return a key that is equal for groups that may be merged: all fields except the traits."""
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
    """Return a family's groups as lists; the groups of a list differ in this option only."""
    lists: dict[Hashable, list[Group]] = {}
    seen_labels: set[Hashable] = set()
    # Targets have different options, so drivers are compared if they agree in the options that all have.
    common = set.intersection(*map(set, traits)) if name == "driver" else set().union(*traits)
    for group, values_by_name in zip(family, traits, strict=True):
        other_traits = tuple(
            sorted((key, value) for key, value in values_by_name.items() if key != name and key in common)
        )
        # A group with the labels of an earlier group would be confused with it, so it gets its own table.
        labels = (other_traits, values_by_name.get(name))
        lists.setdefault((other_traits, id(group) if labels in seen_labels else None), []).append(group)
        seen_labels.add(labels)
    return list(lists.values())
