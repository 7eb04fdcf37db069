"""Advice: what a report says, in plain sentences, the gravest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.proof import failures, partial_proofs, wrong_data
from sqlstress.analysis.trust import trust
from sqlstress.experiments.crash.shown.findings import interruption
from sqlstress.experiments.cycles.shown.findings import cycles
from sqlstress.experiments.keys.shown.findings import keys
from sqlstress.experiments.kv.shown.checkpoints import checkpoints
from sqlstress.experiments.kv.shown.throughput import throughput
from sqlstress.experiments.kv.shown.waiting import waiting
from sqlstress.experiments.methods.shown.findings import methods
from sqlstress.report import Report

Topic = Callable[[Group], Iterator[Finding]]

_TOPICS: dict[str, tuple[Topic, ...]] = {
    "kv": (throughput, checkpoints, waiting, partial_proofs, trust),
    "methods": (methods, partial_proofs),
    "keys": (keys, partial_proofs, trust),
    "cycles": (cycles, partial_proofs),
}
"""Experiment → what there is to say of it, beside what is wrong or missing."""


def advise_group(group: Group) -> tuple[Finding, ...]:
    """Return what the runs of one table say."""
    topics = (wrong_data, failures, *_TOPICS[group.case.experiment])
    return tuple(chain.from_iterable(topic(group) for topic in topics))


def advise(report: Report) -> tuple[Finding, ...]:
    """Return what a report says: all its groups, and what was not measured."""
    told = chain.from_iterable(map(advise_group, group_runs(report.runs)))
    return (*told, *missing(report))


def missing(report: Report) -> tuple[Finding, ...]:
    """Return what an interruption has left out."""
    if not report.interrupted:
        return ()
    if report.crash:
        return (interruption(report.crash),)
    text = f"Interrupted: {len(report.runs)} of {report.planned} planned cases are reported."
    return (Finding("interrupted", text),)
