"""Findings (sentences of a report) on runs (all trials of a case): wrong data, errors, accuracy.

A trial is a timed execution of a case. A group is the runs in one table of the report. A window is
the measured time of a trial, after the warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple

from sqlstress.analysis import sentences
from sqlstress.analysis.answers import answer, leader_findings
from sqlstress.analysis.failed import too_many_failed_findings
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, group_runs, merge_groups, reader_of
from sqlstress.analysis.sentences import FailedCheck
from sqlstress.analysis.study_parts import interruption, parts
from sqlstress.analysis.wording import listing, places
from sqlstress.experiment import case_label, experiment_of, unit_of
from sqlstress.report import LEFT_OUT, Check, Report, Run
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_S, finite
from sqlstress.target import stores_nothing

MAX_SHOWN = 3
"""Maximum number of cases whose wrong data is shown in detail, and of wrong rows shown per check."""


def failures(group: Group) -> Iterator[Finding]:
    """Yield a finding for each error that prevented, or interrupted, the measurement of cases."""
    reasons: dict[tuple[bool, str], list[Case]] = {}
    for run in group.runs:
        reason = run.error or next((trial.error for trial in run.trials if trial.error), None)
        if not reason and not run.trials and not run.skipped:
            reason = "No trial was made."
        if reason:
            reasons.setdefault((bool(run.valid), reason), []).append(run.case)
    for (partly, reason), cases in reasons.items():
        where, why = group.places(cases), reason.removesuffix(".")
        yield Finding(sentences.case_failed, where=where, reason=why, partly=partly)


def wrong_data_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on wrong data: failed checks of MAX_SHOWN cases, and the labels of further cases."""
    wrong = [run for run in group.runs if run.verdict.status == "failed"]
    for run in wrong[:MAX_SHOWN]:
        by_name: dict[str, list[Check]] = {}
        for check in run.verdict.checks:  # a check appears once for each trial
            by_name.setdefault(check.name, []).append(check)
        checks = tuple(
            _failed_check(same_name_checks)
            for same_name_checks in by_name.values()
            if any(check.status == "failed" for check in same_name_checks)
        )
        yield Finding(sentences.data_wrong, where=group.place(run.case), checks=checks)
    if len(wrong) > MAX_SHOWN:
        yield Finding(
            sentences.data_wrong_elsewhere, where=group.places(run.case for run in wrong[MAX_SHOWN:])
        )


def _failed_check(checks: Sequence[Check]) -> FailedCheck:
    """Return a check's problems, summed over all trials. `checks` has the check's result in each trial."""
    failed = [check for check in checks if check.status == "failed"]
    checked, problems = sum(check.checked for check in failed), sum(check.problems for check in failed)
    examples = dict.fromkeys(example for check in failed for example in check.counterexamples[:MAX_SHOWN])
    return FailedCheck(
        name=failed[0].name,
        problems=problems or None,
        # With missing rows, problems can exceed checked rows. "3 of 2 rows are wrong" would confuse.
        checked=checked if problems and checked >= problems else None,
        failed=len(failed),
        passes=len(checks),
        examples=tuple(examples)[:MAX_SHOWN],
    )


def partial_proofs(group: Group) -> Iterator[Finding]:
    """Yield findings on checks of the data that had no result, or covered only a part of the data."""
    limits: dict[tuple[str, str], dict[str, list[Case]]] = {}
    for run in group.runs:
        for check in run.verdict.checks:
            if check.status == "unknown" or (check.status == "ok" and check.note):
                by_name = limits.setdefault((check.status, check.note), {})
                by_name.setdefault(check.name, []).append(run.case)
    for (status, note), checks in limits.items():
        where = group.places(case for cases in checks.values() for case in cases)
        yield Finding(
            sentences.proof_ok if status == "ok" else sentences.proof_unknown,
            where=where,
            checks=tuple(checks),
            note=note,
        )


def advise_group(group: Group) -> tuple[Finding, ...]:
    """Return the findings to show below a group, which is one table of the report."""
    return (
        *wrong_data_findings(group),
        *failures(group),
        *too_many_failed_findings(group),
        *leader_findings(group),
        *answer(group),
        *reader_of(group.case).findings(group),
    )


def advise(report: Report) -> tuple[Finding, ...]:
    """Return all findings of a report: on studies (crash tests, ...), tables and missing cases."""
    of_studies = (part.verdict.finding for part in parts(report))
    of_groups = chain.from_iterable(map(advise_group, merge_groups(group_runs(report.runs))))
    return (*of_studies, *of_groups, *missing(report))


def missing(report: Report) -> tuple[Finding, ...]:
    """Return the finding that an interruption or wrong data ended the measurement early; else ()."""
    if not report.interrupted:
        return tuple(_stopped(report))
    if report.results:
        return (interruption(report),)
    if cut := early_end(report):
        return (Finding(sentences.interrupted, trials=cut.made, planned=cut.planned),)
    trials = sum(len(run.trials) for run in report.runs)
    return (Finding(sentences.interrupted, cases=len(report.runs), planned=report.planned, trials=trials),)


class SweepState(NamedTuple):
    """Numbers of completed and planned trials of a measurement that ended early."""

    made: int
    planned: int


def early_end(report: Report) -> SweepState | None:
    """Return the numbers of completed and planned trials if the measurement ended early; else None."""
    if report.results or report.ab or report.limit:
        return None
    planned = [run for run in report.runs if _was_planned(run)]
    is_known = len(report.runs) >= report.planned
    is_stopped = any(run.verdict.status == "failed" for run in planned)
    made, planned_trials = sum(len(run.trials) for run in planned), sum(run.case.repeat for run in planned)
    ended = is_known if report.interrupted else is_stopped
    return SweepState(made, planned_trials) if ended and made < planned_trials else None


def _was_planned(run: Run) -> bool:
    """Return whether a run would have been measured if the measurement had not ended early.

    False for a run with an error, and for a run that was skipped for another reason than wrong data.
    """
    return not run.error and run.skipped in (None, LEFT_OUT)


def _stopped(report: Report) -> Iterator[Finding]:
    if cut := early_end(report):
        cases = [run.case for run in report.runs if run.skipped and _was_planned(run)]
        is_one_work = len({experiment_of(case).work_label(case) for case in cases}) == 1
        left_out = places(cases) if is_one_work else listing([case_label(case) for case in cases])
        yield Finding(
            sentences.stopped_at_wrong_data, trials=cut.made, planned=cut.planned, left_out=left_out or None
        )


MAX_HALF_CHANGE = 0.10
"""Largest change of TPS between the two halves of a trial, as a share, that counts as steady."""
MAX_PROOF_SHARE = 0.05
"""Share of the measured time. A finding warns if checks of the data take more than this."""


def figure_limits(group: Group) -> Iterator[Finding]:
    """Yield findings on accuracy: unsteady rates, and time taken by sqlstress itself."""
    changes = [(change, run.case) for run in group.runs if (change := _half_change(run)) is not None]
    if changes:
        largest = max((change for change, _ in changes), key=abs)
        yield Finding(sentences.not_steady, where=group.places(case for _, case in changes), change=largest)
    costs, proofs = [], [(0.0, "")]
    for run, trial in group.measured():
        cost, rate, where = finite(run.harness_ns), finite(trial.tps_per_process), group.place(run.case)
        if cost and rate and not stores_nothing(run.case.driver):
            # `cost` is the time of sqlstress's own code per transaction, measured with a store that does
            # nothing. With a real store, caches are colder and processors are shared, so the share measured
            # during the trial may be higher than the share that follows from `cost`. The larger is reported.
            share = _mean_share([worker.harness_share for worker in trial.workers])
            # Without the limit of 1.0, the share could exceed 1 if other programs slowed the measurement of
            # `cost` down.
            costs.append((max(share, min(1.0, cost * rate / NS_PER_S)), cost, where))
        proofs.append((_mean_share([worker.proof_share for worker in trial.workers]), where))
    if costs:
        share, cost, where = max(costs)
        unit = unit_of(group.case)
        yield Finding(sentences.harness_cost, share=share, where=where, cost_ns=cost, unit=unit)
    share, where = max(proofs)
    if share > MAX_PROOF_SHARE:
        yield Finding(sentences.proof_cost, share=share, where=where)


def _half_change(run: Run) -> float | None:
    """Return the change of TPS from the first half of the measured time to the second half.

    The result is the median of all trials: 0.2 means 20% faster. None unless TPS changed by more than
    MAX_HALF_CHANGE, in one direction, in each trial. None at a fixed rate, where halves differ by chance.
    """
    if run.case.rate:
        return None
    changes = [ratio - 1 for trial in run.valid if (ratio := finite(trial.half_ratio)) is not None]
    agree = changes and (min(changes) > MAX_HALF_CHANGE or max(changes) < -MAX_HALF_CHANGE)
    return median(changes) if agree else None


def _mean_share(shares: Sequence[float]) -> float:
    """Return the mean of shares of time, one per worker process; an unknown share counts as 0."""
    return math.fsum(finite(share) or 0.0 for share in shares) / len(shares) if shares else 0.0
