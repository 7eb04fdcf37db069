"""What is said on the terminal, also when nobody reads it any more."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from sqlstress.errors import EnvironmentFailure

Tell = Callable[[str], None]
"""`say`, or `complain` where the standard output is taken by a report."""
_PLAINER = str.maketrans("▁▂▃▄▅▆▇█–µ", "12345678-u")  # noqa: RUF001 - the dash of a missing figure


def say(text: str, end: str = "\n") -> None:
    """Print on standard output, in the characters that it has. A reader that has had enough is no error.

    Raises EnvironmentFailure when the text can't be written, such as into a file on a full disk.
    """
    try:
        _write(text + end)
    except BrokenPipeError:
        pass
    except OSError as error:
        raise EnvironmentFailure(f"cannot write to the standard output: {error.strerror}.") from error


def _write(text: str) -> None:
    try:
        click.echo(text, nl=False)
    except UnicodeEncodeError:
        # An old code page of Windows, say. Bars become the digits of their heights.
        encoding = sys.stdout.encoding
        plainer = text.translate(_PLAINER).encode(encoding, "replace").decode(encoding)
        click.echo(plainer, nl=False)


def complain(text: str) -> None:
    """Print on standard error; there is nobody to tell if that can't be done."""
    try:
        click.echo(text, err=True)
    except OSError:
        pass
