"""What a study is: it decides its next measurement from the last ones. All are carried out in one way."""

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
    """How far a study has come."""

    label: str
    """What is being done: "[1/8] 1 bucket, 1 process", "pair 3 of 10"."""
    done: float
    """How much is done; never less than it was."""
    total: float
    """Of how much: it may grow, where it is decided on the way how much is needed."""
    note: str
    """What is found or happens meanwhile: "1,234 TPS", "preparing", "B/A -2.1%"."""
    left_s: float
    """A guess of the seconds that are left."""
    label_width: int = 0
    """Characters of the longest label that is to come: a bar beside it then stands still."""
    note_width: int = 0
    """The same of the note; 0 where it is not known."""


class Observer:
    """Watches nothing. Whoever watches overrides something, which must be quick and must not raise."""

    def progress(self, progress: Progress) -> None:
        """The study has come so far; may be called often."""

    def phase(self, name: str) -> None:
        """A trial is now preparing, starting, measuring or verifying."""

    def waiting(self) -> None:
        """The phase goes on, and is not the load; may be called often."""

    def tick(self, operations: int) -> None:
        """So many operations have been done in this trial; called about ten times a second."""

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        """A study that looks on sees something now, which a page or a line tells; about once a second."""


NOBODY = Observer()


Steps = Generator[None, None, None]


class AnyBench(Protocol):
    """What a study measures with, while it is open."""

    @property
    def report(self) -> Report:
        """A report without runs: when, by which command, where."""


B = TypeVar("B", bound=AnyBench)
B_contra = TypeVar("B_contra", bound=AnyBench, contravariant=True)
B_co = TypeVar("B_co", bound=AnyBench, covariant=True)


class Study(Protocol[B_contra]):
    """Measures step by step. It is carried out once."""

    def steps(self, bench: B_contra) -> Steps:
        """Measure, and yield after each measurement; tell the bench's observer how far it has come.

        Raises Interrupted when somebody stops it. Any other problem is raised, as SqlstressError, as long
        as there is nothing to keep; after that it is part of the report.
        """

    def report(self, blank: Report) -> Report:
        """Return a report without runs with all that has been found by now, also between two steps."""


class StudyRequest(NamedTuple):
    """A study that measures the cases of another experiment."""

    study: Study[Any]
    cases: tuple[Case, ...]
    """Those that it may measure, the first one before the others."""
    strict: bool
    """Whether an answer that can't be told is to be seen in the exit code."""


ReadWords = Callable[[Sequence[str], Iterable[Option], str], dict[str, Any]]
"""Reads words as options, and returns what they give, by name, as it was typed. Raises UsageError, which says
where they stand: the last argument."""


class Opening(Protocol[B_co]):
    """Where, and by which command, a study is carried out."""

    @property
    def kept_folder(self) -> Path | None:
        """Where the databases stay; None when they do not, or nothing was opened yet."""

    @property
    def stayed(self) -> tuple[Path, ...]:
        """Files that should not have stayed: they could not be removed."""

    def opened(self, observer: Observer) -> AbstractContextManager[B_co]:
        """Return what opens a bench: it is closed, and its files are removed, at the end of `with`."""


class LookingOn(NamedTuple):
    """A study that looks at what others do."""

    study: Study[Any]
    opens: Callable[[tuple[str, ...]], Opening[Any]]
    """Where it is carried out, by a command of these words."""
    plain: bool
    """Whether each moment is shown as a line also where a page could be drawn."""


# What a study keeps of an exception that ends a measurement.


def as_failure(problem: Exception, driver: str) -> SqlstressError:
    """Return any exception that came while a driver was in use, as one of ours that says what happened."""
    if isinstance(problem, SqlstressError):
        return problem
    target = target_of(driver)
    known = isinstance(problem, OSError | MemoryError) or target.foresees(problem)
    hint = "" if known else f" (unexpected: please report it, with Python {sys.version.split()[0]})"
    return EnvironmentFailure(f"{target.explain(driver, problem)}{hint}")


def kept_reason(problem: Exception, driver: str, *, nothing_yet: bool) -> str:
    """Return what a study keeps in its report of a problem that ends a measurement.

    Raises it where nothing has been measured yet that it could be kept with, and Interrupted always.
    """
    if isinstance(problem, Interrupted):
        raise problem
    failure = as_failure(problem, driver)
    if nothing_yet:
        raise failure from problem
    return str(failure)
