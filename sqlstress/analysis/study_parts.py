"""Part: a part of a report with a verdict of its own, such as a crash test or a hunt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.wording import listing
from sqlstress.experiment import get_experiment
from sqlstress.registry import result_formats
from sqlstress.report import Report, Verdict

WRONG, UNPROVED, PROVED = "crash-wrong", "crash-unproved", "crash-proved"
"""What came of a crash test; of other studies, wrong data and an answer."""
UNTOLD = "cannot-tell"
"""What came of a study that gives no answer, which is no failure unless somebody is strict."""
EXAMPLES = 3
"""Counter-examples of each check that a study shows."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What came of a study."""

    status: str
    """WRONG, UNPROVED, PROVED or UNTOLD."""
    finding: Finding


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a report that has a verdict of its own."""

    name: str
    """What was tried: "process death"."""
    verdict: Conclusion
    seconds: float
    """How long it took."""
    error: str | None
    """Why it ended early; None when it did not, or was interrupted."""
    suite: str
    """Under what test runners list it."""
    kind: str = "Crash test"
    """What it is one of, for annotations."""


def counterexamples(verdict: Verdict) -> Iterator[Finding]:
    """Yield the checks that failed, each with its first examples."""
    for check in verdict.checks:
        if check.status == "failed":
            yield Finding(
                sentences.counterexamples, name=check.name, examples=check.counterexamples[:EXAMPLES]
            )


def ended_early(error: str | None, rounds: str | None = None) -> Iterator[Finding]:
    """Yield why a study ended early, and how far it had come; nothing of one that did not."""
    if error:
        yield Finding(sentences.ended_early, rounds=rounds, reason=error.removesuffix("."))


class ResultReader(Protocol):
    """Methods of a study's presenter that conclusions need."""

    def part(self, result: Any) -> Part:
        """Return what was tried, and its verdict."""

    def progress(self, result: Any) -> str:
        """Return the progress of the study: "3 of 100 rounds"."""


def _results(report: Report) -> list[tuple[ResultReader, Any]]:
    """Return the results of studies, each with its reader."""
    return [(get_experiment(name).presenter(), result) for name, result in report.results.items()]


def parts(report: Report) -> tuple[Part, ...]:
    """Return the parts of a report; nothing of one that has cases only."""
    return tuple(reader.part(result) for reader, result in _results(report))


def progress(report: Report) -> str:
    """Return how far studies have come: "3 of 100 rounds"; nothing when nothing was tried."""
    return listing([reader.progress(result) for reader, result in _results(report)])


def interruption(report: Report) -> Finding:
    """Return how far studies had come that were interrupted."""
    return Finding(sentences.interrupted, progress=progress(report))


def called(reports: tuple[Report, ...]) -> str | None:
    """Return what those reports are called that have no cases to be compared; None when all have."""
    names = (name for report in reports for name in report.results)
    return next((result_formats()[name].label for name in names), None)
