"""Findings of cycles: the parts of the time, and the slow cycle that is a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from operator import itemgetter
from statistics import fmean, median

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.answers import inconclusive_findings, leaders, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import processes
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS, sentences
from sqlstress.experiments.classics.sentences import Checkpoint
from sqlstress.experiments.classics.spec import Cycling, setting_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.statistics.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class CyclesProcess:
    """The times of one process, in ns, and the cycles with a checkpoint."""

    worker: int
    statements: tuple[int, ...]
    """Inserts and deletes of each cycle."""
    bounds: tuple[int, ...]
    """BEGIN and COMMIT, in the cycle in which they fell; empty in autocommit."""
    cycles: tuple[int, ...]
    """Time of each cycle, with BEGIN and COMMIT if each cycle has its own."""
    checkpoints: tuple[int, ...]
    """Cycles, counted from 1, in which a checkpoint was seen."""

    @property
    def total(self) -> int:
        """Time of everything except the closing checkpoint."""
        return sum(self.statements) + sum(self.bounds)


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """The times of a trial, in ns: means of its processes, and cycles that stand out."""

    processes: tuple[CyclesProcess, ...]
    """At least one."""
    closing: int | None
    """The closing checkpoint; None if there is none."""

    @property
    def statements(self) -> float:
        """Time of a process's inserts and deletes."""
        return fmean(sum(process.statements) for process in self.processes)

    @property
    def bounds(self) -> float | None:
        """Time of a process's BEGIN and COMMIT; None in autocommit, where statements include them."""
        known = [sum(process.bounds) for process in self.processes if process.bounds]
        return fmean(known) if known else None

    @property
    def total(self) -> float:
        """Time of both together."""
        return fmean(process.total for process in self.processes)

    @property
    def first(self) -> int:
        """Time of the slowest first cycle."""
        return max(process.cycles[0] for process in self.processes)

    @property
    def median(self) -> float:
        """Median of all cycles of all processes."""
        return median(ns for process in self.processes for ns in process.cycles)

    @property
    def slowest(self) -> tuple[int, int, CyclesProcess] | None:
        """Time, number and process of the slowest cycle except the first; None if there is no other."""
        later = ((ns, number, of) for of in self.processes for number, ns in enumerate(of.cycles[1:], 2))
        return max(later, key=itemgetter(0), default=None)

    @property
    def pace(self) -> tuple[int, ...]:
        """Time of the slowest process in each cycle that all processes have done."""
        return tuple(map(max, zip(*(process.cycles for process in self.processes), strict=False)))

    @property
    def checkpoints(self) -> frozenset[int]:
        """Cycles in which a process saw a checkpoint."""
        return frozenset(cycle for process in self.processes for cycle in process.checkpoints)


def times_of(case: Case, trial: Trial) -> CycleTimes | None:
    """Return the times of a trial; None if no cycle was done."""
    processes = tuple(_processes(case, trial))
    closing = trial.latency.get("checkpoint")
    return CycleTimes(processes, closing.max_ns if closing and closing.count else None) if processes else None


def _processes(case: Case, trial: Trial) -> Iterator[CyclesProcess]:
    known = {(series.name, series.worker): series.values for series in trial.series}
    for (name, worker), statements in known.items():
        if name != STATEMENTS or worker is None or not statements:
            continue
        bounds, cycles = known.get((BEGIN_AND_COMMIT, worker), ()), statements
        if case.spec.transaction == "cycle" and len(bounds) == len(statements):
            cycles = tuple(map(sum, zip(statements, bounds, strict=True)))
        wal = [known.get((figure, worker), ()) for figure in (WAL_FRAMES, CHECKPOINTED_FRAMES, WAL_RESTARTS)]
        yield CyclesProcess(worker, statements, bounds, cycles, tuple(checkpoints_in(*wal)))


def checkpoints_in(
    frames: Sequence[int], checkpointed: Sequence[int], restarts: Sequence[int]
) -> Iterator[int]:
    """Yield the cycles (from 1) with a checkpoint, from the state of the WAL at the end of each cycle.

    A checkpoint increases the number of checkpointed frames. Or the WAL was restarted, which needs a
    checkpoint of all its frames: in this cycle, unless all frames were checkpointed before it.
    """
    before = (0, 0, 0)
    for cycle, now in enumerate(zip(frames, checkpointed, restarts, strict=False), 1):
        anew, all_done = now[2] > before[2], before[1] >= before[0]
        if (anew and (now[1] > 0 or not all_done)) or (not anew and now[1] > before[1]):
            yield cycle
        before = now


def total_ns(case: Case, trial: Trial) -> float:
    """Return the time of a process without the closing checkpoint: the sum of its cycles, if known.

    The duration of the trial also includes the looks at the WAL.
    """
    times = times_of(case, trial)
    return times.total if times else trial.seconds * NS_PER_S


def rates(run: Run) -> dict[int, float]:
    """Return the cycles per second of a process in each pass that reached its end."""

    def rate(trial: Trial) -> float:
        ns = total_ns(run.case, trial) if trial.outcome == "done" else 0.0
        return NS_PER_S * run.case.spec.cycles / ns if ns > 0 else 0.0

    return run.by_pass(rate)


LONGEST_NAME = 24
"""Characters of a setting's name."""
FEW = 3
"""Maximum number of later checkpoints that are named."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredCycles:
    """A run, its typical trial, and the times of that trial."""

    run: Run
    trial: Trial
    times: CycleTimes

    @property
    def name(self) -> str:
        """Name of the setting, and the number of processes if there are several."""
        return setting_label(self.run.case)

    @property
    def frames(self) -> int | None:
        """Frames after which a commit does a checkpoint; None if it never does, or if unknown."""
        answer = self.trial.effective.get("wal_autocheckpoint", "")
        return int(answer) if len(answer) < 12 and answer.isdecimal() and int(answer) else None


def setting_label(case: Case) -> str:
    """Return the name of a setting, and the number of processes if there are several."""
    name = setting_of(case)[:LONGEST_NAME]
    return name if case.concurrency == 1 else f"{name}, {processes(case.concurrency)}"


def cycles(group: Group) -> Iterator[Finding]:
    """Yield the findings of a group."""
    for run, trial in group.measured():
        if trial.outcome != "done":
            after = run.case.spec.timeout_s
            limit = after * NS_PER_S if after else None
            yield Finding(sentences.timeout, where=setting_label(run.case), limit_ns=limit, reason=trial.note)
    cells = [
        MeasuredCycles(run, trial, times)
        for run, trial in group.measured()
        if (times := times_of(run.case, trial))
    ]
    yield from _fastest(group, cells)
    for cell in cells:
        yield from _checkpoints(cell)


def _fastest(group: Group, cells: Sequence[MeasuredCycles]) -> Iterator[Finding]:
    """Yield the fastest settings with the fewest processes, as far as the passes tell them apart."""
    fewest = min((cell.run.case.concurrency for cell in cells), default=1)
    compared = [
        cell for cell in cells if cell.trial.outcome == "done" and cell.run.case.concurrency == fewest
    ]
    if len(compared) < 2:
        return
    tested = group.pairwise_tests([cell.run for cell in compared], rates)
    if tested is None:
        yield Finding(shared.cannot_tell, advice=more_trials(group.case))
        return
    lead = leaders(tested, [cell.run for cell in compared])
    near = sorted(lead.among(compared), key=lambda cell: cell.times.total)
    finding = Finding(
        sentences.fastest,
        settings=tuple(cell.name for cell in near),
        total_ns=near[0].times.total,
        equal=lead.equal,
        unclear=lead.unclear,
    )
    yield finding
    yield from inconclusive_findings(tested, [finding], group.case)


def _checkpoints(cell: MeasuredCycles) -> Iterator[Finding]:
    """Yield the cycle in which a checkpoint was due, those in which it was seen, and the slowest cycle."""
    case, frames, slowest = cell.run.case, cell.frames, cell.times.slowest
    cycling: Cycling = case.spec
    if case.settings.journal_mode != "wal" or not frames or not slowest or cycling.transaction == "run":
        return
    commits = 2 * cycling.rows + 1 if cycling.transaction == "none" else 1
    due = ceil(frames / max(1, commits * case.concurrency))
    ns, number, process = slowest
    if not process.checkpoints and due > cycling.cycles:
        return
    seen, *later = process.checkpoints or (None,)
    in_range = seen is not None and seen <= len(process.cycles)
    yield Finding(
        sentences.checkpoint,
        where=cell.name,
        commits=commits,
        processes=case.concurrency,
        frames=frames,
        due=due,
        seen=None if seen is None else Checkpoint(seen, process.cycles[seen - 1] if in_range else None),
        later=tuple(later[:FEW]),
        spike=number,
        process=process.worker if case.concurrency > 1 else None,
        spike_ns=ns,
        median_ns=cell.times.median,
        is_it=number in process.checkpoints,
    )
