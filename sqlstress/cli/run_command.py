"""Runs the command line and turns every error into a line or two and an exit code."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import click

from sqlstress.cli.commands import cli
from sqlstress.cli.outputs import complain
from sqlstress.errors import Interrupted, SqlstressError
from sqlstress.show.blocks import shortened

UNEXPECTED = 4
LONGEST = 400
"""Characters of a line of complaint, whatever was given."""


def run(arguments: Sequence[str]) -> int:
    """Run a command; never raises, never shows a traceback."""
    try:
        code = cli.main(list(arguments), prog_name="sqlstress", standalone_mode=False, obj=tuple(arguments))
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        read_on = f"\nSee {context.command_path} --help." if context else ""
        return _complain(error.format_message(), error.exit_code, read_on)
    except SqlstressError as error:
        return _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _complain("stopped.", Interrupted.exit_code)
    except SystemExit:
        return 0  # click's way out when the reader of its help has had enough
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return _complain(
                f"cannot write: {error.strerror}. Make room, also where the output goes.", UNEXPECTED
            )
        return _complain(
            f"sqlstress met an error that it did not expect ({type(error).__name__}: {error}). "
            "What was measured before it is in the report, if you asked for one; please report it.",
            UNEXPECTED,
        )


def _complain(text: str, code: int, read_on: str = "") -> int:
    """Complain in a line: what was given, such as a name, may hold line breaks and escape sequences."""
    complain(f"Error: {shortened(text, LONGEST)}{read_on}")
    return code
