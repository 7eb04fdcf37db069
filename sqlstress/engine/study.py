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
    """Current activity, such as "[1/8] 1 bucket, 1 process"."""
    done: float
    """Amount of work done, in the unit of `total`; never decreases."""
    total: float
    """Total amount of work, in any unit; may grow."""
    note: str
    """Latest result or current phase, such as "1,234 TPS" or "preparing"."""
    left_s: float
    """Estimated time left, in seconds."""
    label_width: int = 0
    """Width of the longest label, in characters, for a progress bar that stays in place."""
    note_width: int = 0
    """Width of the longest note, in characters; 0 means unknown."""


class Observer:
    """Receiver of a study's events, such as a progress line. This base class ignores them.

    Methods of subclasses must be quick and never raise an exception.
    """

    def progress(self, progress: Progress) -> None:
        """Receive the study's progress; may be called often."""

    def phase(self, name: str) -> None:
        """Receive the trial's new phase: preparing, starting, measuring or verifying."""

    def waiting(self) -> None:
        """Receive a sign of life while a trial is prepared, started or verified; may be called often."""

    def tick(self, operations: int) -> None:
        """Receive the number of operations that the trial has done so far, about ten times a second."""

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        """Receive, once a second during `watch`, functions that return its results as a page or a line."""


SILENT = Observer()

Steps = Generator[None, None, None]


class AnyBench(Protocol):
    """Tools with which a study measures, such as engine.session.Bench.

    They are valid inside the `with` block of `BenchOpener.opened`.
    """

    @property
    def report(self) -> Report:
        """Report without results: only time, command and environment."""


B = TypeVar("B", bound=AnyBench)
B_contra = TypeVar("B_contra", bound=AnyBench, contravariant=True)
B_co = TypeVar("B_co", bound=AnyBench, covariant=True)


class Study(Protocol[B_contra]):
    """A measurement in steps, such as a sweep. Each object runs only once."""

    def steps(self, bench: B_contra) -> Steps:
        """Measure, yield after each measurement, and report progress to the bench's observer.

        Raises Interrupted on a stop signal, and another SqlstressError only if there is no result yet.
        """

    def report(self, blank: Report) -> Report:
        """Return `blank`, a report without results, with the results so far. Call it between two steps."""


class StudyRequest(NamedTuple):
    """Request of a command to run a study (a measurement in steps) of an experiment's cases."""

    study: Study[Any]
    cases: tuple[Case, ...]
    """Cases that the study may measure. The study starts with the first case."""
    strict: bool
    """Whether an inconclusive result changes the exit code."""


ReadWords = Callable[[Sequence[str], Iterable[Option], str], dict[str, Any]]
"""Function that parses words of a command line and returns the values by option name.

Arguments: words, options, and the source of the words for error messages.
"""


class BenchOpener(Protocol[B_co]):
    """Factory of a bench (tools with which a study measures), such as MeasuringSession."""

    @property
    def kept_folder(self) -> Path | None:
        """Folder with the kept databases, or None."""

    @property
    def stayed(self) -> tuple[Path, ...]:
        """Our files that could not be removed."""

    def opened(self, observer: Observer) -> AbstractContextManager[B_co]:
        """Return a context manager that yields a bench, and removes the bench's files at the end."""


class ObservationRequest(NamedTuple):
    """A study that only observes other programs, as a command requests it."""

    study: Study[Any]
    opens: Callable[[tuple[str, ...]], BenchOpener[Any]]
    """Function from the words of the command line to a factory of the study's tools."""
    plain: bool
    """Whether the state is printed as one line each time, even if a full page is possible."""


def as_failure(problem: Exception, driver: str) -> SqlstressError:
    """Return the SqlstressError that explains an exception, with a request to report an unexpected one."""
    if isinstance(problem, SqlstressError):
        return problem
    target = target_of(driver)
    is_expected = isinstance(problem, OSError | MemoryError) or target.foresees(problem)
    hint = "" if is_expected else f" (unexpected: please report it, with Python {sys.version.split()[0]})"
    return EnvironmentFailure(f"{target.explain(driver, problem)}{hint}")


def kept_reason(problem: Exception, driver: str, *, nothing_yet: bool) -> str:
    """Return the text on the exception that ended a measurement, for the report of the results so far.

    If there are no results (`nothing_yet`), raise a SqlstressError instead. Re-raises Interrupted.
    """
    if isinstance(problem, Interrupted):
        raise problem
    failure = as_failure(problem, driver)
    if nothing_yet:
        raise failure from problem
    return str(failure)
