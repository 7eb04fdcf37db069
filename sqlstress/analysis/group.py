"""Group: the runs of a report that can stand in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlstress.analysis.wording import finite
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case

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
        return f"{self.case.unit}s"

    @property
    def writes(self) -> bool:
        """Whether the workers take SQLite's write lock."""
        if self.case.driver == "dry":
            return False
        load = self.case.load
        return self.case.workload != "kv" or load.read_ratio < 1 or load.update_ratio > 0

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


def by_files(ones: Iterable[T], files: Callable[[T], int]) -> dict[int, list[T]]:
    """Return things by their number of files, ascending; those of a number in the order given."""
    found: dict[int, list[T]] = {}
    for one in ones:
        found.setdefault(files(one), []).append(one)
    return dict(sorted(found.items()))


def _without_layout(case: Case) -> Case:
    return replace(case, concurrency=1, buckets=1, seed=0)


def _without_method(case: Case) -> Case:
    settings = replace(case.settings, journal_mode="")
    return replace(
        case, workload=case.experiment, concurrency=1, driver="", seed=0, method=None, settings=settings
    )


def _without_picks(case: Case) -> Case:
    assert case.picks is not None
    work = replace(case.picks, schema="", id_type="", made_by="")
    return replace(case, concurrency=1, seed=0, picks=work)


def _without_cycling(case: Case) -> Case:
    settings = replace(case.settings, journal_mode="", wal_autocheckpoint=None)
    cycling = case.cycling and replace(case.cycling, transaction="", timeout_s=None)
    return replace(case, workload=case.experiment, concurrency=1, seed=0, cycling=cycling, settings=settings)


_COMMON: dict[str, Callable[[Case], Case]] = {
    "kv": _without_layout,
    "methods": _without_method,
    "keys": _without_picks,
    "cycles": _without_cycling,
}
"""Experiment → what all cases of one of its tables have in common: the case without what it varies."""


def group_runs(runs: Iterable[Run]) -> tuple[Group, ...]:
    """Put runs together that differ only in what their experiment varies, in order of appearance."""
    groups: dict[tuple[str | None, Case], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.arm, _COMMON[run.case.experiment](run.case)), []).append(run)
    return tuple(Group(members[0].case, tuple(members)) for members in groups.values())
