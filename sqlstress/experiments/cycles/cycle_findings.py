"""What the experiment with cycles says: where the time went, and which spike was a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean, median
from typing import Any

from sqlstress.analysis.answers import Leaders, doubts, is_told, laggards, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Tested
from sqlstress.analysis.wording import processes
from sqlstress.experiments.cycles.experiment import Cycling, setting_of
from sqlstress.experiments.cycles.moves import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.statistics.units import NS_PER_S

# The figures of the experiment with cycles: what a trial's series say, process by process.


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


Measured = tuple[Run, Trial, Times]
FEW = 3
"""Later checkpoints that are named one by one."""
_LONGEST_NAME = 24


def cycles(group: Group) -> Iterator[Finding]:
    """Yield what the runs of a group say."""
    measured = [
        (run, trial, times) for run, trial in group.measured() if (times := times_of(run.case, trial))
    ]
    yield from _given_up(group)
    fewest = min((run.case.concurrency for run, _, _ in measured), default=1)
    compared = [each for each in measured if _can_be_compared(each, fewest)]
    tested = group.tested([run for run, _, _ in compared], rates) if compared else None
    fastest, without = [*_fastest(compared, tested)], [*_without_checkpoints(compared, tested)]
    yield from fastest
    yield from _beyond_the_sum(compared)
    yield from without
    yield from doubts(tested, [*fastest, *without], group.case)
    for run, trial, times in measured:
        yield from _checkpoints(run.case, trial, times)


def _can_be_compared(measured: Measured, concurrency: int) -> bool:
    """Return whether a run was done to its end, by that number of processes."""
    run, trial, _ = measured
    return trial.outcome == "done" and run.case.concurrency == concurrency


def called(case: Case) -> str:
    """Name a setting; and the number of processes, if there are several."""
    name = setting_of(case)[:_LONGEST_NAME]
    return name if case.concurrency == 1 else f"{name}, {processes(case.concurrency)}"


def _given_up(group: Group) -> Iterator[Finding]:
    for run, trial in group.measured():
        if trial.outcome != "done":
            after = run.case.spec.timeout_s
            limit = after * NS_PER_S if after else None
            yield Finding("timeout", where=called(run.case), limit_ns=limit, reason=trial.note)


def _fastest(measured: list[Measured], tested: Tested | None) -> Iterator[Finding]:
    ranked = sorted(measured, key=lambda each: each[2].total)
    if len(ranked) < 2 or ranked[0][2].total <= 0:
        return
    if tested is None:
        least, most = ranked[0], ranked[-1]
        yield Finding(
            "took-least",
            least=_took([least], in_all=True, closing_ns=least[2].closing or None),
            most=_took([most]),
            times=most[2].total / least[2].total,
        )
    else:
        yield _tested(ranked, tested)


def _tested(ranked: list[Measured], tested: Tested) -> Finding:
    """Return which settings are the fastest and the slowest, as far as the passes tell."""
    runs = [run for run, _, _ in ranked]
    first, last = leaders(tested, runs), laggards(tested, runs)
    fast, slow = (
        [each for each in ranked if any(each[0] is run for run in found.runs)] for found in (first, last)
    )
    closing = (fast[0][2].closing or None) if len(fast) == 1 else None
    fastest = _took(fast, in_all=True, closing_ns=closing, equal=_equal(first), unclear=first.unclear)
    # Less done in a second is more time.
    ratio = tested.ratio(last.best, first.best)
    if len(fast) == len(ranked) or ratio is None or not ratio.is_above:
        return Finding("fastest", fastest=fastest, slowest=None)
    more = {"ratio": ratio} if len(slow) == 1 else {"equal": _equal(last), "unclear": last.unclear}
    return Finding("fastest", fastest=fastest, slowest=_took(slow, **more))


def _equal(found: Leaders) -> bool:
    return found.equal and len(found.runs) > 1


def _took(measured: list[Measured], **more: Any) -> Finding:
    """Return the names of settings, with the time of the first, and what more is known of them."""
    names = tuple(called(run.case) for run, _, _ in measured)
    about = len(measured) > 1
    return Finding("settings-took", settings=names, about=about, total_ns=measured[0][2].total, **more)


def _beyond_the_sum(measured: list[Measured]) -> Iterator[Finding]:
    """Yield where the time is that the sum of the cycles leaves out of the total."""
    told = []
    for run, trial, times in measured:
        commits = trial.latency.get("commit")
        if times.bounds is None or not commits or not commits.count:
            continue
        each = commits.count / max(1, len(times.processes))
        told.append(
            Finding(
                "bounds-took",
                where=called(run.case),
                bounds_ns=times.bounds,
                total_ns=times.total,
                share=times.bounds / max(1.0, times.total),
                one=each == 1,
                commits=None if each == 1 else float(each),
            )
        )
    if told:
        yield Finding("beyond-the-sum", bounds=tuple(told))


def _without_checkpoints(measured: list[Measured], tested: Tested | None) -> Iterator[Finding]:
    """Yield what turning checkpoints off was worth, if there were any to turn off."""
    for run, _, off in (each for each in measured if _never_checkpoints(each)):
        for other, trial, on in (each for each in measured if not _never_checkpoints(each)):
            if _transaction(other) == _transaction(run) and (frames := _autocheckpoint(trial)):
                ratio = tested.ratio(run, other) if tested else None
                yield Finding(
                    "checkpoints-off",
                    where=called(run.case),
                    off_ns=off.total,
                    other=called(other.case),
                    on_ns=on.total,
                    ratio=ratio if is_told(ratio) else None,
                    unclear=tested is not None and not is_told(ratio),
                    frames=None if any(one.checkpoints for one in on.processes) else frames,
                )


def _never_checkpoints(measured: Measured) -> bool:
    return measured[0].case.settings.wal_autocheckpoint == 0


def _transaction(run: Run) -> tuple[str, str]:
    return run.case.settings.journal_mode, run.case.spec.transaction if run.case.spec else ""


def _autocheckpoint(trial: Trial) -> int | None:
    """Return after how many frames a commit does a checkpoint; None if never, or if it was not read back."""
    answer = trial.effective.get("wal_autocheckpoint", "")
    return int(answer) if len(answer) < 12 and answer.isdecimal() and int(answer) else None


def _checkpoints(case: Case, trial: Trial, times: Times) -> Iterator[Finding]:
    """Yield when a checkpoint was due, when it was seen, and whether the spike was it."""
    cycling, frames, slowest = case.spec or Cycling(), _autocheckpoint(trial), times.slowest
    if case.settings.journal_mode != "wal" or not frames or not slowest or cycling.transaction == "run":
        return
    commits = 2 * cycling.rows + 1 if cycling.transaction == "none" else 1
    due = ceil(frames / max(1, commits * case.concurrency))
    ns, number, process = slowest
    if not process.checkpoints and due > cycling.cycles:
        return
    several = case.concurrency > 1
    first, slower = _slower(process)
    is_it = number in process.checkpoints
    yield Finding(
        "checkpoint",
        where=called(case),
        commits=commits,
        together=case.concurrency if several else None,
        frames=frames,
        due=due,
        seen=_seen(process, due, several),
        spike=number,
        process=process.worker if several else None,
        spike_ns=ns,
        median_ns=times.median,
        is_it=is_it,
        first=None if is_it else first,
        slower=None if is_it else slower,
    )


def _slower(process: Process) -> tuple[int | None, float | None]:
    """Return the cycle of the first checkpoint, and than which share of the cycles it was slower; or None."""
    first = min(process.checkpoints, default=len(process.cycles) + 1)
    if first > len(process.cycles):
        return None, None
    return first, sum(ns < process.cycles[first - 1] for ns in process.cycles) / len(process.cycles)


def _seen(process: Process, due: int, several: bool) -> Finding:
    """Return where checkpoints of a process were seen; `several`: it was one of several."""
    if not process.checkpoints:
        return Finding("checkpoint-unseen")
    first, *later = process.checkpoints
    there = first == due and not several
    many = len(later) > FEW
    return Finding(
        "checkpoint-seen",
        there=there,
        cycle=None if there else first,
        process=process.worker if several else None,
        cycle_ns=process.cycles[first - 1] if first <= len(process.cycles) else None,
        early=first < due and not several,
        later=tuple(later[:1] if many else later),
        more=len(later) - 1 if many else None,
    )
