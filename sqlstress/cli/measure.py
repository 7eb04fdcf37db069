"""Run of a study by a command: progress bar on standard error, saved and printed report, exit code.

A study decides which cases are measured, and in which order. An observer receives its progress.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any

import click

from sqlstress.cli.outputs import Saver, print_error, print_text
from sqlstress.engine.study import B, BenchOpener, Observer, Progress, Study
from sqlstress.options.dsn import redact_words
from sqlstress.show.endings import FAILURE, FINE, endings, exit_code
from sqlstress.studies.sweep import run_study


def command_line() -> tuple[str, ...]:
    """Return the words of the current command line, without passwords."""
    return redact_words(("sqlstress", *(click.get_current_context().obj or ())))


def measure(
    study: Study[B],
    opening: BenchOpener[B],
    saver: Saver,
    watching: AbstractContextManager[Observer],
    *,
    strict: bool = False,
) -> int:
    """Run a study, print problems on standard error and return the exit code.

    `opening` makes the study's bench: the objects with which it measures, such as a folder for databases.
    `watching` yields the observer that shows the progress. With `strict`, a study without a definite answer,
    such as an inconclusive A/B test, is a problem, too.
    """
    with saver.interruption_explained():
        with watching as observer:
            report = run_study(study, opening, saver.after_step, observer)
        saver.save_final(report, opening.kept_folder)
    if stayed := opening.stayed:
        more = f" and {len(stayed) - 1:,} more" if len(stayed) > 1 else ""
        print_error(
            f"Warning: {stayed[0]}{more} could not be removed: another program has it open. "
            "The next measurement in that folder removes it."
        )
    run_endings = endings(report, strict=strict, saved=saver.saved())
    for ending in run_endings:
        if message := ending.text or ("" if saver.prints else ending.reason):
            print_error(message)
    if saver.problem:
        print_error(f"Error: {saver.problem}")
    return exit_code(run_endings) or (FAILURE if saver.problem else FINE)


REDRAW_S = 0.05
"""Minimum time between two drawings of the progress bar, in seconds."""
LAYOUT = "{desc} |{bar}| {unit}"
"""Layout of the progress bar, for tqdm."""


def clock_text(seconds: float) -> str:
    """Return a duration such as "0:09", "1:30" or "2:05:00"."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Bar(Observer):
    """Observer that draws a progress bar with tqdm."""

    def __init__(self, bar: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock, self._drawn = bar, clock, -math.inf

    def progress(self, progress: Progress) -> None:
        """Draw the progress, at most once per REDRAW_S seconds."""
        now = self._clock()
        if now - self._drawn < REDRAW_S and progress.done < progress.total:
            return
        self._drawn = now
        self._bar.total, self._bar.n = progress.total, progress.done
        self._bar.set_description_str(progress.label.ljust(progress.label_width), refresh=False)
        note = progress.note.rjust(progress.note_width)
        self._bar.unit = f"{note}  {clock_text(progress.left_s):>5} left"
        try:
            self._bar.refresh()
        except OSError:
            pass  # without the terminal, the measurement can continue


@contextmanager
def watcher(visible: bool) -> Iterator[Observer]:
    """Yield an observer, which draws a progress bar if `visible`."""
    if not visible:
        yield Observer()
        return
    from tqdm import tqdm

    # By default, tqdm makes a lock with the module multiprocessing. After a killed run, that module would
    # print a warning about the lock.
    tqdm.set_lock(RLock())
    with tqdm(
        desc="examining this machine", total=1.0, unit="", leave=False, bar_format=LAYOUT, dynamic_ncols=True
    ) as bar:
        yield Bar(bar)


# Display of `sqlstress watch`, which observes other programs. The method `moment` of an observer receives the
# present state of these programs as two functions: `page` returns several lines of text, `line` a single one.


class LinePrinter(Observer):
    """Observer that prints the state of a watch (`sqlstress watch`) as lines, for pipes and `--plain`."""

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        print_text(line())


class PagePrinter(Observer):
    """Observer that draws the state of a watch on a terminal, over the previous state."""

    def __init__(self) -> None:
        self._clear = ""
        """Escape sequence that removes the drawn page; empty before the first page."""

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        text = page()
        print_text(self._clear + text)
        self._clear = f"\033[{text.count(chr(10)) + 1}A\033[J"

    def remove(self) -> None:
        """Remove the drawn page, because the report follows."""
        print_text(self._clear, end="")


@contextmanager
def moment_observer(wanted: bool, plain: bool) -> Iterator[Observer]:
    """Yield the observer that shows the state of a watch: which programs use the database.

    The state is drawn over the previous state, or printed as a line if `plain` is set or there is no
    terminal. If `wanted` is false, nothing is shown.
    """
    if not wanted:
        yield Observer()
    elif plain or sys.stdout is None or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        yield LinePrinter()
    else:
        page = PagePrinter()
        try:
            yield page
        finally:
            page.remove()
