"""The figures of the experiment with cycles: what a trial's series say, process by process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from sqlstress.experiments.cycles.moves import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.statistics.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Process:
    """What one process spent, in ns, and what was seen of the WAL at the end of its cycles."""

    worker: int
    statements: tuple[int, ...]
    """The inserts and deletes of each cycle."""
    bounds: tuple[int, ...]
    """BEGIN and COMMIT, in the cycle in which they fell; empty in autocommit."""
    cycles: tuple[int, ...]
    """The time of each cycle: with BEGIN and COMMIT if each cycle has its own."""
    checkpoints: tuple[int, ...]
    """The cycles, counted from 1, in which a checkpoint was seen."""

    @property
    def total(self) -> int:
        """Everything but the closing checkpoint."""
        return sum(self.statements) + sum(self.bounds)


@dataclass(frozen=True, slots=True)
class Times:
    """What a trial spent, in ns: the mean of its processes, and the cycles that stand out."""

    processes: tuple[Process, ...]
    """One or more."""
    closing: int | None
    """The closing checkpoint; None where there is none."""

    @property
    def statements(self) -> float:
        """Sum of the statements of a process."""
        return fmean(sum(one.statements) for one in self.processes)

    @property
    def bounds(self) -> float | None:
        """Sum of its BEGIN and COMMIT; None in autocommit, where they are in the statements."""
        sums = [sum(one.bounds) for one in self.processes if one.bounds]
        return fmean(sums) if sums else None

    @property
    def total(self) -> float:
        """Both together."""
        return fmean(one.total for one in self.processes)

    @property
    def first(self) -> int:
        """The slowest first cycle."""
        return max(one.cycles[0] for one in self.processes)

    @property
    def median(self) -> float:
        """The median of all cycles of all processes."""
        return median(ns for one in self.processes for ns in one.cycles)

    @property
    def slowest(self) -> tuple[int, int, Process] | None:
        """The slowest cycle but for the first: its time, its number, whose; None when there is no other."""
        others = [(ns, number, one) for one in self.processes for number, ns in enumerate(one.cycles[1:], 2)]
        return max(others, key=lambda each: each[0], default=None)

    @property
    def pace(self) -> tuple[int, ...]:
        """The slowest process's time of each cycle that all have done."""
        return tuple(map(max, zip(*(one.cycles for one in self.processes), strict=False)))


def times_of(case: Case, trial: Trial) -> Times | None:
    """Return the figures of a trial; None when no cycle was done."""
    processes = tuple(_processes(case, trial))
    closing = trial.latency.get("checkpoint")
    return Times(processes, closing.max_ns if closing and closing.count else None) if processes else None


def total_ns(case: Case, trial: Trial) -> float:
    """Return what a process spent, but for the closing checkpoint: the sum of its cycles where it is known.

    The trial's own time has the looks at the WAL in it.
    """
    times = times_of(case, trial)
    return times.total if times else trial.seconds * NS_PER_S


def rates(run: Run) -> dict[int, float]:
    """Return what a run did in each pass that was done to its end: cycles a second of a process, by pass."""

    def rate(trial: Trial) -> float:
        ns = total_ns(run.case, trial) if trial.outcome == "done" else 0.0
        return NS_PER_S * run.case.spec.cycles / ns if ns > 0 else 0.0

    return run.by_pass(rate)


def _processes(case: Case, trial: Trial) -> Iterator[Process]:
    known = {(one.name, one.worker): one.values for one in trial.series}
    each_has_its_own = case.spec.transaction == "cycle"
    for (name, worker), statements in known.items():
        if name != STATEMENTS or worker is None or not statements:
            continue
        bounds = known.get((BEGIN_AND_COMMIT, worker), ())
        cycles = statements
        if each_has_its_own and len(bounds) == len(statements):
            cycles = tuple(map(sum, zip(statements, bounds, strict=True)))
        wal = [known.get((figure, worker), ()) for figure in (WAL_FRAMES, CHECKPOINTED_FRAMES, WAL_RESTARTS)]
        yield Process(worker, statements, bounds, cycles, tuple(checkpoints_in(*wal)))


def checkpoints_in(
    frames: Sequence[int], checkpointed: Sequence[int], restarts: Sequence[int]
) -> Iterator[int]:
    """Yield the cycles (from 1) in which a checkpoint was done, from what the WAL held at the end of each.

    More frames are checkpointed than before; or the WAL has begun anew, which it does only after a
    checkpoint of all its frames: that was in this cycle unless it was seen before already.
    """
    before = (0, 0, 0)
    for cycle, now in enumerate(zip(frames, checkpointed, restarts, strict=False), 1):
        anew, all_done = now[2] > before[2], before[1] >= before[0]
        if (anew and (now[1] > 0 or not all_done)) or (not anew and now[1] > before[1]):
            yield cycle
        before = now
