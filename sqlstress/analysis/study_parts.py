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
"""Statuses of a crash test. Other studies use WRONG for wrong data and PROVED for an answer."""
NO_ANSWER = "cannot-tell"
"""Status of a study without an answer. It is a failure only with --strict."""
EXAMPLES = 3
"""Maximum number of counter-examples of each check that a study shows."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Conclusion of a study."""

    status: str
    """WRONG, UNPROVED, PROVED or NO_ANSWER."""
    finding: Finding


@dataclass(frozen=True, slots=True)
class ReportPart:
    """A part of a report that has its own verdict."""

    name: str
    """Name of the tested event, such as "process death"."""
    verdict: Conclusion
    seconds: float
    """Duration, in seconds."""
    error: str | None
    """Reason for an early end; None if the study was completed or interrupted."""
    suite: str
    """Name of the test suite under which test runners list the part."""
    kind: str = "Crash test"
    """Kind of study, for annotations."""


def counterexamples(verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding for each failed check, with its first counter-examples."""
    for check in verdict.checks:
        if check.status == "failed":
            yield Finding(
                sentences.counterexamples, name=check.name, examples=check.counterexamples[:EXAMPLES]
            )


def ended_early(error: str | None, rounds: str | None = None) -> Iterator[Finding]:
    """Yield the reason of a study's early end and its progress; nothing if it was completed."""
    if error:
        yield Finding(sentences.ended_early, rounds=rounds, reason=error.removesuffix("."))


class ResultReader(Protocol):
    """Methods of a study's presenter that conclusions need."""

    def part(self, result: Any) -> ReportPart:
        """Return the part of the report that shows this result, with its verdict."""

    def progress(self, result: Any) -> str:
        """Return the progress of the study: "3 of 100 rounds"."""


def _results(report: Report) -> list[tuple[ResultReader, Any]]:
    """Return the results of studies, each with the presenter of its experiment."""
    return [(get_experiment(name).presenter(), result) for name, result in report.results.items()]


def parts(report: Report) -> tuple[ReportPart, ...]:
    """Return the parts of a report; empty if it has cases only."""
    return tuple(reader.part(result) for reader, result in _results(report))


def progress(report: Report) -> str:
    """Return the progress of a report's studies: "3 of 100 rounds"; empty if there are no studies."""
    return listing([reader.progress(result) for reader, result in _results(report)])


def interruption(report: Report) -> Finding:
    """Return the finding on an interruption, with the progress of the studies."""
    return Finding(sentences.interrupted, progress=progress(report))


def called(reports: tuple[Report, ...]) -> str | None:
    """Return the label of the first study result in reports; None if they have cases only."""
    names = (name for report in reports for name in report.results)
    return next((result_formats()[name].label for name in names), None)
