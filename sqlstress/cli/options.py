"""Options of several commands, as click knows them."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sqlstress.options import OPTIONS, Option

F = TypeVar("F", bound=Callable[..., Any])


class GroupedCommand(click.Command):
    """Takes options only, and shows them under the headings that they belong to."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A command's name behind an option comes here: what begins with an option is the default command.
        ctx.allow_extra_args = True
        words = super().parse_args(ctx, args)
        if words:
            raise click.UsageError(f"{words[0]!r} does not belong here. {_place(words[0], ctx)}", ctx)
        return words

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        headings = {option.name: option.group for option in OPTIONS}
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record:
                heading = headings.get((param.name or "").replace("_", "-"), "Running")
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _place(word: str, ctx: click.Context) -> str:
    """Say where a stray word would be right."""
    group = ctx.parent.command if ctx.parent else None
    commands = group.list_commands(ctx) if isinstance(group, click.Group) else []
    near = difflib.get_close_matches(word, commands, n=1)
    if near:
        return f"A command comes first: sqlstress {near[0]} and then its options."
    return f"{ctx.info_name} takes options only."


def case_options(function: F) -> F:
    """Add every option of a case. Their values stay as they were typed: the plan reads them."""
    for option in reversed(OPTIONS):
        function = click.option(*_names(option), **_attributes(option))(function)
    return function


def _names(option: Option) -> list[str]:
    return [f"-{option.short}"] * bool(option.short) + [f"--{option.name}"]


def _attributes(option: Option) -> dict[str, Any]:
    shown = f"  [default: {option.default}]" if option.default not in (None, ()) else ""
    return {"help": option.help + shown, "metavar": option.metavar, "multiple": option.multiple}


def run_options(function: F) -> F:
    """Add the options that say where files go and what is shown."""
    folder = click.Path(file_okay=False, path_type=Path)
    for decorator in (
        click.option("--no-progress", is_flag=True, help="Show no progress bar."),
        click.option("--quiet", is_flag=True, help="Print nothing but errors."),
        click.option(
            "-o",
            "--output",
            "outputs",
            multiple=True,
            metavar="FILE",
            help="Save the report, after every case: .json, .csv, .md, or FORMAT:FILE; may be repeated.",
        ),
        click.option("--keep", is_flag=True, help="Keep the databases (of each layout the last ones)."),
        click.option(
            "--dir",
            "directory",
            type=folder,
            default=Path(),
            metavar="FOLDER",
            help="Where the databases go: a fresh folder of ours below it.  [default: .]",
        ),
    ):
        function = decorator(function)
    return function
