"""Findings of methods, keys and cycles, and figures of their tables.

A run is all trials of a case. A group has the runs of one table. A pass is one trial of each case in turn. A
difference of times is reported only if it is significant over the passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.answers import inconclusive_findings, is_conclusive, leaders, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, PairwiseTests
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS, sentences
from sqlstress.experiments.classics.sentences import Fastest
from sqlstress.experiments.classics.spec import REASONS, Method, setting_of, tricks_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.compare import MIN_PASSES
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.statistics.units import NS_PER_S

DONE, TIMEOUT, LIMIT, FAILED, WRONG = "done", "timeout", "limit", "failed", "wrong"
"""Outcomes of a run.

DONE: completed. TIMEOUT: over the time limit. LIMIT: over a limit of SQLite. FAILED: no figure, for example
because of an error. WRONG: a check found wrong data.
"""


@dataclass(frozen=True, slots=True)
class Compared:
    """Declaration of a comparison of cases: their names and figures.

    Cases are compared within a part of a table, such as those of one schema.
    """

    name: Callable[[Case], str]
    """Function from a case to its name in the part; cases with one name differ in scale."""
    base: str
    """Name of the case with which others are compared."""
    figure: Callable[[Trial], float]
    """Function from a trial to its main figure: a rate or a time."""
    is_time: bool = False
    """Whether the figure is a time, so that less is better."""
    part: Callable[[Case], str] = lambda _: ""
    """Function from a case to the name of its part of the table; empty if there is only one part."""
    special: str = ""
    """First word of the names of cases that only some applications can use, such as "SPC".

    If such a case is among the fastest, the other cases are also ranked without it.
    """

    def rates(self, run: Run) -> dict[int, float]:
        """Return {number of the pass: rate}. The rate is the inverse of the figure if that is a time."""
        figures = run.by_pass(self.figure)
        return {index: 1 / time for index, time in figures.items()} if self.is_time else figures

    def outcome(self, run: Run) -> str:
        """Return DONE, TIMEOUT, LIMIT, FAILED or WRONG.

        For a skipped run, return the outcome of the smaller scale because of which it was skipped.
        """
        if run.skipped is not None:
            return next((outcome for outcome, reason in REASONS.items() if reason in run.skipped), FAILED)
        if run.verdict.status == "failed":
            return WRONG
        unfinished = next((trial.outcome for trial in run.valid if trial.outcome != DONE), None)
        if unfinished:
            return unfinished if unfinished in (TIMEOUT, LIMIT) else FAILED
        return DONE if run.by_pass(self.figure) else FAILED

    def findings(self, group: Group) -> Iterator[Finding]:
        """Yield findings on the fastest cases of each part.

        Only cases with the driver of the group's first case and with the most processes are compared, so that
        they differ in nothing but name and scale.
        """
        most = max(run.case.concurrency for run in group.runs)
        done = [
            run
            for run in group.runs
            if self.outcome(run) == DONE
            and (run.case.driver, run.case.concurrency) == (group.case.driver, most)
        ]
        known = [run for run in done if len(self.rates(run)) >= MIN_PASSES]
        best: dict[str, dict[str, Run]] = {self.part(run.case): {} for run in known}
        for run in sorted(known, key=lambda run: median(self.rates(run).values()), reverse=True):
            best[self.part(run.case)].setdefault(self.name(run.case), run)
        compared = [run for named in best.values() for run in named.values()]
        tested = group.pairwise_tests(compared, self.rates) if compared else None
        if tested:
            found = [
                finding for part, named in best.items() for finding in self._in_part(part, named, tested)
            ]
            yield from found
            yield from inconclusive_findings(tested, found, group.case)
        elif len(done) > 1:
            yield Finding(shared.cannot_tell, advice=more_trials(group.case))

    def _in_part(self, part: str, named: Mapping[str, Run], tested: PairwiseTests) -> Iterator[Finding]:
        """Yield the findings on a part of the table.

        `named` has the run of each name, at the scale with the best rate. `tested` has the tests of all pairs
        of these runs.
        """
        if len(named) < 2:
            return
        leads = [self._lead(named, tested)]
        others = {name: run for name, run in named.items() if name.split()[0] != self.special}
        if others and not {*leads[0].names} <= {*others}:
            leads.append(self._lead(others, tested, self.special))
        yield Finding(sentences.fastest, part=part, leads=tuple(leads))

    def _lead(self, named: Mapping[str, Run], tested: PairwiseTests, without: str = "") -> Fastest:
        """Return the cases not significantly slower than the fastest, and the best rate relative to the base.

        `named` has the runs to rank, by name, and `tested` the tests of all pairs of them. `without` is the
        first word of names that were left out; empty if none were.
        """
        lead = leaders(tested, list(named.values()), divide_error_by=1 + bool(self.special))
        names = tuple(name for name, run in named.items() if any(run is near for near in lead.runs))
        ratio = None
        if self.base in named and self.base not in names:
            ratio = tested.ratio(named[self.base], lead.best)
        return Fastest(
            names, self.base, ratio if is_conclusive(ratio) else None, lead.equal, lead.unclear, without
        )


# Methods.


METHODS = Compared(
    tricks_of,
    base="1b1",
    figure=lambda trial: trial.rows_per_s,
    part=lambda case: f"{case.spec.phase} with {case.driver}",
    special="SPC",
)


def limits(group: Group) -> Iterator[Finding]:
    """Yield a finding for each limit of SQLite that a method met, with alternative methods."""
    refused: dict[tuple[str, str, str], list[Run]] = {}
    for run in group.runs:
        method: Method = run.case.spec
        for note in dict.fromkeys(trial.note for trial in run.valid if trial.outcome == LIMIT):
            refused.setdefault((method.phase, method.name, note), []).append(run)
    for (phase, name, note), runs in refused.items():
        yield Finding(
            sentences.method_limit,
            phase=phase,
            rows=runs[0].case.spec.rows,
            method=name,
            drivers=tuple(dict.fromkeys(run.case.driver for run in runs)),
            reason=note,
            instead="JSON" if phase == "query" else "BLK/n or JSON",
        )


# Keys.


KEYS = Compared(
    lambda case: str(case.spec.id_type),
    base="uuid4",
    figure=lambda trial: trial.seconds,
    is_time=True,
    part=lambda case: str(case.spec.schema),
    special="int",
)


def unsplit_space(group: Group) -> Iterator[Finding]:
    """Yield a finding if the space could not be split by table and index, because SQLite lacked dbstat.

    Reports with published figures are not split either. They have no number of pages and get no finding.
    """
    spaces = [trial.space for run in group.runs for trial in run.trials if trial.space]
    if any(space.page_count and not space.trees for space in spaces):
        yield Finding(sentences.space_unsplit)


# Cycles.


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """Times of a trial of cycles in ns, and the cycles with a checkpoint."""

    cycles: tuple[int, ...]
    """Time of the inserts and deletes of each cycle, in ns."""
    bounds: tuple[int, ...]
    """Sum of the times of BEGIN and COMMIT in each cycle, in ns.

    If one transaction covers the run, only the first cycle has BEGIN and the last has COMMIT. If each
    statement is its own transaction, the tuple is empty.
    """
    checkpoints: tuple[int, ...]
    """Numbers, from 1, of the cycles with a checkpoint."""
    closing: int | None
    """Time of the checkpoint after the last cycle, in ns; None without such a checkpoint."""

    @property
    def total(self) -> int:
        """Time of all cycles in ns, without the closing checkpoint."""
        return sum(self.cycles) + sum(self.bounds)

    @property
    def slowest(self) -> tuple[int, int] | None:
        """Number, from 1, and time in ns of the slowest cycle except the first; None for a single cycle."""
        numbers = range(2, len(self.cycles) + 1)
        number = max(numbers, key=lambda number: self.cycles[number - 1], default=None)
        return (number, self.cycles[number - 1]) if number else None


def times_of(trial: Trial) -> CycleTimes | None:
    """Return the times of the cycles of a trial; None if no cycle was done."""
    known = {series.name: series.values for series in trial.series}
    cycles = known.get(STATEMENTS, ())
    if not cycles:
        return None
    wal = [known.get(figure, ()) for figure in (WAL_FRAMES, CHECKPOINTED_FRAMES, WAL_RESTARTS)]
    closing = trial.latency.get("checkpoint")
    return CycleTimes(
        cycles,
        known.get(BEGIN_AND_COMMIT, ()),
        tuple(checkpoints_in(*wal)),
        closing.max_ns if closing and closing.count else None,
    )


def checkpoints_in(
    frames: Sequence[int], checkpointed: Sequence[int], restarts: Sequence[int]
) -> Iterator[int]:
    """Yield the numbers, from 1, of cycles with a checkpoint, from the WAL's state after each cycle.

    A checkpoint increases the number of checkpointed frames. A restart of the WAL needs a checkpoint of all
    frames, but this checkpoint may have been in an earlier cycle. So a cycle with a restart had a checkpoint
    in two cases: some frames were not checkpointed before the cycle, or frames of the new WAL are
    checkpointed after it.
    """
    before = (0, 0, 0)
    for cycle, now in enumerate(zip(frames, checkpointed, restarts, strict=False), 1):
        anew, all_done = now[2] > before[2], before[1] >= before[0]
        if (anew and (now[1] > 0 or not all_done)) or (not anew and now[1] > before[1]):
            yield cycle
        before = now


def total_ns(trial: Trial) -> float:
    """Return the time of all cycles of a trial in ns; if unknown, that of the whole trial."""
    times = times_of(trial)
    return times.total if times else trial.seconds * NS_PER_S


CYCLES = Compared(setting_of, base="delete", figure=total_ns, is_time=True)


def checkpoints(group: Group) -> Iterator[Finding]:
    """Yield a finding on the checkpoints of each case in WAL mode.

    A case with one transaction for the whole run is left out: no checkpoint is possible before its COMMIT.
    """
    for run, trial in group.measured():
        times = times_of(trial)
        is_known = any(series.name == WAL_FRAMES for series in trial.series)
        if not is_known or run.case.spec.transaction == "run" or not times or not times.slowest:
            continue
        yield Finding(
            sentences.checkpoint,
            where=setting_of(run.case),
            cycles=times.checkpoints,
            slowest=times.slowest[0],
            slowest_ns=times.slowest[1],
            median_ns=median(times.cycles),
        )
