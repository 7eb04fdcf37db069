"""What a measurement returns: a report that can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.errors import UsageError
from sqlstress.experiment import face_of
from sqlstress.report import Environment, Latency, Run
from sqlstress.report import Report as Document
from sqlstress.report.case import Case

if TYPE_CHECKING:
    from sqlstress.statistics.search import Answer


@dataclass(frozen=True, slots=True)
class Figure:
    """The figures of a case: those of its typical trial, the rate being the median over its trials."""

    case: Case
    """What was measured."""
    label: str
    """The same in a few words."""
    tps: float | None
    """Transactions a second, all processes together: the median; None when it could not be measured."""
    rate: float | None
    """What cases of its experiment are compared by, a second; None where there is none to be believed."""
    counts: str
    """What the rate counts: transactions, pairs, rows or cycles."""
    fairness: float | None
    """Jain's index of the processes' shares, 1/n to 1."""
    longest_wait_ns: int | None
    """The slowest operation, one still pending at the window's end included."""
    failed: int | None
    """Operations given up after the busy time-out."""
    latency: Mapping[str, Latency]
    """Service times by kind of operation, in nanoseconds."""
    verified: str
    """Whether the data was what the workers were told it is: ok, failed, unknown or skipped."""
    error: str | None
    """Why it could not be measured, or not wholly; None when it could."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a report says."""

    code: str
    """Stable name, such as "best" or "starvation"."""
    facts: Mapping[str, Any]
    """What it says, as data: labels, numbers (times end in _ns, shares are 0 to 1), and other findings."""
    text: str
    """The same in a sentence or two, for people."""


@dataclass(frozen=True, repr=False)
class Report:
    """What was measured, and what it says."""

    document: Document
    """All of it, as it is saved."""

    @property
    def ok(self) -> bool:
        """Whether all was measured, and nothing found wrong: the command line would exit 0."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """With what the command line would exit: 0, 1 (wrong data), 3 (unproved), 4 (a failure), 130."""
        from sqlstress.display.endings import endings, exit_code

        return exit_code(endings(self.document))

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not as it should be, a line each, the gravest first."""
        from sqlstress.display.endings import endings

        said = (one.text or one.reason for one in endings(self.document))
        return tuple(one.removeprefix("Error: ") for one in said if one)

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped it: what was measured by then is there."""
        return self.document.interrupted

    @property
    def environment(self) -> Environment:
        """Where it was measured."""
        return self.document.environment

    @property
    def runs(self) -> tuple[Run, ...]:
        """The cases that were measured, each with its trials."""
        return self.document.runs

    @property
    def results(self) -> Mapping[str, Any]:
        """What studies have found that are no sweeps of cases, such as kills, by experiment."""
        return self.document.results

    @cached_property
    def answer(self) -> Answer | None:
        """Of a search, the highest rate that `holds`, and the lowest that does not (`breaks`); else None."""
        from sqlstress.analysis.limit import answered

        return answered(self.document, self.document.limit) if self.document.limit else None

    @property
    def verdict(self) -> str | None:
        """Of an A/B test: pass, fail, inconclusive, or undecided where it was stopped; else None."""
        return self.document.ab.verdict if self.document.ab else None

    @property
    def ratio(self) -> float | None:
        """Of an A/B test, B's figure over A's, as the last look estimated it; else None."""
        return self.document.ab.looks[-1].ratio if self.document.ab and self.document.ab.looks else None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What it says, a sentence or two each, with a stable code."""
        from sqlstress.analysis.advice import advise
        from sqlstress.display.phrases import phrase

        return tuple(Finding(one.code, one.facts, phrase(one)) for one in advise(self.document))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of each case, in the order in which they were measured."""
        return tuple(map(_figure, self.runs))

    def __repr__(self) -> str:
        """Say what is wrong, if anything is: a test that fails shows this."""
        return f"<sqlstress report: {'; '.join(self.problems) or ('ok' if self.ok else 'not ok')}>"

    def text(self) -> str:
        """Return what the command line prints, in lines of 80 columns."""
        from sqlstress.render.text import report_text

        return report_text(self.document)

    def save(self, path: str | Path, format: str | None = None) -> None:
        """Write it to a file, in the format that its name ends with unless another one is named.

        The path "-" is the standard output.

        Raises UsageError for a format that is not known, EnvironmentFailure when it can't be written.
        """
        from sqlstress.render import FORMATS
        from sqlstress.report import write_atomically

        form = format or Path(path).suffix.removeprefix(".")
        if form not in FORMATS:
            raise UsageError(f"the formats are {', '.join(FORMATS)}: {form!r} is none of them.")
        write_atomically(Path(path), FORMATS[form](self.document))


def _figure(run: Run) -> Figure:
    from sqlstress.analysis.group import rate_of

    trial = run.shown()
    return Figure(
        case=run.case,
        label=run.case.label,
        tps=run.median_tps(),
        rate=rate_of(run),
        counts=face_of(run.case).rate_counts,
        fairness=trial.fairness if trial else None,
        longest_wait_ns=trial.longest_wait_ns if trial else None,
        failed=trial.failed if trial else None,
        latency=trial.latency if trial else {},
        verified=run.verdict.status,
        error=run.error,
    )
