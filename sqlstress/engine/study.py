"""Interface of a study, which chooses each measurement by the results so far."""

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
    """Progress of a study."""

    label: str
    """Current activity, such as "[1/8] 1 bucket, 1 process" or "pair 3 of 10"."""
    done: float
    """Amount done; it never decreases."""
    total: float
    """Total amount; it may grow if the study finds that it needs more."""
    note: str
    """Latest result or current phase, such as "1,234 TPS", "preparing" or "B/A -2.1%"."""
    left_s: float
    """Estimated time left, in seconds."""
    label_width: int = 0
    """Characters of the longest label to come, so that the progress bar does not move sideways."""
    note_width: int = 0
    """Characters of the longest note to come; 0 means unknown."""


class Observer:
    """Receiver of a study's events that ignores them. Overriding methods must be quick and never raise."""

    def progress(self, progress: Progress) -> None:
        """Receive the study's progress; may be called often."""

    def phase(self, name: str) -> None:
        """Receive the trial's new phase, such as preparing, starting, measuring or verifying."""

    def waiting(self) -> None:
        """Receive a sign of life in a phase other than the load; may be called often."""

    def tick(self, operations: int) -> None:
        """Receive the number of operations done in this trial; called about ten times a second."""

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        """Receive an observing study's current view, as a page or a line; called about once a second."""


SILENT = Observer()


Steps = Generator[None, None, None]


class AnyBench(Protocol):
    """Tools with which a study measures, while they are open."""

    @property
    def report(self) -> Report:
        """Report without runs: time, command and environment."""


B = TypeVar("B", bound=AnyBench)
B_contra = TypeVar("B_contra", bound=AnyBench, contravariant=True)
B_co = TypeVar("B_co", bound=AnyBench, covariant=True)


class Study(Protocol[B_contra]):
    """A measurement in steps. It runs only once."""

    def steps(self, bench: B_contra) -> Steps:
        """Measure, yield after each measurement, and report progress to the bench's observer.

        Raises Interrupted on a stop signal. Any other problem is raised as SqlstressError if there are no
        results yet; otherwise it becomes part of the report.
        """

    def report(self, blank: Report) -> Report:
        """Return `blank`, a report without runs, with the results so far; also called between steps."""


class StudyRequest(NamedTuple):
    """Request for a study that measures cases of another experiment."""

    study: Study[Any]
    cases: tuple[Case, ...]
    """Cases that the study may measure; the study begins with the first."""
    strict: bool
    """Whether an inconclusive answer changes the exit code."""


ReadWords = Callable[[Sequence[str], Iterable[Option], str], dict[str, Any]]
"""Function that parses words as options and returns their values as typed, by name.

Its last argument is the place of the words, for the message of UsageError.
"""


class BenchOpener(Protocol[B_co]):
    """Opener of a study's bench, such as a Session."""

    @property
    def kept_folder(self) -> Path | None:
        """Folder of the kept databases; None if they are not kept or no bench was opened yet."""

    @property
    def stayed(self) -> tuple[Path, ...]:
        """Files that could not be removed."""

    def opened(self, observer: Observer) -> AbstractContextManager[B_co]:
        """Return a context manager of a bench. The end of `with` closes it and removes its files."""


class ObservationRequest(NamedTuple):
    """Request for a study that only observes other programs."""

    study: Study[Any]
    opens: Callable[[tuple[str, ...]], BenchOpener[Any]]
    """Function from the words of the command to the opener of the bench."""
    plain: bool
    """Whether each view is shown as a line even if a page could be drawn."""


# Text of an exception that ends a measurement, for the report.


def as_failure(problem: Exception, driver: str) -> SqlstressError:
    """Return an exception from the use of a driver as a SqlstressError that explains it."""
    if isinstance(problem, SqlstressError):
        return problem
    target = target_of(driver)
    is_expected = isinstance(problem, OSError | MemoryError) or target.foresees(problem)
    hint = "" if is_expected else f" (unexpected: please report it, with Python {sys.version.split()[0]})"
    return EnvironmentFailure(f"{target.explain(driver, problem)}{hint}")


def kept_reason(problem: Exception, driver: str, *, nothing_yet: bool) -> str:
    """Return the text for the report on a problem that ends a measurement.

    Raises the problem instead if there are no results yet (`nothing_yet`) or if it is Interrupted.
    """
    if isinstance(problem, Interrupted):
        raise problem
    failure = as_failure(problem, driver)
    if nothing_yet:
        raise failure from problem
    return str(failure)
