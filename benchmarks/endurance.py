"""endurance: what many workers, many files, many keys and a long run take.

    python -m benchmarks endurance --output benchmarks/results/endurance.md

Nothing may grow with the length of a run: memory of the parent and of the workers, their descriptors,
the report. The long run is held against its own beginning and against one of a tenth of its length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from benchmarks.bench import Bench
from benchmarks.course import Course, Moment
from benchmarks.results import AT_MOST, Comparison, Plan, Row, Task
from benchmarks.tool import Outcome

TITLE = "what many workers, many files, many keys and a long run take"
MIB, KIB = 1 << 20, 1 << 10
TENTHS = 10
GROWTH = 1.05
"""What the last tenth of a run may take of what the second one took: in the first one pages are touched."""
LONGER = 1.10
"""What the report of a run may be of that of one of a tenth of the length."""
SHORT_S = 5.0
"""The window of the runs that are large in another way, at most."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one run."""

    workers: int = 2
    buckets: int = 1
    keys: int = 10_000
    window_s: float = SHORT_S

    def arguments(self, seed: int) -> list[str]:
        """Return the command line after `sqlstress kv`."""
        values = {
            "concurrency": self.workers,
            "buckets": self.buckets,
            "key-space": self.keys,
            "duration": f"{self.window_s}s",
            "synchronous": "normal",
            "repeat": 1,
            "seed": seed,
        }
        return [word for name, value in values.items() for word in (f"--{name}", str(value))]


@dataclass(slots=True)
class Studied:
    """Runs the sizes, and remembers how large the short run's report was."""

    bench: Bench
    report_bytes: list[int] = field(default_factory=list)

    def short(self, labels: dict[str, str], size: Size) -> Row:
        """Run the tenth of the long run."""
        outcome, course = self._run(size)
        self.report_bytes.append(outcome.report_bytes)
        return _row(labels, size, outcome, course)

    def long(self, labels: dict[str, str], size: Size) -> Row:
        """Run the long run, and hold it against its beginning and against the short one."""
        outcome, course = self._run(size)
        grown = (*_growth(course.loaded(size.workers)), self._longer(outcome))
        return _row(labels, size, outcome, course, grown)

    def large(self, labels: dict[str, str], size: Size) -> Row:
        """Run what is large in another way."""
        return _row(labels, size, *self._run(size))

    def _longer(self, outcome: Outcome) -> Comparison:
        ratio = outcome.report_bytes / self.report_bytes[0]
        return Comparison("report, long over short", (ratio,), LONGER, AT_MOST)

    def _run(self, size: Size) -> tuple[Outcome, Course]:
        # A run takes about as many samples, whatever its length; short ones at least a few.
        course = Course(min(1.0, max(0.05, size.window_s / 100)))
        return self.bench.tool.kv(size.arguments(self.bench.seed(0)), course), course


def plan(bench: Bench) -> Plan:
    """List the runs."""
    scale, longest_s = bench.options.scale, bench.options.duration_s
    window_s = min(SHORT_S, longest_s)
    studied = Studied(bench)
    runs: list[tuple[str, Callable[[dict[str, str], Size], Row], Size]] = [
        (f"{longest_s / TENTHS:g} s", studied.short, Size(window_s=longest_s / TENTHS)),
        (f"{longest_s:g} s", studied.long, Size(window_s=longest_s)),
        (f"{scale.workers:,} workers", studied.large, Size(workers=scale.workers, window_s=window_s)),
        (f"{scale.buckets:,} files", studied.large, Size(buckets=scale.buckets, window_s=window_s)),
        (f"{scale.keys:,} keys", studied.large, Size(keys=scale.keys, window_s=window_s)),
    ]
    return Plan(TITLE, NOTES, tuple(_task(*run) for run in runs))


NOTES = (
    "50/50, WAL, synchronous normal, two workers, one file and 10,000 keys where nothing else is said; each "
    "run is verified. Memory is the resident set, pages that are shared included: of the parent, and of the "
    "largest worker. By tenths: the median of each tenth of the time in which all workers were there, from "
    "their start to their end. Last over second: that of the last tenth over that of the second.",
)


def _task(name: str, run: Callable[[dict[str, str], Size], Row], size: Size) -> Task:
    labels = {"run": name}
    return Task(labels, lambda: run(labels, size))


def _row(
    labels: dict[str, str],
    size: Size,
    outcome: Outcome,
    course: Course,
    comparisons: tuple[Comparison, ...] = (),
) -> Row:
    moments = course.loaded(size.workers)
    told = {
        "parent MiB by tenths": _by_tenths(moments, lambda moment: moment.parent_bytes / MIB),
        "worker MiB by tenths": _by_tenths(moments, lambda moment: moment.worker_bytes / MIB),
    }
    figures = {
        "TPS": outcome.trial.tps,
        "start s": outcome.trial.start_s or 0.0,
        "whole s": outcome.wall_s,
        "most parent MiB": max(moment.parent_bytes for moment in course.moments) / MIB,
        "parent descriptors": float(max(moment.parent_descriptors for moment in course.moments)),
        "worker descriptors": float(max(moment.worker_descriptors for moment in course.moments)),
        "report KiB": outcome.report_bytes / KIB,
    }
    samples = {
        "at s": [moment.at_s for moment in moments],
        "parent bytes": [float(moment.parent_bytes) for moment in moments],
        "parent descriptors": [float(moment.parent_descriptors) for moment in moments],
        "worker bytes": [float(moment.worker_bytes) for moment in moments],
        "worker descriptors": [float(moment.worker_descriptors) for moment in moments],
    }
    return Row({**labels, **told}, figures, comparisons, samples)


def _growth(moments: Sequence[Moment]) -> tuple[Comparison, ...]:
    """Hold the last tenth of a run against its second one."""
    measures: dict[str, Callable[[Moment], float]] = {
        "parent memory": lambda moment: moment.parent_bytes,
        "worker memory": lambda moment: moment.worker_bytes,
        "parent descriptors": lambda moment: moment.parent_descriptors,
        "worker descriptors": lambda moment: moment.worker_descriptors,
    }
    tenths = _tenths(moments)
    return tuple(
        Comparison(
            f"{name}, last over second",
            (median(map(measure, tenths[-1])) / median(map(measure, tenths[1])),),
            GROWTH,
            AT_MOST,
        )
        for name, measure in measures.items()
    )


def _tenths(moments: Sequence[Moment]) -> list[Sequence[Moment]]:
    """Cut the moments into ten parts. Raises ValueError where there are too few."""
    if len(moments) < TENTHS:
        raise ValueError(f"the run was seen at {len(moments)} moments only: give a longer --duration")
    bounds = [len(moments) * part // TENTHS for part in range(TENTHS + 1)]
    return [moments[low:high] for low, high in pairwise(bounds)]


def _by_tenths(moments: Sequence[Moment], measure: Callable[[Moment], float]) -> str:
    return " ".join(f"{median(map(measure, part)):.0f}" for part in _tenths(moments))
