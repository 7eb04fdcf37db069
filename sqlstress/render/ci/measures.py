"""The figures that benchmark trackers keep: a median, and between which values the trials lay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from sqlstress.analysis.wording import finite
from sqlstress.experiment import face_of
from sqlstress.report import Run


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a case over its valid trials."""

    value: float
    """The median."""
    low: float
    """The lowest."""
    high: float
    """The highest."""

    @property
    def is_range(self) -> bool:
        """Whether there was more than one trial to tell how far they differ."""
        return self.low < self.high


def rates(run: Run) -> Iterator[float | None]:
    """Yield what each trial did a second: transactions, or the rows of a method where it was done."""
    return face_of(run.case).show().tracked(run)


def unit(run: Run) -> str:
    """Return what the rates count, in the plural."""
    return face_of(run.case).show().tracked_unit(run.case)


def throughput(run: Run) -> Measure | None:
    """Return the rate of a run; None where there is none that can be believed."""
    return _measure(run, rates(run))


def p99_ns(run: Run, kind: str) -> Measure | None:
    """Return the 99th percentile of a kind of operation, in ns; None where there is none."""
    found = (trial.latency[kind] for trial in run.valid if kind in trial.latency)
    return _measure(run, (latency.p99_ns for latency in found))


def kinds(run: Run) -> list[str]:
    """Return the kinds of operations of a run, by name."""
    return sorted({kind for trial in run.valid for kind in trial.latency})


def _measure(run: Run, values: Iterable[float | None]) -> Measure | None:
    known = [value for value in map(finite, values) if value is not None]
    if not known or run.verdict.status == "failed":
        return None
    return Measure(median(known), min(known), max(known))
