"""Runs the command line and turns every error into a line or two and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from sqlstress.cli.group import cli
from sqlstress.errors import Interrupted, SqlstressError

UNEXPECTED = 4


def run(arguments: Sequence[str]) -> int:
    """Run a command; never raises, never shows a traceback."""
    try:
        code = cli.main(list(arguments), prog_name="sqlstress", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SqlstressError as error:
        return _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _complain("stopped", Interrupted.exit_code)
    except BrokenPipeError:
        # Whoever read our output has enough; without this Python complains again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _complain(
            f"sqlstress met an error that it did not expect ({type(error).__name__}: {error}). "
            "What was measured before it is in the report, if you asked for one; please report it.",
            UNEXPECTED,
        )


def _complain(text: str, code: int) -> int:
    click.echo(f"Error: {text}", err=True)
    return code
