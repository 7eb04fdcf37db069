"""Group: the runs of a report that can stand in one table, and the rate by which each is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sqlstress.analysis.wording import finite
from sqlstress.experiment import face_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.target import stores_nothing

T = TypeVar("T")


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

    @property
    def unit(self) -> str:
        """What is counted, in the plural: transactions or pairs."""
        return face_of(self.case).units

    @property
    def writes(self) -> bool:
        """Whether the workers take SQLite's write lock."""
        if stores_nothing(self.case.driver):
            return False
        return face_of(self.case).writes(self.case)

    def points(self) -> tuple[Point, ...]:
        """Return the figures of the runs that were measured and whose data was not found wrong."""
        return tuple(
            Point(run.case.buckets, run.case.concurrency, tps)
            for run in self.runs
            if run.verdict.status != "failed" and (tps := finite(run.median_tps())) and tps > 0
        )

    def measured(self) -> Iterator[tuple[Run, Trial]]:
        """Yield each run that has a valid trial, with its typical one."""
        for run in self.runs:
            if trial := run.shown():
                yield run, trial


def longest_wait_ns(run: Run) -> int:
    """Return the longest wait of a run's valid trials, in nanoseconds; 0 where none was observed."""
    return max((trial.longest_wait_ns or 0 for trial in run.valid), default=0)


def by_files(ones: Iterable[T], files: Callable[[T], int]) -> dict[int, list[T]]:
    """Return things by their number of files, ascending; those of a number in the order given."""
    found: dict[int, list[T]] = {}
    for one in ones:
        found.setdefault(files(one), []).append(one)
    return dict(sorted(found.items()))


def group_runs(runs: Iterable[Run]) -> tuple[Group, ...]:
    """Put runs together that differ only in what their experiment varies, in order of appearance."""
    groups: dict[tuple[str | None, Case], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.arm, face_of(run.case).one_table(run.case)), []).append(run)
    return tuple(Group(members[0].case, tuple(members)) for members in groups.values())


def rate_of(run: Run) -> float | None:
    """Return how much a second all processes did together; None if it was not done, or its data is wrong."""
    trial = run.shown()
    if trial is None or trial.outcome != "done" or run.verdict.status == "failed":
        return None
    rate = finite(face_of(run.case).show().rate(run))
    return rate if rate is not None and rate > 0 else None
