"""What is said on the terminal, also when nobody reads it any more."""

from __future__ import annotations

import click

from sqlstress.errors import EnvironmentFailure


def say(text: str, end: str = "\n") -> None:
    """Print on standard output. A reader that has had enough (`| head`) is no error.

    Raises EnvironmentFailure when the text can't be written, such as into a file on a full disk.
    """
    try:
        click.echo(text + end, nl=False)
    except BrokenPipeError:
        pass
    except OSError as error:
        raise EnvironmentFailure(f"cannot write to the standard output: {error.strerror}.") from error


def complain(text: str) -> None:
    """Print on standard error; there is nobody to tell if that can't be done."""
    try:
        click.echo(text, err=True)
    except OSError:
        pass
