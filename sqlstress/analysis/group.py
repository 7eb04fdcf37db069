"""Group: the runs of a report that can stand in one table, and the rate by which each is compared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Protocol, TypeVar

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.sentences import Noise
from sqlstress.analysis.wording import cut, laid_out, listing, place, places, process_counts
from sqlstress.experiment import experiment_of, units_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.compare import FEWEST, NEAR, Passes, Ratio
from sqlstress.statistics.units import finite
from sqlstress.target import stores_nothing

T = TypeVar("T")
LONGEST_VALUE = 24
"""Characters of a value in a table and in sentences."""

ERROR = 0.05
"""With this probability at most, anything that is concluded from the noise of a report is wrong."""
BEST, TREND = 0.4, 0.4
"""Shares of this probability: of which are the best, and of where a layout stops rising."""


@dataclass(frozen=True, slots=True)
class Point:
    """A figure that can be believed: a case with its median over the valid trials."""

    files: int
    """Database files over which the keys are partitioned."""
    processes: int
    """Worker processes."""
    tps: float
    """Transactions a second of all processes together; finite and above 0."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one experiment that can be set side by side."""

    case: Case
    """The case of the first run: it stands for all, but for what the experiment varies."""
    runs: tuple[Run, ...]
    """One or more, in the order of the report."""
    groups: int = 1
    """How many groups the report has: what is concluded of all of them is to hold together."""
    setting: str = ""
    """The option in which its parts differ: "synchronous"; "" where it has no parts."""
    parts: tuple[Group, ...] = ()
    """Its runs by their value of that option, each a group of its own."""

    def value(self, case: Case) -> str:
        """Return a case's value of the option in which the parts differ: "normal"; "" without parts."""
        return cut(experiment_of(case).traits(case).get(self.setting, ""), LONGEST_VALUE)

    def place(self, case: Case) -> str:
        """Return which of its cases it is: "normal, 8 processes on 1 bucket"; one value may be enough."""
        if self.parts and len(self.parts) == len(self.runs):
            return self.value(case)
        return ", ".join(filter(None, (self.value(case), place(case))))

    def places(self, cases: Iterable[Case]) -> str:
        """Return which of its cases they are; of a value that has them all, the value only."""
        if not self.parts:
            return places(cases)
        wanted = set(cases)
        whole, some = [], []
        for part in self.parts:
            shared = [run.case for run in part.runs if run.case in wanted]
            if len(shared) == len(part.runs):
                whole.append(self.value(part.case))
            elif shared:
                some.append(f"{self.setting} {self.value(part.case)} with {places(shared)}")
        if len(whole) == len(self.parts):
            return "every case"
        return listing([*([f"{self.setting} {listing(whole)}"] if whole else []), *some])

    def short_places(self, cases: Iterable[Case]) -> str:
        """Return the same as `places`, without a layout that all cases share."""
        layouts = {(run.case.buckets, run.case.rate) for run in self.runs}
        if self.parts or len(layouts) > 1 or self.case.rate or not experiment_of(self.case).sweeps:
            return self.places(cases)
        return process_counts(cases)

    def at_layout(self, value: str, layout: int) -> str:
        """Return a name of what was measured on a layout: "p99, 20 buckets"; where it has but one, "p99"."""
        cases = [run.case for run in self.runs]
        where = laid_out(layout, cases) if len({case.buckets for case in cases}) > 1 else ""
        return ", ".join(filter(None, (value, where)))

    @property
    def unit(self) -> str:
        """What is counted, in the plural: transactions or pairs."""
        return units_of(self.case)

    @property
    def met_quota(self) -> bool:
        """Whether a CPU quota stopped the processes: no wait then shows what caused it."""
        return any(run.met_quota for run in self.runs)

    @property
    def writes(self) -> bool:
        """Whether the workers take SQLite's write lock."""
        if stores_nothing(self.case.driver):
            return False
        return experiment_of(self.case).writes(self.case)

    def is_believed(self, run: Run) -> bool:
        """Return whether a run has figures that can be compared.

        Its data is not wrong, and no more of its operations failed than --max-failed allows.
        """
        is_sound = run.verdict.status != "failed" and not run.failed_too_many
        return is_sound and bool(finite(run.median_tps()))

    def tested(
        self, runs: Sequence[Run], figures: Callable[[Run], Mapping[int, float]] = Run.rates
    ) -> Tested | None:
        """Return what the passes of runs say of each other; None where these are too few.

        `figures` are those of a run by pass, above 0.
        """
        found = Tested(runs, [figures(run) for run in runs], ERROR / self.groups)
        return found if found.passes >= FEWEST else None

    def points(self) -> tuple[Point, ...]:
        """Return the figures of the runs that can be compared."""
        return tuple(
            Point(run.case.buckets, run.case.concurrency, tps)
            for run in self.runs
            if self.is_believed(run) and (tps := finite(run.median_tps())) and tps > 0
        )

    def measured(self) -> Iterator[tuple[Run, Trial]]:
        """Yield each run that has a valid trial, with its typical one."""
        for run in self.runs:
            if trial := run.shown():
                yield run, trial


Topic = Callable[[Group], Iterator[Finding]]
"""What there is to say of a group."""


def of_closed_loops(topic: Topic) -> Topic:
    """Let a topic say nothing of cases at a rate, where what is done in a second is what was asked for."""

    @wraps(topic)
    def found(group: Group) -> Iterator[Finding]:
        return iter(()) if group.case.rate else topic(group)

    return found


class Tested:
    """What the passes of some runs say of each other, each pair against its own noise."""

    def __init__(self, runs: Sequence[Run], figures: Sequence[Mapping[int, float]], error: float) -> None:
        # By identity: a run is no key.
        self._passes = Passes(dict(zip(map(id, runs), figures, strict=True)), error * (1 - BEST))
        self._error, self._count = error, len(runs)
        self._best = error * BEST / max(1, len(runs) - 1)

    @property
    def passes(self) -> int:
        """How many passes all of them have in common."""
        return self._passes.count

    def middle(self, run: Run) -> float:
        """Return the geometric mean of a run's figures."""
        return self._passes.middle(id(run))

    def best(self, runs: Iterable[Run]) -> Run:
        """Return which of the runs has the highest."""
        return max(runs, key=self.middle)

    def ratio(self, base: Run, other: Run) -> Ratio | None:
        """Return the other's figure over the base's."""
        return self._passes.ratio(id(base), id(other))

    # Which are the best: each is set against every other, and it is no pair of two more. Hsu (1984): whatever
    # the best one is, what the others are said to be behind holds of it if it holds of as many comparisons as
    # there are others.

    def is_behind(self, run: Run, other: Run, families: int = 1) -> bool:
        """Say whether a run is not the best of those of which another one is, beyond doubt.

        `families`: in how many sets of runs the best are looked for.
        """
        return self._passes.at_least(id(run), [id(other)], self._best / families) > 1

    def is_near(self, run: Run, other: Run, families: int = 1) -> bool:
        """Say in the same way whether another run reaches less than NEAR more than a run, if it does."""
        return self._passes.at_most(id(run), id(other), self._best / families) < 1 / (1 - NEAR)

    # Where a layout stops rising, of so many layouts; and what is then said of a run beside another one.

    def rises(self, run: Run, others: Sequence[Run], layouts: int) -> bool:
        """Say whether any of others, in ascending order, reaches more than a run, beyond doubt.

        They are looked at together too, the first of them, the first two, ...: a trend needs fewer passes.
        """
        error = self._error * TREND / 2 / layouts / max(1, len(others))
        ends = range(1, len(others) + 1)
        return any(self._passes.at_least(id(run), list(map(id, others[:end])), error) > 1 for end in ends)

    def gain(self, run: Run, other: Run, asked: int) -> float:
        """Return by which factor another run exceeds a run at most, beyond doubt; `asked`: of how many."""
        return self._passes.at_most(id(run), id(other), self._error * TREND / 2 / asked)

    def beside(self, base: Run, other: Run) -> Ratio | None:
        """Return the other's figure over the base's, if no other run is asked for twice."""
        return self._passes.ratio(id(base), id(other), self._error * (1 - BEST - TREND) / self._count)

    def is_less(self, run: Run, other: Run) -> bool:
        """Say whether a run reaches less than another one, beyond doubt."""
        ratio = self.ratio(other, run)
        return ratio is not None and ratio.is_below

    def adds_little(self, run: Run, other: Run) -> bool:
        """Say whether another run reaches less than NEAR more than a run, if it does, beyond doubt."""
        ratio = self.ratio(run, other)
        return ratio is not None and ratio.high < 1 / (1 - NEAR)

    def are_equal(self, run: Run, other: Run) -> bool:
        """Say whether two runs differ by less than NEAR, beyond doubt."""
        ratio = self.ratio(other, run)
        return run is other or (ratio is not None and ratio.is_within(NEAR))

    @cached_property
    def needed(self) -> int:
        """About how many passes would tell a difference of NEAR."""
        return self._passes.needed(NEAR, self._error * TREND)


MOST_PASSES = 100


def noise(tested: Tested) -> Noise:
    """Return the reason why passes cannot show a difference, and the number of passes that would."""
    return too_noisy(tested.passes, tested.needed)


def too_noisy(count: int, needed: int) -> Noise:
    """Return the reason why `count` passes cannot show a difference; `needed` passes would."""
    enough = None if needed > MOST_PASSES else max(needed, count + 1)
    return Noise(count, NEAR, enough, MOST_PASSES)


def longest_wait_ns(run: Run) -> int:
    """Return the longest wait of a run's valid trials, in nanoseconds; 0 where none was observed."""
    return max((trial.longest_wait_ns or 0 for trial in run.valid), default=0)


def by_files(items: Iterable[T], files: Callable[[T], int]) -> dict[int, list[T]]:
    """Return things by their number of files, ascending; those of a number in the order given."""
    found: dict[int, list[T]] = {}
    for item in items:
        found.setdefault(files(item), []).append(item)
    return dict(sorted(found.items()))


class ExperimentReader(Protocol):
    """Methods of an experiment's presenter that conclusions need."""

    def rate(self, run: Run) -> float | None:
        """Return what a valid run is compared by, per second."""

    def findings(self, group: Group) -> Iterator[Finding]:
        """Yield the findings of the experiment."""

    def what(self, group: Group) -> str:
        """Return the activity of the processes, as the beginning of a sentence."""

    def why_failed(self, run: Run) -> str:
        """Return the reason why operations of a run failed."""

    def loads(self, cases: Sequence[Case]) -> list[str]:
        """Return what differs in the loads of cases, apart from what varies in a table."""


def reader_of(case: Case) -> ExperimentReader:
    """Return the reader of a case's experiment."""
    reader: ExperimentReader = experiment_of(case).presenter()
    return reader


def group_runs(runs: Iterable[Run]) -> tuple[Group, ...]:
    """Put runs together that differ only in what their experiment varies, in order of appearance."""
    runs = tuple(runs)
    if any(run.met_quota for run in runs):
        runs = tuple(map(_without_others, runs))
    groups: dict[tuple[str | None, Case], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.arm, experiment_of(run.case).table_key(run.case)), []).append(run)
    return tuple(Group(members[0].case, tuple(members), len(groups)) for members in groups.values())


def _without_others(run: Run) -> Run:
    """Return a run without the load by other programs.

    Where a CPU quota stops the processes, other programs run in their place, and slow down nothing.
    """
    return replace(
        run,
        trials=tuple(
            replace(trial, foreign_share=None, stolen_share=None, disk_share=None) for trial in run.trials
        ),
    )


def rate_of(run: Run) -> float | None:
    """Return the rate of all processes together; None if it cannot be compared.

    The work was not done, its data is wrong, or more of it failed than --max-failed allows.
    """
    trial = run.shown()
    if trial is None or trial.outcome != "done" or run.verdict.status == "failed" or run.failed_too_many:
        return None
    rate = finite(reader_of(run.case).rate(run))
    return rate if rate is not None and rate > 0 else None


# Which groups of a report share a table: those whose cases differ in one option, and in nothing else.


def joined(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Put groups together whose cases differ in one option only, so that they can be set side by side.

    Where several options would do, it is the one that leaves the fewest tables.
    """
    families: dict[Hashable, list[Group]] = {}
    for group in groups:
        families.setdefault(_family(group), []).append(group)
    found = []
    for family in families.values():
        traits = [experiment_of(group.case).traits(group.case) for group in family]
        ways = [(name, _alike(family, traits, name)) for name in traits[0]] if len(family) > 1 else []
        name, alike = min(ways, key=lambda way: len(way[1]), default=("", [[group] for group in family]))
        for parts in alike:
            runs = tuple(run for part in parts for run in part.runs)
            several = len(parts) > 1
            found.append(
                Group(parts[0].case, runs, setting=name, parts=tuple(parts)) if several else parts[0]
            )
    # What is said of the values beside each other is one group's more.
    count = len(groups) + sum(bool(group.parts) for group in found)
    return tuple(
        replace(group, groups=count, parts=tuple(replace(part, groups=count) for part in group.parts))
        for group in found
    )


def _family(group: Group) -> Hashable:
    """Return what groups have in common that may be put together: all but the traits of their cases."""
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


def _alike(family: list[Group], traits: list[Mapping[str, str]], name: str) -> list[list[Group]]:
    """Return a family's groups, those together that differ in this option and in no other."""
    found: dict[Hashable, list[Group]] = {}
    values: set[Hashable] = set()
    # Another target has other options: drivers are set side by side if what all of them have is the same.
    common = set.intersection(*map(set, traits)) if name == "driver" else set().union(*traits)
    for group, own in zip(family, traits, strict=True):
        others = tuple(sorted((key, value) for key, value in own.items() if key != name and key in common))
        # Whoever is the same in words has a table of its own.
        twin = (others, own.get(name))
        found.setdefault((others, id(group) if twin in values else None), []).append(group)
        values.add(twin)
    return list(found.values())
