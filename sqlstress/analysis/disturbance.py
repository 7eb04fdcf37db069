"""What others did to a measurement: how much of the processors they took, and what became of the disk."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite, percent, times
from sqlstress.report import Environment, Run, Trial
from sqlstress.statistics.units import format_ms

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
