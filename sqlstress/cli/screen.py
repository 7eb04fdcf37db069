"""What is shown while a study looks on: a page that is drawn again, or a line for each moment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlstress.cli.outputs import say
from sqlstress.engine.study import Observer


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
    elif plain or sys.stdout is None or not sys.stdout.isatty():
        yield Lines()
    else:
        page = Page()
        try:
            yield page
        finally:
            page.remove()
