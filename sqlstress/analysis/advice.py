"""Advice: what a report says, in plain sentences, the gravest first: wrong data, what could not be measured,
proofs that are not whole, and what each experiment says itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sqlstress.analysis.finding import Finding, interruption
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.wording import listing, place, places, whole
from sqlstress.experiment import face_of
from sqlstress.report import Check, Report, Run
from sqlstress.report.case import Case

SHOWN = 3
"""Cases with wrong data, and counter-examples of each check, that are told in full."""


def failures(group: Group) -> Iterator[Finding]:
    """Yield why cases could not be measured, wholly or in part; the same reason is told once."""
    reasons: dict[tuple[bool, str], list[Case]] = {}
    for run in group.runs:
        reason = _reason(run)
        if reason:
            reasons.setdefault((bool(run.valid), reason), []).append(run.case)
    for (partly, reason), cases in reasons.items():
        code, told = ("case-incomplete", "Not wholly measured") if partly else ("case-failed", "Not measured")
        yield Finding(code, f"{told} at {places(cases)}: {reason.removesuffix('.')}.")


def _reason(run: Run) -> str | None:
    """Return why a run is not whole; None when it is."""
    if run.error:
        return run.error
    invalid = next((trial.error for trial in run.trials if trial.error), None)
    return invalid or (None if run.trials or run.skipped else "No trial was made.")


def wrong_data(group: Group) -> Iterator[Finding]:
    """Yield what was wrong with the data, with the first counter-examples."""
    wrong = [run for run in group.runs if run.verdict.status == "failed"]
    for run in wrong[:SHOWN]:
        told = "; ".join(_told(check) for check in run.verdict.checks if check.status == "failed")
        yield Finding("data-wrong", f"FAILED at {place(run.case)}: {told}.")
    if len(wrong) > SHOWN:
        rest = places(run.case for run in wrong[SHOWN:])
        yield Finding("data-wrong", f"FAILED at {rest} too: the JSON report has the counter-examples.")


def _told(check: Check) -> str:
    # A row that is gone is a problem without having been looked at: there can be more problems.
    total = f" of {whole(check.checked)}" if check.checked >= check.problems else ""
    amount = f", {whole(check.problems)}{total} wrong" if check.problems else ""
    examples = "; ".join(check.counterexamples[:SHOWN])
    return f"{check.name}{amount}" + (f" ({examples})" if examples else "")


def partial_proofs(group: Group) -> Iterator[Finding]:
    """Yield which checks could not say, or did not cover everything."""
    limits: dict[tuple[str, str], dict[str, list[Case]]] = {}
    for run in group.runs:
        for check in run.verdict.checks:
            if check.status == "unknown" or (check.status == "ok" and check.note):
                found = limits.setdefault((check.status, check.note), {})
                found.setdefault(check.name, []).append(run.case)
    for (status, note), checks in limits.items():
        where = places(case for cases in checks.values() for case in cases)
        what = "Undecided" if status == "unknown" else "Proved in part"
        because = f": {note}" if note else ""
        yield Finding(f"proof-{status}", f"{what} at {where} ({listing(list(checks))}){because}.")


def advise_group(group: Group) -> tuple[Finding, ...]:
    """Return what the runs of one table say."""
    own = face_of(group.case).show().findings
    return tuple(chain.from_iterable(topic(group) for topic in (wrong_data, failures, own)))


def advise(report: Report) -> tuple[Finding, ...]:
    """Return what a report says: all its groups, and what was not measured."""
    told = chain.from_iterable(map(advise_group, group_runs(report.runs)))
    return (*told, *missing(report))


def missing(report: Report) -> tuple[Finding, ...]:
    """Return what an interruption has left out."""
    if not report.interrupted:
        return ()
    if report.results:
        return (interruption(report),)
    text = f"Interrupted: {len(report.runs)} of {report.planned} planned cases are reported."
    return (Finding("interrupted", text),)
