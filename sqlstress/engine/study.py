"""Interfaces of a study: a measurement that chooses each trial by the results so far."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlstress.errors import EnvironmentFailure, Interrupted, SqlstressError
from sqlstress.options.option import Option
from sqlstress.report import Report
from sqlstress.report.case import Case
from sqlstress.targets import target_of


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a study, for the progress line."""

    label: str
    """Current activity, such as "[1/8] 1 bucket, 1 process" or "pair 3 of 10"."""
    done: float
    """Amount of work done, in the unit of `total`; it never decreases."""
    total: float
    """Total amount of work, in any unit; it may grow if the study finds that it needs more."""
    note: str
    """Latest result or current phase, such as "1,234 TPS", "preparing" or "B/A -2.1%"."""
    left_s: float
    """Estimated time left, in seconds."""
    label_width: int = 0
    """Width of the longest label of this study, in characters, so that the progress bar does not move
    sideways."""
    note_width: int = 0
    """Width of the longest note of this study, in characters; 0 means unknown."""


class Observer:
    """Receiver of a study's events; this class ignores them.

    Overriding methods must be quick and never raise.
    """

    def progress(self, progress: Progress) -> None:
        """Receive the study's progress; may be called often."""

    def phase(self, name: str) -> None:
        """Receive the name of the trial's new phase: preparing, starting, measuring or verifying."""

    def waiting(self) -> None:
        """Receive a sign of life in a phase other than the load. May be called often."""

    def tick(self, operations: int) -> None:
        """Receive the number of operations that this trial has done so far; called about ten times a
        second."""

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        """Receive the current view of a study that observes other programs; called about once a second.

        `page` returns it as several lines, `line` as a single line.
        """


SILENT = Observer()


Steps = Generator[None, None, None]


class AnyBench(Protocol):
    """Tools with which a study measures: valid inside the `with` block that opened them."""

    @property
    def report(self) -> Report:
        """Report without runs: only time, command and environment."""


B = TypeVar("B", bound=AnyBench)
B_contra = TypeVar("B_contra", bound=AnyBench, contravariant=True)
B_co = TypeVar("B_co", bound=AnyBench, covariant=True)


class Study(Protocol[B_contra]):
    """A measurement in steps. Each object runs only once."""

    def steps(self, bench: B_contra) -> Steps:
        """Measure, yield after each measurement, and report progress to the bench's observer.

        Raises Interrupted on a stop signal. Raises any other problem as SqlstressError if there are no
        results yet; otherwise the problem becomes part of the report.
        """

    def report(self, blank: Report) -> Report:
        """Return `blank`, a report without runs, with the results so far added.

        May be called between two steps.
        """


class StudyRequest(NamedTuple):
    """A study of the cases of an experiment, as a command requests it."""

    study: Study[Any]
    cases: tuple[Case, ...]
    """Cases that the study may measure; the study begins with the first."""
    strict: bool
    """Whether an inconclusive result changes the exit code."""


ReadWords = Callable[[Sequence[str], Iterable[Option], str], dict[str, Any]]
"""Function that parses words of a command line; it returns the typed values by option name.

Arguments: the words, the options, and the name of the place where the words come from, for the message of a
UsageError.
"""


class BenchOpener(Protocol[B_co]):
    """Factory of a study's bench, such as MeasuringSession."""

    @property
    def kept_folder(self) -> Path | None:
        """Folder with the kept databases; None if they are not kept or no bench has been opened."""

    @property
    def stayed(self) -> tuple[Path, ...]:
        """Our files that could not be removed."""

    def opened(self, observer: Observer) -> AbstractContextManager[B_co]:
        """Return a context manager that opens a bench; leaving the block closes it and removes its files."""


class ObservationRequest(NamedTuple):
    """A study that only observes other programs, as a command requests it."""

    study: Study[Any]
    opens: Callable[[tuple[str, ...]], BenchOpener[Any]]
    """Function from the words of the command line to the factory of the bench."""
    plain: bool
    """Whether each view is printed as a line even if a full page is possible."""


# Text of an exception that ends a measurement, for the report.


def as_failure(problem: Exception, driver: str) -> SqlstressError:
    """Return the SqlstressError that explains an exception raised while a driver was used.

    An exception that the driver's target does not expect gets a request to report it.
    """
    if isinstance(problem, SqlstressError):
        return problem
    target = target_of(driver)
    is_expected = isinstance(problem, OSError | MemoryError) or target.foresees(problem)
    hint = "" if is_expected else f" (unexpected: please report it, with Python {sys.version.split()[0]})"
    return EnvironmentFailure(f"{target.explain(driver, problem)}{hint}")


def kept_reason(problem: Exception, driver: str, *, nothing_yet: bool) -> str:
    """Return the text for the report on a problem that ends a measurement.

    Raises Interrupted unchanged. Raises the problem as SqlstressError if there are no results yet
    (`nothing_yet`).
    """
    if isinstance(problem, Interrupted):
        raise problem
    failure = as_failure(problem, driver)
    if nothing_yet:
        raise failure from problem
    return str(failure)
