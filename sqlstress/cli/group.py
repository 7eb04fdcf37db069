"""The group of commands: loaded when they are called; that of the first experiment needs no name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import click

from sqlstress import __version__
from sqlstress.analysis.wording import listing
from sqlstress.cli.common_options import GroupedCommand, click_options, typed
from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT, commands, face, with_windows
from sqlstress.options.option import REST, Option
from sqlstress.plan import suggestion
from sqlstress.system.importing import named

OTHERS = {
    "ab": ("sqlstress.cli.studies:ab", "Compare two settings, or two Pythons, here and now: pass or fail."),
    "limit": ("sqlstress.cli.studies:limit", "The highest rate that holds a promise: --p99 10ms."),
    "check": ("sqlstress.cli.studies:check", "A saved report against its baseline: pass or fail."),
    "run": ("sqlstress.cli.measuring:measure_plan", "Measure the cases of a plan in a TOML file."),
    "compare": ("sqlstress.cli.reports:compare", "Set saved reports side by side."),
    "fleet": ("sqlstress.cli.fleet_command:fleet", "One plan on many hosts, or the reports of many hosts."),
    "report": ("sqlstress.cli.reports:report", "Show saved reports again, in any format."),
    "doctor": ("sqlstress.cli.doctor:doctor", "What this machine, file system and SQLite build promise."),
    "schema": ("sqlstress.cli.reports:schema", "Print the JSON Schema of the reports."),
}
"""Commands that measure no experiment: name → (import string, one line for `--help`).

The line is here so that help loads no command.
"""


def summaries() -> dict[str, str]:
    """Return all commands, each in a line."""
    own = {name: experiment.command.summary for name, experiment in commands().items()}
    return {**own, **{name: text for name, (_, text) in OTHERS.items()}}


class LazyGroup(click.Group):
    """Loads a command when it is called; what begins with an option goes to the default command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("--help", "-h", "--version")):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(summaries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in OTHERS:
            return cast(click.Command, named(OTHERS[cmd_name][0]))
        if cmd_name not in commands():
            return None
        from sqlstress.cli.measuring import command

        return command(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        known = summaries()
        if args and args[0] not in known:
            raise click.UsageError(
                f"there is no command {args[0]!r}.{suggestion(args[0], known)} "
                f"The commands are {', '.join(known)}; see sqlstress --help."
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*summaries().items()])
        with formatter.section(f"Main options of {DEFAULT} (all of them: sqlstress {DEFAULT} --help)"):
            rows = [(flag(option), option.help) for option in main_options()]
            rows.append(("--dir FOLDER", "Where the databases go; not the system's temporary folder."))
            rows.append(
                (
                    "-o, --output FILE",
                    "Save the report: .json, .csv, .txt, .md, .html, .xml; may be repeated.",
                )
            )
            formatter.write_dl(rows)


def main_options() -> list[Option]:
    """Return the options that are shown beside the commands: those of the one that needs no name."""
    default = face(DEFAULT)
    known = {option.name: option for option in default.options}
    return [known[name] for name in default.command.main_options]


def flag(option: Option) -> str:
    """Return how an option is written: "-c, --concurrency LIST"."""
    short = f"-{option.short}, " if option.short else ""
    return f"{short}--{option.name} {option.metavar}"


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=False,
    epilog="Example: sqlstress --concurrency 1-8 --buckets 20",
)
@click.version_option(__version__, message="sqlstress %(version)s")
def cli() -> None:
    """Stress SQLite with concurrent processes: how much it holds, at what latency, and what it loses.

    Without a command's name, kv runs.
    """


# Commands that measure the main experiment, or another one that is named: `sqlstress limit sql a.sql`.
#
# The name may stand before all options or among them.


Made = Callable[[str], click.Command]
"""The name of an experiment → the command with its options."""


class OfExperiment(GroupedCommand):
    """The command of the main experiment, which hands over to that of another one where one is named."""

    def __init__(self, *args: Any, made: Made, **known: Any) -> None:
        super().__init__(*args, **known)
        self._made = made

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        name, others = named_experiment(args, self._made)
        if name == DEFAULT:
            return super().make_context(info_name, others, parent, **extra)
        return self._made(name).make_context(f"{info_name} {name}", others, parent, **extra)


def experiment_command(
    experiment: str, made: Made, **said: Any
) -> Callable[[Callable[..., int]], click.Command]:
    """Return what makes the command for an experiment of a function; `said` is what click.command takes."""
    if experiment == DEFAULT:
        return click.command(cls=OfExperiment, made=made, **said)
    return click.command(cls=GroupedCommand, **said)


def others() -> str:
    """Return the names of the other experiments, as part of a sentence."""
    return listing([name for name in with_windows() if name != DEFAULT], "or")


def named_experiment(words: Sequence[str], made: Made) -> tuple[str, list[str]]:
    """Return which experiment is named, and the other words."""
    place = 0
    while place < len(words) and words[place].startswith("-") and words[place] != "--":
        place += 1 if _stands_alone(words[place], made) else 2
    if place < len(words) and words[place] in with_windows():
        return words[place], [*words[:place], *words[place + 1 :]]
    return DEFAULT, [*words]


def _stands_alone(word: str, made: Made) -> bool:
    """Return whether an option has its value in the same word, or takes none."""
    if not word.startswith("--"):
        return len(word) > 2 or word in _flags(made)
    return "=" in word or word in _flags(made)


def _flags(made: Made) -> Collection[str]:
    params = [param for name in with_windows() for param in made(name).params]
    return {"-h", "--help"}.union(
        *(param.opts for param in params if isinstance(param, click.Option) and param.is_flag)
    )


# What reports are called: as their files are.


def short_names(files: Sequence[Path]) -> list[str]:
    """Return the files' names without suffix, and as much of their folders as tells them apart."""
    paths = [file.absolute() for file in files]
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.with_suffix("").parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [path.name for path in paths]


# Options that stand within a word, or behind --: read as those of a command are.


def given_in(words: Sequence[str], options: Iterable[Option], where: str) -> dict[str, Any]:
    """Return the options that words give, by name, as they were typed.

    Raises UsageError that says where they stand.
    """
    known = list(options)
    command = click.Command(where, params=click_options(known), add_help_option=False)
    command.allow_interspersed_args = not any(one.argument == REST for one in known)
    try:
        context = command.make_context(where, list(words))
    except click.UsageError as error:
        said = error.format_message().rstrip(".?")
        raise UsageError(f"{where}: {said}. It takes options of the load.") from error
    return typed(context.params)
