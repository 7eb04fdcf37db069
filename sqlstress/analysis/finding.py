"""Finding: one thing that a report says, as data; Part: what a study has found that is no sweep of cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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


class Finding:
    """One thing that a report says: a code, and the facts of it. `show.phrases` has the sentence."""

    __slots__ = ("code", "facts", "part")

    def __init__(self, code: str, *, part: str = "", **facts: Any) -> None:
        self.code = code
        """Stable name, such as "best" or "starvation"."""
        self.facts: Mapping[str, Any] = facts
        """Numbers, labels and other findings, by name; times end in _ns, shares are 0 to 1. What is true of
        `unclear` can't be told from noise."""
        self.part = part
        """Of which part of a group it is said: "synchronous normal"; "": of all of it."""

    def of_part(self, part: str) -> Finding:
        """Return the same of a part of a group."""
        return Finding(self.code, part=part, **self.facts)

    def _key(self) -> tuple[object, ...]:
        return self.code, self.part, repr(sorted(self.facts.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Finding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Finding({self.code!r}, part={self.part!r}, **{dict(self.facts)!r})"


def leaves_open(fact: Any) -> bool:
    """Return whether something can't be told: `unclear` is true of a finding, or of one within it."""
    if isinstance(fact, Finding):
        return bool(fact.facts.get("unclear")) or any(map(leaves_open, fact.facts.values()))
    return isinstance(fact, tuple) and any(map(leaves_open, fact))


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
            yield Finding("counterexamples", name=check.name, examples=check.counterexamples[:EXAMPLES])


def ended_early(error: str | None, rounds: str | None = None) -> Iterator[Finding]:
    """Yield why a study ended early, and how far it had come; nothing of one that did not."""
    if error:
        yield Finding("ended-early", rounds=rounds, reason=error.removesuffix("."))


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
    return Finding("interrupted", progress=progress(report))


def called(reports: tuple[Report, ...]) -> str | None:
    """Return what those reports are called that have no cases to be compared; None when all have."""
    names = (name for report in reports for name in report.results)
    return next((result_formats()[name].label for name in names), None)
