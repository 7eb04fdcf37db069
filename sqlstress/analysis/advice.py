"""Advice: what a report says, in plain sentences, the gravest first."""

from __future__ import annotations

from itertools import chain

from sqlstress.analysis.finding import Finding, interruption
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.proof import failures, wrong_data
from sqlstress.experiment import face_of
from sqlstress.report import Report


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
