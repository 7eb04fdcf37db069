"""The group of commands: loaded when they are called, with `kv` as the one that needs no name."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import click

from sqlstress import __version__
from sqlstress.options import by_name
from sqlstress.plan import suggestion

DEFAULT = "kv"
COMMANDS = {
    "kv": ("sqlstress.cli.kv:kv", "Random gets and replaces by N processes (the default)."),
    "methods": (
        "sqlstress.cli.methods:methods",
        "Ways to write and read rows: one by one, bulk, JSON, in SQL.",
    ),
    "keys": ("sqlstress.cli.keys:keys", "Primary keys: integers, UUIDs and ULIDs, in five schemas."),
    "cycles": (
        "sqlstress.cli.cycles:cycles",
        "Insert, delete all, insert again: each cycle's time, by setting.",
    ),
    "ab": ("sqlstress.cli.ab:ab", "Compare two settings, or two Pythons, here and now: pass or fail."),
    "crash": (
        "sqlstress.cli.crash:crash",
        "Kill writers over and over: is every acknowledged transaction there?",
    ),
    "check": ("sqlstress.cli.check:check", "A saved report against its baseline: pass or fail."),
    "run": ("sqlstress.cli.run:run", "Measure the cases of a plan in a TOML file."),
    "compare": ("sqlstress.cli.compare:compare", "Set saved reports side by side."),
    "report": ("sqlstress.cli.report:report", "Show saved reports again, in any format."),
    "doctor": ("sqlstress.cli.doctor:doctor", "What this machine, file system and SQLite build promise."),
    "schema": ("sqlstress.cli.schema:schema", "Print the JSON Schema of the reports."),
}
"""Name → (import string, one line for `--help`): the line is here so that help loads no command."""

MAIN_OPTIONS = ("concurrency", "buckets", "duration", "read-ratio", "synchronous", "busy", "driver", "preset")


class LazyGroup(click.Group):
    """Loads a command when it is called; what begins with an option goes to the default command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("--help", "-h", "--version")):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name][0].split(":")
        return cast(click.Command, getattr(import_module(module), name))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        if args and args[0] not in COMMANDS:
            raise click.UsageError(
                f"there is no command {args[0]!r}.{suggestion(args[0], COMMANDS)} "
                f"The commands are {', '.join(COMMANDS)}; see sqlstress --help."
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
        with formatter.section("Main options of kv (all of them: sqlstress kv --help)"):
            rows = [(flag(name), by_name(DEFAULT)[name].help) for name in MAIN_OPTIONS]
            rows.append(("--dir FOLDER", "Where the databases go; not the system's temporary folder."))
            rows.append(
                ("-o, --output FILE", "Save the report: .json, .csv, .md, .html, .xml; may be repeated.")
            )
            formatter.write_dl(rows)


def flag(name: str) -> str:
    """Return how an option is written: "-c, --concurrency LIST"."""
    option = by_name(DEFAULT)[name]
    short = f"-{option.short}, " if option.short else ""
    return f"{short}--{name} {option.metavar}"


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
