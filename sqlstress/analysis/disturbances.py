"""What others did to a measurement: what they took of the processors and of the disk; and heat."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.experiment import experiment_of
from sqlstress.report import Environment, Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_S, finite, plural, whole

NOTED_OVER = 0.10
"""Share of the processors or the disk that others may take: the system's own work for us counts as theirs."""
ALONE_OVER = 0.25
"""The same in less than half of a case's trials: in three tenths of a second a few ticks are a tenth."""
CHANGED_OVER = 2.0
"""By so many times the cost of a sync may change while we measure."""
MOST_NAMED = 2
"""Cases that are named in a warning where each has a name of its own: names of methods fill lines."""

Taken = Callable[[Trial], float]
"""Which share of something others took during a trial, 0 to 1; 0 where it was not observed."""


def taken(trial: Trial) -> float:
    """Return the share of the processors that others took."""
    shares = (finite(trial.foreign_share), finite(trial.stolen_share))
    return min(1.0, sum(share for share in shares if share))


def taken_of_disk(trial: Trial) -> float:
    """Return the share of the time in which others kept the disk busy."""
    return min(1.0, finite(trial.disk_share) or 0.0)


def _stopped(trial: Trial) -> float:
    return trial.stopped_share


def disturbed(run: Run) -> bool:
    """Return whether others, or a CPU quota, took much from half of a run's trials or more."""
    return any(_mostly(run, share) for share in (taken, taken_of_disk, _stopped))


def disturbances(group: Group, environment: Environment) -> Iterator[Finding]:
    """Yield what a reader must know before any figure."""
    stopped = [
        (run, trial.stopped_share, trial.quota)
        for run in group.runs
        for trial in run.trials
        if trial.quota and trial.stopped_share
    ]
    if stopped:
        # The kernel counts the time of a stop later than its period: a short window may show none.
        _, share, quota = max(stopped, key=lambda each: (each[1], each[2].stopped_s))
        yield Finding(
            sentences.quota_throttled,
            cores=f"{quota.cores:.3g}",
            share=share,
            stopped_ns=quota.stopped_s * NS_PER_S or None,
            where=_where(group, dict.fromkeys(run.case for run, *_ in stopped)),
        )
    if load := _other_load(group):
        yield Finding(sentences.other_load, **load)
    if hot := [run.case for run in group.runs if any(trial.throttled for trial in run.valid)]:
        yield Finding(sentences.throttled, where=_where(group, hot))
    # A quota that was used up also lengthens the samples of a sync.
    if not stopped and not environment.host.is_limited and (changed := _changed_sync(environment)):
        was_ns, is_ns = changed
        low, high = sorted(changed)
        yield Finding(
            sentences.sync_changed, before_ns=was_ns, after_ns=is_ns, slower=is_ns > was_ns, times=high / low
        )


def _changed_sync(environment: Environment) -> tuple[int, int] | None:
    """Return the two medians of a sync, before and after, that are nearest to each other.

    None if they are alike, or if one of the two sides has no second sample.
    """
    costs = [
        [max(1, cost.overwrite_p50_ns) for cost in side if cost]
        for side in (
            (environment.sync, environment.sync_again),
            (environment.sync_after, environment.sync_after_again),
        )
    ]
    before, after = costs
    if len(before) < 2 or len(after) < 2:
        return None
    if min(after) > CHANGED_OVER * max(before):
        return max(before), min(after)
    if min(before) > CHANGED_OVER * max(after):
        return min(before), max(after)
    return None


def _other_load(group: Group) -> dict[str, Any]:
    """Return the largest shares that other programs took, as facts; empty if they took little."""
    found: dict[str, Any] = {}
    if met := _met(group, taken):
        most, where = met
        stolen = (finite(most.stolen_share) or 0.0) > (finite(most.foreign_share) or 0.0)
        found |= {"processors": sentences.Taken(taken(most), where), "stolen": stolen}
    if met := _met(group, taken_of_disk):
        most, where = met
        found |= {"disk": sentences.Taken(taken_of_disk(most), where)}
    return found


def _met(group: Group, share: Taken) -> tuple[Trial, str] | None:
    """Return the trial that others took most of something from, and where they took much; None: nowhere."""
    # In one trial of several, more than a short window may hide.
    met = [
        (run, trial)
        for run in group.runs
        for trial in run.valid
        if share(trial) > (NOTED_OVER if _mostly(run, share) else ALONE_OVER)
    ]
    if not met:
        return None
    where = _where(group, dict.fromkeys(run.case for run, _ in met))
    return max((trial for _, trial in met), key=share), where


def _mostly(run: Run, share: Taken) -> bool:
    met = [share(trial) > NOTED_OVER for trial in run.valid]
    return bool(met) and 2 * sum(met) >= len(met)


def _where(group: Group, cases: Collection[Case]) -> str:
    """Write the cases of a group in which something was met: "throughout", "at 8 processes"."""
    if len(cases) == len(group.runs) > 1:
        return "throughout"
    if len(cases) > MOST_NAMED and not experiment_of(group.case).sweeps:
        return f"in {whole(len(cases))} of {plural(len(group.runs), 'case')}"
    return f"at {group.short_places(cases)}"
