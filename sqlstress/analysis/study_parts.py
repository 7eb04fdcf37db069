"""Results of studies in a report. A study, such as a crash test, ends with a verdict, not with figures."""

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
"""Statuses of a study: data was wrong; too little was tested for a proof; all data was right.

The values are named after crash tests. In other studies, PROVED only means that there is an answer. In a
hunt (search for races), for example, no round failed.
"""
NO_ANSWER = "cannot-tell"
"""Status of a study, such as a search, without an answer. It counts as a failure with --strict."""
EXAMPLES = 3
"""Maximum number of counter-examples (wrong rows) shown for a failed check."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Conclusion of a study (such as a crash test): a status, and the sentence that explains it."""

    status: str
    """WRONG, UNPROVED, PROVED or NO_ANSWER."""
    finding: Finding


@dataclass(frozen=True, slots=True)
class ReportPart:
    """Part of a report with the result and the verdict of a study, such as a crash test."""

    name: str
    """Name of the tested event, such as "process death"."""
    verdict: Conclusion
    seconds: float
    error: str | None
    """Error that ended the study early; None if it was completed, or interrupted by the user."""
    suite: str
    """Name of the test suite in JUnit output."""
    kind: str = "Crash test"
    """Kind of study, as named in annotations (messages that GitHub shows on a commit)."""


def counterexamples(verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding for each failed check, with its first counter-examples (wrong rows)."""
    for check in verdict.checks:
        if check.status == "failed":
            yield Finding(
                sentences.counterexamples, name=check.name, examples=check.counterexamples[:EXAMPLES]
            )


def ended_early(error: str | None, rounds: str | None = None) -> Iterator[Finding]:
    """Yield the finding that a study ended early because of `error`; nothing if `error` is None.

    `rounds` is the progress as text, such as "3 of 100 rounds".
    """
    if error:
        yield Finding(sentences.ended_early, rounds=rounds, reason=error.removesuffix("."))


class ResultReader(Protocol):
    """Methods of a study's presenter (object that shows its results) that this package calls."""

    def part(self, result: Any) -> ReportPart:
        """Return the part of the report that shows this result, with the verdict."""

    def progress(self, result: Any) -> str:
        """Return the progress of the study, such as "3 of 100 rounds"."""


def _results(report: Report) -> list[tuple[ResultReader, Any]]:
    return [(get_experiment(name).presenter(), result) for name, result in report.results.items()]


def parts(report: Report) -> tuple[ReportPart, ...]:
    """Return the part of the report on each study, such as a crash test; empty without a study."""
    return tuple(reader.part(result) for reader, result in _results(report))


def progress(report: Report) -> str:
    """Return the progress of a report's studies, such as "3 of 100 rounds"; "" without a study."""
    return listing([reader.progress(result) for reader, result in _results(report)])


def interruption(report: Report) -> Finding:
    """Return the finding that the user interrupted the studies of a report, with their progress."""
    return Finding(sentences.interrupted, progress=progress(report))


def first_study_label(reports: tuple[Report, ...]) -> str | None:
    """Return the label of the first study in these reports, such as "a hunt"; None without a study."""
    names = (name for report in reports for name in report.results)
    return next((result_formats()[name].label for name in names), None)
