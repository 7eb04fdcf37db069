"""Command group `sqlstress`, whose commands are imported when they are called, and error handling.

Without a command, the default experiment runs. An experiment is a kind of load, such as kv or sql.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

import click

from sqlstress.analysis.wording import listing
from sqlstress.cli.common_options import (
    NO_SWEEP,
    GroupedCommand,
    RunOptions,
    click_options,
    no_such_option,
    run_options,
    set_options,
    with_options,
)
from sqlstress.cli.outputs import print_error
from sqlstress.errors import Interrupted, SqlstressError, UsageError
from sqlstress.experiment import StudySpec, commands, get_experiment, windowed_commands
from sqlstress.options.option import REST, Option
from sqlstress.options.parsing import suggestion
from sqlstress.plan import Plan, from_toml, options_of_command, plan_of
from sqlstress.registry import DEFAULT
from sqlstress.show.blocks import shortened
from sqlstress.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


OTHER_COMMANDS = {
    "ab": ("sqlstress.cli.studies:ab", "Compare two settings, or two Pythons, here: pass or fail."),
    "limit": ("sqlstress.cli.studies:limit", "Find the highest rate that keeps a latency promise."),
    "check": ("sqlstress.cli.studies:check", "Check a saved report against its baseline: pass or fail."),
    "run": ("sqlstress.cli.commands:measure_plan", "Measure the cases of a plan, a TOML file."),
    "compare": ("sqlstress.cli.reports:compare", "Compare saved reports side by side."),
    "fleet": ("sqlstress.cli.fleet_command:fleet", "Measure a plan on each host of a Dask cluster."),
    "report": ("sqlstress.cli.reports:report", "Show saved reports again, in any format."),
    "doctor": ("sqlstress.cli.doctor:doctor", "Examine this machine, its file system and its SQLite build."),
    "why": ("sqlstress.cli.why:explain_code", "Name the causes of an SQLite error, and their cures."),
    "schema": ("sqlstress.cli.reports:schema", "Print the JSON Schema of the reports."),
}
"""Commands that are not experiments, by name: import string, and line of `sqlstress --help`."""


def summaries() -> dict[str, str]:
    """Return the line of `sqlstress --help` on each command, by name of the command."""
    lines = {name: experiment.command.summary for name, experiment in commands().items()}
    return {**lines, **{name: text for name, (_, text) in OTHER_COMMANDS.items()}}


def _suggest_command(word: str) -> str:
    """Return " Did you mean sqlstress run plan.toml?" if a command takes the file `word`, else ""."""
    command_of_suffix = {".toml": "run"}
    command_of_suffix |= {
        suffix: name for name, experiment in commands().items() for suffix in experiment.command.takes
    }
    suffix = Path(word).suffix
    return (
        f" Did you mean sqlstress {command_of_suffix[suffix]} {word}?" if suffix in command_of_suffix else ""
    )


class LazyGroup(click.Group):
    """Command group that imports the module of a command only when the user calls this command.

    If the command line names no command, the command of the default experiment (kv) runs.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # During shell completion, `args` lacks the word at the cursor. That word may be a command, so empty
        # `args` do not mean that there is no command, and the default command is not added.
        no_command = not args and not ctx.resilient_parsing
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        if no_command or (args and args[0].startswith("-") and args[0] not in ("--help", "-h", "--version")):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(summaries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in OTHER_COMMANDS:
            return cast(click.Command, resolve_name(OTHER_COMMANDS[cmd_name][0]))
        if cmd_name not in commands():
            return None
        return _measuring_command(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        commands_by_name = summaries()
        if args and args[0] not in commands_by_name and not ctx.resilient_parsing:
            near = _suggest_command(args[0]) or suggestion(args[0], commands_by_name)
            every = f" The commands are {', '.join(commands_by_name)}; see sqlstress --help."
            raise click.UsageError(f"no such command: {args[0]!r}.{near or every}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):  # without a command, options are those of the default command
            default = self.get_command(ctx, DEFAULT)
            assert default
            with click.Context(default, ctx, DEFAULT, resilient_parsing=True) as context:
                items = default.shell_complete(context, incomplete)
            items += click.Command.shell_complete(self, ctx, incomplete)
            return [*{item.value: item for item in items}.values()]
        return [
            CompletionItem(name, help=text)
            for name, text in summaries().items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*summaries().items()])
        with formatter.section(f"Main options of {DEFAULT} (see all: sqlstress {DEFAULT} --help)"):
            rows = []
            for option in main_options():
                short = f"-{option.short}, " if option.short else ""
                value = "" if option.flag else f" {option.metavar}"
                rows.append((f"{short}--{option.name}{value}", option.help))
            rows.append(("--dir FOLDER", "Folder for the databases. The default is the current folder."))
            saves = "Save the report: .json, .csv, .txt, .md, .html, .xml. May be repeated."
            rows.append(("-o, --output FILE", saves))
            formatter.write_dl(rows)


def main_options() -> list[Option]:
    """Return the main options of the default command, for `sqlstress --help`."""
    default = get_experiment(DEFAULT)
    options = {option.name: option for option in default.options}
    return [options[name] for name in default.command.main_options if name in options]


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=False,
    epilog="Example: sqlstress --concurrency 1-8 --buckets 20",
)
@click.version_option(__version__, message="sqlstress %(version)s")
def cli() -> None:
    """Stress SQLite with concurrent processes: measure throughput, latency and lost data.

    Without a command, kv runs.
    """


def _measuring_command(name: str) -> click.Command:
    experiment = commands()[name]
    study = experiment.study
    if study is None:
        add_running = run_options()
    elif study.observes_only:
        add_running = run_options("directory", *NO_SWEEP, saves="Save the report every second")
    elif study.reads_options:
        add_running = run_options(*NO_SWEEP)
    else:
        add_running = run_options("keep_going", saves="Save the report every few rounds")

    @with_options(options_of_command(name))
    @click.command(
        name,
        cls=GroupedCommand,
        main=experiment.command.main_options,
        help=experiment.command.help,
        epilog=f"Example: {experiment.command.example}",
    )
    @add_running
    def measure(**values: Any) -> int:
        running = RunOptions.pop_from(values)
        if study and study.reads_options:
            return _run_study(study, running, values)
        return running.measure_plan(plan_of(set_options(values), name))

    return measure


def _run_study(study: StudySpec, running: RunOptions, values: dict[str, Any]) -> int:
    """Run a study that parses its options, `values`, itself. Return the exit code."""
    # Imported only when needed, so that errors in options are reported at once.
    from sqlstress.cli.measure import command_line
    from sqlstress.engine.session import MeasuringSession

    request = study.parse_request(set_options(values), read_options)
    if study.observes_only:
        return running.observe(request)
    session = MeasuringSession(request.cases, running.directory, False, command_line())
    return running.measure(request.study, session, strict=request.strict)


@click.command(epilog="Example: sqlstress run examples/durability.toml -o report.json")
@click.argument("plan", type=click.Path(path_type=Path))
@run_options()
def measure_plan(plan: Path, **given: Any) -> int:
    """Measure the cases of a plan: a TOML file with a [[case]] for each. Its keys are names of options.

    Every case names its workload. Options at the top of the file are defaults for all cases.
    """
    return RunOptions.pop_from(given).measure_plan(Plan(from_toml(plan)))


# Commands such as `ab` and `limit` measure the default experiment, or the experiment named in the arguments:
# `sqlstress limit sql a.sql`. The name may come before or between the options.


Made = Callable[[str], click.Command]
"""Function from the name of an experiment to a command, such as `limit`, that measures it."""


class ExperimentCommand(GroupedCommand):
    """Command for the default experiment. Its arguments may name another: `limit sql a.sql`.

    If they do, the variant of the command for the named experiment runs instead.
    """

    def __init__(self, *args: Any, made: Made, **known: Any) -> None:
        super().__init__(*args, **known)
        self._made = made

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        name, words = named_experiment(args, self._made)
        if name == DEFAULT:
            return super().make_context(info_name, words, parent, **extra)
        return self._made(name).make_context(f"{info_name} {name}", words, parent, **extra)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        named = [CompletionItem(name) for name in windowed_commands() if name.startswith(incomplete)]
        return named + super().shell_complete(ctx, incomplete)


def experiment_command(
    experiment: str, made: Made, **settings: Any
) -> Callable[[Callable[..., int]], click.Command]:
    """Return click's decorator for a command, such as `limit`, that measures `experiment`.

    The command of the default experiment also looks for the name of another experiment among its arguments,
    as in `sqlstress limit sql a.sql`. If it finds a name, it runs the command `made(name)` instead.
    """
    if experiment == DEFAULT:
        return click.command(cls=ExperimentCommand, made=made, **settings)
    return click.command(cls=GroupedCommand, **settings)


def other_experiments() -> str:
    """Return the experiments besides kv that `ab` and `limit` can measure: "sql, app or exec"."""
    return listing([name for name in windowed_commands() if name != DEFAULT], "or")


def named_experiment(words: Sequence[str], made: Made) -> tuple[str, list[str]]:
    """Return the experiment named in `words` (the default if none is), and `words` without the name.

    The options of the commands that `made` returns show which words are values of options: in `--target sql`,
    "sql" is not the name of an experiment.
    """
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] != "--":
        index += 1 if _is_complete(words[index], made) else 2
    if index < len(words) and words[index] in windowed_commands():
        return words[index], [*words[:index], *words[index + 1 :]]
    return DEFAULT, [*words]


def _is_complete(word: str, made: Made) -> bool:
    """Return whether the option `word` is a flag or contains its value, so that no value follows."""
    if "=" in word if word.startswith("--") else len(word) > 2:
        return True
    params = [param for name in windowed_commands() for param in made(name).params]
    flags = [param.opts for param in params if isinstance(param, click.Option) and param.is_flag]
    return word in {"-h", "--help"}.union(*flags)


def short_names(files: Sequence[Path]) -> list[str]:
    """Return short, distinct names of files: without suffix, with folders only if needed."""
    paths = [file.absolute() for file in files]
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.with_suffix("").parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [path.name for path in paths]


def read_options(words: Sequence[str], options: Iterable[Option], where: str) -> dict[str, Any]:
    """Return the unparsed values of the options in `words`, by option name. Raises UsageError.

    `where` is the option whose value the words are, such as --a. Error messages begin with `where`.
    """
    expected = list(options)
    command = click.Command(where, params=click_options(expected), add_help_option=False)
    command.allow_interspersed_args = not any(option.argument == REST for option in expected)
    try:
        context = command.make_context(where, list(words))
    except click.NoSuchOption as error:
        names = [name for param in command.params for name in param.opts]
        message = no_such_option(error.option_name, names)
        raise UsageError(f"{where}: {message} Give options of the load.") from error
    except click.UsageError as error:
        message = error.format_message().rstrip(".?")
        raise UsageError(f"{where}: {message}. Give options of the load.") from error
    return set_options(context.params)


UNEXPECTED = 4
"""Exit code after an exception that is neither a SqlstressError nor from click."""
LONGEST = 400
"""Maximum length of an error message, in characters."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return the exit code. Never raises, never prints a traceback."""
    try:
        code = cli.main(list(arguments), prog_name="sqlstress", standalone_mode=False, obj=tuple(arguments))
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        read_on = f"\nSee {context.command_path} --help." if context else ""
        return _report_error(error.format_message(), error.exit_code, read_on)
    except SqlstressError as error:
        return _report_error(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _report_error("stopped.", Interrupted.exit_code)
    except SystemExit:
        return 0  # click raises SystemExit if the program that reads our help closed the pipe
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return _report_error(
                f"cannot write: {error.strerror}. Make room, also where the output goes.", UNEXPECTED
            )
        return _report_error(
            f"sqlstress met an error that it did not expect ({type(error).__name__}: {error}). "
            "What was measured before it is in the report, if you asked for one; please report it.",
            UNEXPECTED,
        )


def _report_error(text: str, code: int, read_on: str = "") -> int:
    print_error(f"Error: {shortened(text, LONGEST)}{read_on}")
    return code
