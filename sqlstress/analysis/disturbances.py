"""Disturbances of runs (all trials of a case): other programs, CPU quotas, and heat.

A trial is a timed execution of a case. A group is the runs in one table of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from operator import attrgetter
from typing import Any

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.experiment import experiment_of
from sqlstress.report import Environment, Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_S, digits, finite, plural

MAX_TAKEN_SHARE = 0.10
"""Share of processors or disk that other programs must exceed, in half of the trials, for a finding.

The limit is above 0, because the system's work for our processes is counted as work of other programs.
"""
MAX_TAKEN_SHARE_ONCE = 0.25
"""Share of processors or disk that other programs must exceed, in a single trial, for a finding.

The limit is above MAX_TAKEN_SHARE, because CPU time is counted in ticks, and a few ticks are a share of 0.1
of a short window.
"""
MAX_SYNC_CHANGE = 2.0
"""Factor above which a change of the time for a sync, during a measurement, is reported."""
MAX_NAMED_CASES = 2
"""Maximum number of cases that a finding names, unless the experiment varies the number of processes."""

ShareOf = Callable[[Trial], float]
"""Function that returns the share of a resource that other programs took in a trial; 0 if unknown."""


def taken_share(trial: Trial) -> float:
    """Return the share of processors taken by other programs or other virtual machines; 0 if unknown."""
    shares = (finite(trial.foreign_share), finite(trial.stolen_share))
    return min(1.0, sum(share for share in shares if share))


def taken_disk_share(trial: Trial) -> float:
    """Return the share of a trial's time in which other programs kept the disk busy; 0 if unknown."""
    return min(1.0, finite(trial.disk_share) or 0.0)


def disturbed(run: Run) -> bool:
    """Return whether other programs, or a CPU quota, disturbed at least half of a run's trials."""
    shares = (taken_share, taken_disk_share, attrgetter("stopped_share"))
    return any(_in_most_trials(run, share) for share in shares)


def disturbances(group: Group, environment: Environment) -> Iterator[Finding]:
    """Yield findings (sentences) on disturbances, which put all figures of the group in doubt."""
    stopped = [
        (run, trial.stopped_share, trial.quota)
        for run in group.runs
        for trial in run.trials
        if trial.quota and trial.stopped_share
    ]
    if stopped:
        # When the quota stops our processes, the kernel at once increases the number of periods with a stop,
        # from which the share comes, but increases the stopped time later. So after a short window the
        # stopped time can still be 0. If so, the finding does not mention the stopped time.
        _, share, quota = max(stopped, key=lambda item: (item[1], item[2].stopped_s))
        yield Finding(
            sentences.quota_throttled,
            cores=f"{quota.cores:.3g}",
            share=share,
            stopped_ns=quota.stopped_s * NS_PER_S or None,
            where=_cases_label(group, dict.fromkeys(run.case for run, *_ in stopped)),
        )
    if load := _other_load(group):
        yield Finding(sentences.other_load, **load)
    if hot := [run.case for run in group.runs if any(trial.throttled for trial in run.valid)]:
        yield Finding(sentences.throttled, where=_cases_label(group, hot))
    # A CPU quota also lengthens the timed syncs, so with a quota their change shows nothing about the disk.
    if not stopped and not environment.host.is_limited and (changed := _changed_sync(environment)):
        was_ns, is_ns = changed
        low, high = sorted(changed)
        yield Finding(
            sentences.sync_changed, before_ns=was_ns, after_ns=is_ns, slower=is_ns > was_ns, times=high / low
        )


def _changed_sync(environment: Environment) -> tuple[int, int] | None:
    """Return the cost of a sync before and after the measurement, in ns; None if about unchanged.

    Two samples were taken before the measurement, and two after it. All earlier samples must differ from all
    later samples by more than the factor MAX_SYNC_CHANGE.
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
    if min(after) > MAX_SYNC_CHANGE * max(before):
        return max(before), min(after)
    if min(before) > MAX_SYNC_CHANGE * max(after):
        return min(before), max(after)
    return None


def _other_load(group: Group) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if worst := _worst_trial(group, taken_share):
        trial, where = worst
        stolen = (finite(trial.stolen_share) or 0.0) > (finite(trial.foreign_share) or 0.0)
        facts |= {"processors": sentences.Taken(taken_share(trial), where), "stolen": stolen}
    if worst := _worst_trial(group, taken_disk_share):
        trial, where = worst
        facts |= {"disk": sentences.Taken(taken_disk_share(trial), where)}
    return facts


def _worst_trial(group: Group, share: ShareOf) -> tuple[Trial, str] | None:
    """Return the trial with the largest `share`, and a label of all disturbed cases; None without any."""
    disturbed_trials = [
        (run, trial)
        for run in group.runs
        for trial in run.valid
        if share(trial) > (MAX_TAKEN_SHARE if _in_most_trials(run, share) else MAX_TAKEN_SHARE_ONCE)
    ]
    if not disturbed_trials:
        return None
    where = _cases_label(group, dict.fromkeys(run.case for run, _ in disturbed_trials))
    return max((trial for _, trial in disturbed_trials), key=share), where


def _in_most_trials(run: Run, share: ShareOf) -> bool:
    is_over = [share(trial) > MAX_TAKEN_SHARE for trial in run.valid]
    return bool(is_over) and 2 * sum(is_over) >= len(is_over)


def _cases_label(group: Group, cases: Collection[Case]) -> str:
    """Return a label of cases: "at 8 processes", "in 3 of 9 cases", or "throughout" for all cases."""
    if len(cases) == len(group.runs) > 1:
        return "throughout"
    if len(cases) > MAX_NAMED_CASES and not experiment_of(group.case).sweeps:
        return f"in {digits(len(cases))} of {plural(len(group.runs), 'case')}"
    return f"at {group.short_places(cases)}"
