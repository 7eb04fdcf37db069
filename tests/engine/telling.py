"""The command line with an observer that tells every phase on standard output, for tests that strike then.

Usage: python tests/engine/telling.py ARGUMENTS OF SQLSTRESS
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from sqlstress.engine.study import Observer, Progress


class Teller(Observer):
    """Prints a line for everything it is told."""

    def __init__(self) -> None:
        self._case = ""

    def progress(self, progress: Progress) -> None:
        case = progress.label.strip("[").partition("/")[0]
        if case != self._case:
            click.echo(f"case {case}")
        self._case = case

    def phase(self, name: str) -> None:
        click.echo(name)


@contextmanager
def telling(*_: object) -> Iterator[Teller]:
    """Stand in for the progress bar."""
    yield Teller()


if __name__ == "__main__":
    import sqlstress.cli.measure
    from sqlstress.cli.commands import run
    from tests.brief import make_brief

    make_brief()
    vars(sqlstress.cli.measure)["watcher"] = telling
    sys.exit(run(sys.argv[1:]))
