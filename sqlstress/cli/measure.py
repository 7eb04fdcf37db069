"""What all commands that measure have in common: carry a study out under a progress bar on stderr, save and
show it, and the exit code.
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

from sqlstress.cli.outputs import Saver, complain, say
from sqlstress.engine.study import B, Observer, Opening, Progress, Study
from sqlstress.options.dsn import redacted
from sqlstress.show.endings import FAILURE, FINE, endings, exit_code
from sqlstress.studies.sweep import carry_out


def command_line() -> tuple[str, ...]:
    """Return the words of the command that is carried out, without what may not be saved."""
    return redacted(("sqlstress", *(click.get_current_context().obj or ())))


def measure(
    study: Study[B],
    opening: Opening[B],
    saver: Saver,
    watching: AbstractContextManager[Observer],
    *,
    strict: bool = False,
) -> int:
    """Carry a study out, and say what is not as it should be; return the exit code."""
    with saver.interruption_explained():
        with watching as observer:
            report = carry_out(study, opening, saver.after_step, observer)
        saver.at_end(report, opening.kept_folder)
    if stayed := opening.stayed:
        more = f" and {len(stayed) - 1:,} more" if len(stayed) > 1 else ""
        complain(
            f"Warning: {stayed[0]}{more} could not be removed: another program has it open. "
            "The next measurement in that folder removes it."
        )
    found = endings(report, strict=strict, saved=saver.saved())
    for ending in found:
        if said := ending.text or ("" if saver.prints else ending.reason):
            complain(said)
    if saver.problem:
        complain(f"Error: {saver.problem}")
    return exit_code(found) or (FAILURE if saver.problem else FINE)


REDRAW_S = 0.05
"""At least so long between two drawings: what comes ten times a second is drawn each time."""
LAYOUT = "{desc} |{bar}| {unit}"


def clock_text(seconds: float) -> str:
    """Write a time that is left as a clock does: 0:09, 1:30, 2:05:00."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Bar(Observer):
    """An Observer that draws a tqdm bar."""

    def __init__(self, bar: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock, self._drawn = bar, clock, -math.inf

    def progress(self, progress: Progress) -> None:
        """Draw how far a study has come."""
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
            pass  # the terminal is gone; the measurement need not be


@contextmanager
def watcher(visible: bool) -> Iterator[Observer]:
    """Yield an Observer: a bar that is removed at the end, or nobody."""
    if not visible:
        yield Observer()
        return
    from tqdm import tqdm

    # Its own lock would be one of multiprocessing's, which a killed run leaves to be complained of.
    tqdm.set_lock(RLock())
    with tqdm(
        desc="examining this machine", total=1.0, unit="", leave=False, bar_format=LAYOUT, dynamic_ncols=True
    ) as bar:
        yield Bar(bar)


# What a watch shows meanwhile.


class Lines(Observer):
    """Prints a line for each moment, in time for whoever reads a pipe."""

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        """Print the line."""
        say(line())


class Page(Observer):
    """Draws each moment in the place of the last one."""

    def __init__(self) -> None:
        self._clear = ""
        """What takes away the page that is drawn."""

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        """Draw the page."""
        text = page()
        say(self._clear + text)
        self._clear = f"\033[{text.count(chr(10)) + 1}A\033[J"

    def remove(self) -> None:
        """Take the page away: the report follows."""
        say(self._clear, end="")


@contextmanager
def screen(wanted: bool, plain: bool) -> Iterator[Observer]:
    """Yield who shows the moments: on a terminal a page, unless it is to be plain; nobody if not wanted."""
    if not wanted:
        yield Observer()
    elif plain or sys.stdout is None or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        yield Lines()
    else:
        page = Page()
        try:
            yield page
        finally:
            page.remove()
