"""The group of commands: loaded when they are called; that of the first experiment needs no name."""

from __future__ import annotations

from typing import Any, cast

import click

from sqlstress import __version__
from sqlstress.experiment import DEFAULT, commands, face
from sqlstress.options.option import Option
from sqlstress.plan import suggestion
from sqlstress.system.importing import named

OTHERS = {
    "ab": ("sqlstress.cli.ab:ab", "Compare two settings, or two Pythons, here and now: pass or fail."),
    "limit": ("sqlstress.cli.limit:limit", "The highest rate that holds a promise: --p99 10ms."),
    "check": ("sqlstress.cli.check:check", "A saved report against its baseline: pass or fail."),
    "run": ("sqlstress.cli.measuring:run", "Measure the cases of a plan in a TOML file."),
    "compare": ("sqlstress.cli.compare:compare", "Set saved reports side by side."),
    "fleet": ("sqlstress.cli.fleet:fleet", "One plan on many hosts, or the reports of many hosts."),
    "report": ("sqlstress.cli.report:report", "Show saved reports again, in any format."),
    "doctor": ("sqlstress.cli.doctor:doctor", "What this machine, file system and SQLite build promise."),
    "schema": ("sqlstress.cli.report:schema", "Print the JSON Schema of the reports."),
}
"""Commands that measure no experiment: name → (import string, one line for `--help`).

The line is here so that help loads no command.
"""


def summaries() -> dict[str, str]:
    """Return all commands, each in a line."""
    own = {name: experiment.summary for name, experiment in commands().items()}
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
    return [known[name] for name in default.main_options]


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
