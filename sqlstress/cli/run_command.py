"""Runs the command line and turns every error into a line or two and an exit code."""

from __future__ import annotations

from collections.abc import Sequence

import click

from sqlstress.cli.console import complain
from sqlstress.cli.group import cli
from sqlstress.errors import Interrupted, SqlstressError

UNEXPECTED = 4


def run(arguments: Sequence[str]) -> int:
    """Run a command; never raises, never shows a traceback."""
    try:
        code = cli.main(list(arguments), prog_name="sqlstress", standalone_mode=False, obj=tuple(arguments))
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        return _complain(_wrong_usage(error), error.exit_code)
    except SqlstressError as error:
        return _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _complain("stopped.", Interrupted.exit_code)
    except SystemExit:
        return 0  # click's way out when the reader of its help has had enough
    except Exception as error:
        return _complain(
            f"sqlstress met an error that it did not expect ({type(error).__name__}: {error}). "
            "What was measured before it is in the report, if you asked for one; please report it.",
            UNEXPECTED,
        )


def _wrong_usage(error: click.ClickException) -> str:
    """Return click's sentence, and where to read on, in one line each."""
    context = getattr(error, "ctx", None)
    read_on = f"\nSee {context.command_path} --help." if context else ""
    return f"{error.format_message()}{read_on}"


def _complain(text: str, code: int) -> int:
    complain(f"Error: {text}")
    return code
