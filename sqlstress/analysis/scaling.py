"""How the throughput grows with processes and files: only what the passes tell from their noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev

from sqlstress.analysis.answers import ENOUGH_PASSES, is_told, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Group, Tested, by_files, longest_wait_ns, noise, of_closed_loops
from sqlstress.analysis.wording import (
    finite,
    laid_out,
    layouts,
    percent,
    places,
    rounded,
    times,
)
from sqlstress.experiment import face_of
from sqlstress.report import Environment, Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.compare import FEWEST, Ratio, quantile
from sqlstress.statistics.units import NS_PER_S, format_ms

WORTH_SAYING = 1.0
"""A gain of so much, if it can't be ruled out, leaves everything open."""


@of_closed_loops
def throughput(group: Group) -> Iterator[Finding]:
    """Yield what the totals of a group say; nothing of one point only."""
    runs = believed(group)
    if len({(run.case.buckets, run.case.concurrency) for run in runs}) < 2:
        return
    tested = group.tested(runs)
    if tested is None:
        yield _highest(group, runs)
        return
    yield _best(group, tested, runs)
    found = curves(tested, runs)
    yield from _scalings(found)
    yield from _layouts(tested, found)


def believed(group: Group) -> list[Run]:
    """Return the runs whose figures count, and of which the number of processes is known."""
    return [run for run in group.runs if run.case.concurrency and group.is_believed(run)]


def curves(tested: Tested, runs: Sequence[Run]) -> dict[int, Curve]:
    """Return the runs of each layout, by its number of files."""
    return {
        layout: Curve(tested, own) for layout, own in by_files(runs, lambda run: run.case.buckets).items()
    }


def _highest(group: Group, runs: Sequence[Run]) -> Finding:
    best = max(runs, key=lambda run: run.median_tps() or 0.0)
    return Finding(
        "highest",
        rate=best.median_tps() or 0.0,
        unit=group.unit,
        where=places([best.case]),
        repeat=best.case.repeat if best.case.repeat >= ENOUGH_PASSES else None,
        enough=None if best.case.repeat >= ENOUGH_PASSES else ENOUGH_PASSES,
    )


def _best(group: Group, tested: Tested, runs: Sequence[Run]) -> Finding:
    """Return what the leading ones reached, as the table does: of those that can't be told apart from where
    to where, since the highest figure is one of the best only."""
    lead = leaders(tested, runs)
    medians = sorted(run.median_tps() or 0.0 for run in lead.runs)
    several = len(lead.runs) > 1
    alike = lead.equal or rounded(medians[0]) == rounded(medians[-1])
    return Finding(
        "best",
        rate=medians[-1] if alike else medians[0],
        most=None if alike else medians[-1],
        about=several and alike,
        unit=group.unit,
        where=places(run.case for run in lead.runs),
        equal=several and lead.equal,
        unclear=lead.unclear,
    )


@dataclass(frozen=True)
class Curve:
    """The runs of one layout."""

    tested: Tested
    measured: Sequence[Run]

    @cached_property
    def runs(self) -> list[Run]:
        """In ascending order of processes, one of each."""
        return sorted({run.case.concurrency: run for run in self.measured}.values(), key=_count)

    @cached_property
    def less(self) -> list[Run]:
        """Those at the beginning of which a larger number reaches more, beyond doubt."""
        found = []
        for place, run in enumerate(self.runs):
            if not any(self.tested.is_less(run, other) for other in self.runs[place + 1 :]):
                break
            found.append(run)
        return found

    @cached_property
    def enough(self) -> Run:
        """The fewest processes to which more of them add less than EQUAL, beyond doubt."""
        return next(
            run
            for place, run in enumerate(self.runs)
            if all(self.tested.adds_little(run, other) for other in self.runs[place + 1 :])
        )

    @property
    def most_gained(self) -> float | None:
        """The share that more processes can gain at most over the fewest that are not known to reach less."""
        first, *others = self.runs[len(self.less) :]
        ratios = [self.tested.ratio(first, other) for other in others]
        return max((ratio.high - 1 for ratio in ratios if ratio), default=None)


def _count(run: Run) -> int:
    return run.case.concurrency


def _scalings(found: Mapping[int, Curve]) -> Iterator[Finding]:
    """Yield at how many processes the totals stop rising; what is so of several layouts is said once."""
    said: dict[Finding, list[int]] = {}
    for layout, curve in found.items():
        if len(curve.runs) > 1:
            said.setdefault(_scaling(curve), []).append(layout)
    for one, own in said.items():
        if face_of(found[own[0]].runs[0].case).behaviour.many_files:
            cases = [run.case for layout in own for run in found[layout].runs]
            yield Finding(one.code, where=layouts(own, cases), **one.facts)
        else:
            yield one


def _scaling(curve: Curve) -> Finding:
    """Return at how many processes the total of a layout stops rising."""
    runs, less = curve.runs, curve.less
    most, enough = runs[-1], curve.enough
    if len(less) == len(runs) - 1:
        return Finding("still-rising", most=_count(most))
    if enough is most:
        return _unclear(curve)
    first = runs[len(less)]
    fallen, fall = _falling(curve)
    return Finding(
        "plateau",
        enough=_count(enough),
        share=EQUAL,
        most=fallen,
        fall=fall,
        unclear=None if enough is first else _count(first),
    )


def _falling(curve: Curve) -> tuple[int | None, Ratio | None]:
    """Return the most processes that reached less than fewer did, and how much of that; None without any."""
    best = curve.tested.best(curve.runs)
    more = [run for run in curve.runs if _count(run) > _count(best)]
    falls = [run for run in more if curve.tested.is_less(run, best) and not curve.tested.are_equal(run, best)]
    if not falls:
        return None, None
    return _count(falls[-1]), curve.tested.ratio(best, falls[-1])


def _unclear(curve: Curve) -> Finding:
    """Return how much more processes gain at most, where it may be EQUAL or more; if that says anything."""
    most = curve.most_gained
    return Finding(
        "scaling-unclear",
        less=_count(curve.less[-1]) if curve.less else None,
        first=_count(curve.runs[len(curve.less)]),
        most=None if most is None or most > WORTH_SAYING else most,
        anything=most is None or most > WORTH_SAYING,
        noise=noise(curve.tested),
    )


def _layouts(tested: Tested, found: Mapping[int, Curve]) -> Iterator[Finding]:
    (base_files, base), *others = found.items()
    compared = [one for layout, curve in others if (one := _against(tested, base, layout, curve))]
    if compared:
        yield Finding("layouts", base=_laid_out(base_files, base), others=tuple(compared))


def _laid_out(layout: int, curve: Curve) -> str:
    return laid_out(layout, [run.case for run in curve.runs])


def _against(tested: Tested, base: Curve, layout: int, curve: Curve) -> Finding | None:
    """Return how a layout compares at the largest concurrency that both have."""
    of_base = {_count(run): run for run in base.runs}
    common = [run for run in curve.runs if _count(run) in of_base]
    ratio = tested.ratio(of_base[_count(common[-1])], common[-1]) if common else None
    if ratio is None:
        return None
    return Finding(
        "layout-gave" if is_told(ratio) else "layout-unclear",
        layout=_laid_out(layout, curve),
        ratio=ratio,
        processes=_count(common[-1]),
    )


# What waiting for a lock did, whatever the experiment: uneven shares, long waits, what was counted of it.


UNFAIR_UNDER = 0.9
"""Jain's index under which the shares are called uneven."""
LONG_WAIT_NS = NS_PER_S
"""A wait over this is called starvation,"""
UNUSUAL = 10
"""if it is so many times the median of operations: else they take that long."""


def starvation(group: Group, remedy: Callable[[list[Case]], Finding]) -> Iterator[Finding]:
    """Yield where the shares were uneven, or a wait long; `remedy` says what helps there.

    Nothing of a rate: it is chance that gives a process more, and the queue that one waits in.
    """
    if group.case.rate:
        return
    uneven: list[tuple[Case, float]] = []
    waited: list[tuple[Case, float]] = []
    for run, trial in group.measured():
        if run.case.concurrency == 1:
            continue
        if _is_uneven(run):
            uneven.append((run.case, finite(trial.fairness) or 0.0))
        if longest_wait_ns(run) > max(LONG_WAIT_NS, UNUSUAL * _usual_ns(run)):
            waited.append((run.case, longest_wait_ns(run)))
    if not uneven and not waited:
        return
    cases = [case for case, _ in uneven + waited]
    yield Finding(
        "starvation",
        where=places(cases),
        fairness=min((jain for _, jain in uneven), default=None),
        longest_ns=max((wait for _, wait in waited), default=None),
        both=bool(uneven and waited),
        remedy=remedy(cases),
    )


def _usual_ns(run: Run) -> float:
    """Return the median of the slowest kind of operation; 0 without any."""
    medians = [finite(one.p50_ns) for trial in run.valid for one in trial.latency.values()]
    return max(filter(None, medians), default=0.0)


def fewer_processes(_cases: list[Case]) -> Finding:
    """Return what helps at a server."""
    return Finding("overloaded-server")


def _is_uneven(run: Run) -> bool:
    """Return whether the shares of every pass were uneven: those of one alone may be an accident."""
    found = [finite(trial.fairness) for trial in run.valid]
    return bool(found) and all(jain is not None and jain < UNFAIR_UNDER for jain in found)


def tally(group: Group, count: Callable[[Trial], int | None]) -> tuple[int, list[Case]]:
    """Return how many of something all trials of a group counted, and in which cases."""
    counted = [(run.case, sum(count(trial) or 0 for trial in run.trials)) for run in group.runs]
    found = [(case, number) for case, number in counted if number > 0]
    return sum(number for _, number in found), [case for case, _ in found]


# Whether what was due at a rate was done: how much of it, and beyond which doubt.


ACHIEVED = 0.99
"""Under this share of what was due, a case was saturated."""
_DEVIATIONS = 3.0
KEPT_UP, SATURATED, RATE_UNKNOWN = "kept up", "saturated", "can't be told"


def achieved(trials: Sequence[Trial]) -> float | None:
    """Return which share of what was due in the windows was done in them; None where nothing was due.

    It is more than 1 where what was left from the warm-up was done too.
    """
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return sum(trial.transactions for trial in trials if trial.arrived) / due if due else None


def saturation(trials: Sequence[Trial], error: float) -> str:
    """Say whether a case kept up with its rate; `error`: with which probability it may be called saturated.

    What is under way when the window opens, and when it closes, is chance: several windows say how much of it
    (Student's t). Of fewer, the shortfall must lie far beyond that of independent arrivals.
    """
    share = achieved(trials)
    if share is None or share >= ACHIEVED:
        return KEPT_UP
    shares = [one for trial in trials if (one := achieved([trial])) is not None]
    if len(shares) >= FEWEST and min(shares) > 0:
        logs = [math.log(one) for one in shares]
        reach = quantile(1 - error, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
        return SATURATED if fmean(logs) + reach < math.log(ACHIEVED) else RATE_UNKNOWN
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return SATURATED if (ACHIEVED - share) * due > _DEVIATIONS * math.sqrt(due) else RATE_UNKNOWN


# What others did to a measurement: how much of the processors they took, and what became of the disk.


NOTED_OVER = 0.10
"""Share of the processors that others may take: the system's own work for us is counted as theirs."""
ALONE_OVER = 0.25
"""The same in less than half of a case's trials: in three tenths of a second a few ticks are a tenth."""
CHANGED_OVER = 2.0
"""By so many times the cost of a sync may change while we measure."""


def taken(trial: Trial) -> float:
    """Return the share of the processors that others took during a trial; 0 where it was not observed."""
    shares = (finite(trial.foreign_share), finite(trial.stolen_share))
    return min(1.0, sum(share for share in shares if share))


def disturbed(run: Run) -> bool:
    """Return whether others took much of the processors in half of a run's trials or more."""
    met = [taken(trial) > NOTED_OVER for trial in run.valid]
    return bool(met) and 2 * sum(met) >= len(met)


def _is_met(run: Run, trial: Trial) -> bool:
    """Return whether others took much in a trial: in one of several, more than a short window may hide."""
    share = taken(trial)
    return share > (NOTED_OVER if disturbed(run) else ALONE_OVER)


def _slowed(group: Group) -> Iterator[str]:
    hot = [run.case for run in group.runs if any(trial.throttled for trial in run.valid)]
    if hot:
        yield f"Processors were slowed down for heat at {group.places(hot)}: let them cool, then go on."


def _sync_changed(environment: Environment) -> Iterator[str]:
    before, after = environment.sync, environment.sync_after
    if not before or not after:
        return
    ratio = max(1, after.overwrite_p50_ns) / max(1, before.overwrite_p50_ns)
    if not 1 / CHANGED_OVER <= ratio <= CHANGED_OVER:
        was, now = (format_ms(cost.overwrite_p50_ns) for cost in (before, after))
        yield (
            f"A sync took {was} ms before and {now} ms after the measurement: the disk became "
            f"{times(max(ratio, 1 / ratio))} as {'slow' if ratio > 1 else 'fast'} meanwhile."
        )


def disturbances(group: Group, environment: Environment) -> Iterator[str]:
    """Yield what a reader must know before any figure."""
    met = [(run, trial) for run in group.runs for trial in run.valid if _is_met(run, trial)]
    if met:
        most = max((trial for _, trial in met), key=taken)
        stolen = (finite(most.stolen_share) or 0.0) > (finite(most.foreign_share) or 0.0)
        who = "Other guests of the hypervisor" if stolen else "Other programs"
        cases = dict.fromkeys(run.case for run, _ in met)
        where = "throughout" if len(cases) == len(group.runs) > 1 else f"at {group.places(cases)}"
        yield (
            f"{who} took up to {percent(taken(most))} of the processors {where}: measure again where less "
            "else is running, or read these figures as those of a shared machine."
        )
    yield from _slowed(group)
    yield from _sync_changed(environment)
