"""Finding: one thing that a report says, as data; Part: what a study has found that is no sweep of cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlstress.analysis.wording import listing
from sqlstress.experiment import Experiment, face
from sqlstress.report import Report

WRONG, UNPROVED, PROVED = "crash-wrong", "crash-unproved", "crash-proved"
"""Codes of a crash test's verdicts; of others that have one, wrong data and an answer."""
UNTOLD = "cannot-tell"
"""Code of a verdict that gives no answer, which is no failure unless somebody is strict."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a report says, in a sentence for people."""

    code: str
    """Stable name, such as "best" or "starvation"."""
    text: str
    """A sentence or two: what it is, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a report that has a verdict of its own."""

    name: str
    """What was tried: "process death"."""
    verdict: Finding
    """Of one of the codes WRONG, UNPROVED, PROVED and UNTOLD."""
    seconds: float
    """How long it took."""
    error: str | None
    """Why it ended early; None when it did not, or was interrupted."""
    suite: str
    """Under what test runners list it."""
    kind: str = "Crash test"
    """What it is one of, for annotations."""


def results(report: Report) -> list[tuple[Experiment, Any]]:
    """Return what studies have found, each with its experiment."""
    return [(face(name), found) for name, found in report.results.items()]


def parts(report: Report) -> tuple[Part, ...]:
    """Return the parts of a report; nothing of one that has cases only."""
    return tuple(experiment.show_result().part(found) for experiment, found in results(report))


def progress(report: Report) -> str:
    """Return how far studies have come: "3 of 100 rounds"; nothing when nothing was tried."""
    return listing([experiment.show_result().progress(found) for experiment, found in results(report)])


def interruption(report: Report) -> Finding:
    """Return how far studies had come that were interrupted."""
    after = f" after {done}" if (done := progress(report)) else ""
    return Finding("interrupted", f"Interrupted{after}: what was found by then is reported.")


def called(reports: tuple[Report, ...]) -> str | None:
    """Return what those reports are called that have no cases to be compared; None when all have."""
    found = (experiment.called for report in reports for experiment, _ in results(report))
    return next(found, None)
