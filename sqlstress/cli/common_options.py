"""Options of several commands, as click knows them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sqlstress.experiment import Experiment, commands
from sqlstress.options.option import ONE, REST, Option
from sqlstress.show.formats import DOCUMENTS, FORMATS, SUFFIXES

if TYPE_CHECKING:
    from sqlstress.plan import Planned


F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=click.Command)


class HeadedOption(click.Option):
    """An option of ours, which `--help` shows under a heading. Its value stays as it was typed."""

    def __init__(self, option: Option) -> None:
        super().__init__(_names(option), **_attributes(option))
        self.heading = option.group


class HeadedArgument(click.Argument):
    """What stands without a name. Of all the rest nothing is an option of ours from its first word on."""

    def __init__(self, option: Option) -> None:
        count = 1 if option.argument == ONE else -1
        super().__init__(
            [option.name], required=False, nargs=count, type=click.UNPROCESSED, metavar=option.metavar
        )
        self.heading, self.text = option.group, option.help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.metavar or "", self.text


class GroupedCommand(click.Command):
    """Shows its options under the headings that they belong to; takes nothing else but a HeadedArgument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A command's name behind an option comes here: what begins with an option is the default command.
        ctx.allow_extra_args = True
        try:
            words = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise _why(error, ctx) from error
        if words:
            raise click.UsageError(f"{words[0]!r} does not belong here. {_place(words[0], ctx)}", ctx)
        return words

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record:
                heading = param.heading if isinstance(param, HeadedOption | HeadedArgument) else "Running"
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _why(error: click.NoSuchOption, ctx: click.Context) -> click.UsageError:
    """Say why an experiment has not got an option of another one, where it says so itself."""
    experiment = commands().get(str(ctx.info_name).rpartition(" ")[2])
    why = experiment.without.get(error.option_name.lstrip("-")) if experiment else None
    return click.UsageError(f"{error.option_name}: {why}.", ctx) if why else error


def _place(word: str, ctx: click.Context) -> str:
    """Say where a stray word would be right."""
    group = ctx.parent.command if ctx.parent else None
    commands = group.list_commands(ctx) if isinstance(group, click.Group) else []
    near = difflib.get_close_matches(word, commands, n=1)
    if near:
        return f"A command comes first: sqlstress {near[0]} and then its options."
    named = [param.make_metavar(ctx) for param in ctx.command.params if isinstance(param, click.Argument)]
    return (
        f"{ctx.info_name} takes {f'one {named[0]} and ' if named else ''}options{'' if named else ' only'}."
    )


def with_options(options: Iterable[Option]) -> Callable[[C], C]:
    """Put options before those that a command has already."""

    def add(command: C) -> C:
        own = list(options)
        command.params[:0] = click_options(own)
        command.allow_interspersed_args = not any(one.argument == REST for one in own)
        return command

    return add


def click_options(options: Iterable[Option]) -> list[click.Parameter]:
    """Return options as click has them."""
    return [HeadedArgument(option) if option.argument else HeadedOption(option) for option in options]


def _names(option: Option) -> list[str]:
    return [f"-{option.short}"] * bool(option.short) + [f"--{option.name}"]


def _attributes(option: Option) -> dict[str, Any]:
    if option.flag:
        return {"help": option.help, "is_flag": True, "default": None}
    shown = f"  [default: {option.default}]" if option.default not in (None, ()) else ""
    return {"help": option.help + shown, "metavar": option.metavar, "multiple": option.multiple}


def output_option(what: str, formats: Sequence[str] = tuple(FORMATS)) -> Callable[[Any], Any]:
    """Return -o; `what` is the beginning of its help."""
    suffixes = ", ".join(f".{suffix}" for suffix in SUFFIXES if suffix in formats)
    others = " or ".join(f"{form}:FILE" for form in formats if form not in SUFFIXES)
    more = f"; {others}" if others else ""
    return click.option(
        "-o",
        "--output",
        "outputs",
        multiple=True,
        metavar="FILE",
        help=f"{what}: {suffixes}, FORMAT:FILE for any name, FORMAT:- for standard output{more}; "
        "may be repeated.",
    )


github_option = click.option(
    "--github", is_flag=True, help="In GitHub Actions: write the step's summary, and annotations."
)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_RUNNING: dict[str, Callable[[Any], Any]] = {
    "directory": click.option(
        "--dir",
        "directory",
        type=_FOLDER,
        default=Path(),
        metavar="FOLDER",
        help="Where the databases go: a fresh folder of ours below it.  [default: .]",
    ),
    "keep": click.option("--keep", is_flag=True, help="Keep the databases (of each layout the last ones)."),
    "outputs": output_option("Save the report, after every case"),
    "github": github_option,
    "quiet": click.option("--quiet", is_flag=True, help="Print nothing but errors."),
    "no_progress": click.option("--no-progress", is_flag=True, help="Show no progress bar."),
}
"""The options that say where files go and what is shown, by the names of their parameters."""


def run_options(function: F) -> F:
    """Add the options that say where files go and what is shown."""
    for decorator in reversed(_RUNNING.values()):
        function = decorator(function)
    return function


def slice_options(function: F) -> F:
    """Add the same options for a command whose databases nobody wants to keep: there are too many."""
    for name, decorator in reversed(_RUNNING.items()):
        function = function if name == "keep" else decorator(function)
    return function


def result_options(function: F) -> F:
    """Add the same options for a command that finds results, and measures no cases."""
    own = {**_RUNNING, "outputs": output_option("Save the report, every few rounds", DOCUMENTS)}
    for decorator in reversed(own.values()):
        function = decorator(function)
    return function


def formats_of(experiment: Experiment | None) -> Collection[str]:
    """Return the formats in which what is found can be saved: without cases there are no figures of cases."""
    return DOCUMENTS if experiment and experiment.study else FORMATS


def typed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, by name, as they were typed."""
    return {name.replace("_", "-"): value for name, value in given.items() if value not in (None, ())}


def run_experiment(command: str, given: Mapping[str, Any]) -> int:
    """Plan and measure what a command's options ask for; return the exit code."""
    from sqlstress.plan import planned

    running = {name: value for name, value in given.items() if name in _RUNNING}
    asked = {name: value for name, value in given.items() if name not in _RUNNING}
    return run_plan(planned(typed(asked), command), **running)


def run_plan(
    plan: Planned,
    directory: Path,
    keep: bool,
    outputs: tuple[str, ...],
    github: bool,
    quiet: bool,
    no_progress: bool,
) -> int:
    """Measure what is planned as the options of `run_options` say; return the exit code."""
    # Imported when there is something to measure: what is wrong is told at once.
    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.outputs import Saver
    from sqlstress.studies.sweep import study_of_plan

    saver = Saver.of(outputs, github, quiet, formats_of(plan.experiment))
    study, session = study_of_plan(plan, directory, keep, command_line())
    return measure(study, session, saver, progress=not (quiet or no_progress))
