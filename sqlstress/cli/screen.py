"""What is shown while a study looks on: a page that is drawn again, or a line for each moment."""

from __future__ import annotations

import sys
from collections.abc import Callable

from sqlstress.cli.outputs import say
from sqlstress.engine.study import Observer

_UP, _CLEAR = "\033[{lines}A", "\033[J"


class Lines(Observer):
    """Prints a line for each moment, in time for whoever reads a pipe."""

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        """Print the line."""
        say(line())


class Page(Observer):
    """Draws each moment in the place of the last one."""

    def __init__(self) -> None:
        self._drawn = 0

    def moment(self, page: Callable[[], str], line: Callable[[], str]) -> None:
        """Draw the page."""
        text = page()
        say((_UP.format(lines=self._drawn) + _CLEAR if self._drawn else "") + text)
        self._drawn = text.count("\n") + 1


def screen(wanted: bool, plain: bool) -> Observer:
    """Return who shows the moments: on a terminal a page, unless it is to be plain; nobody if not wanted."""
    if not wanted:
        return Observer()
    return Page() if not plain and sys.stdout is not None and sys.stdout.isatty() else Lines()
