"""Options of several commands, as click parameters, and click classes for help and errors."""

from __future__ import annotations

import copy
import difflib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from sqlstress.experiment import commands
from sqlstress.options.option import ONE, REMOVED, REST, Option
from sqlstress.options.parsing import MAX_SUGGESTIONS, join_alternatives, schema_keywords, suggestion
from sqlstress.show.formats import DOCUMENTS, FORMATS, SUFFIXES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from sqlstress.engine.study import B, BenchOpener, ObservationRequest, Study
    from sqlstress.plan import Plan


F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=click.Command)


class _CompletedParameter(click.Parameter):
    """Click parameter made from one of our options, with shell completion of its values."""

    option: Option

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the possible completions of a value; for a list, of the last item."""
        from click.shell_completion import CompletionItem

        option = self.option
        names = schema_keywords(option.parse).get("enum") or ["on", "off"] * (option.metavar == "on|off")
        if not names:
            return _paths(option.metavar, incomplete)
        first_items, separator, last_item = (
            incomplete.rpartition(",") if option.metavar == "LIST" else ("", "", incomplete)
        )
        used = first_items.split(",")
        return [
            CompletionItem(f"{first_items}{separator}{name}")
            for name in map(str, names)
            if name.startswith(last_item.lower()) and name not in used
        ]


_FILE = re.compile(r"FILE|SCRIPT|PYTHON|COMMAND|PLAN|\.json")
"""Pattern of metavars (names of option values in `--help`) that stand for a file."""


def _paths(metavar: str, incomplete: str) -> list[CompletionItem]:
    """Return an item that makes the shell complete a path if `metavar` is FILE, for example."""
    from click.shell_completion import CompletionItem

    kind = "dir" if metavar == "FOLDER" else "file" if _FILE.search(metavar) else None
    return [CompletionItem(incomplete, type=kind)] if kind else []


class HeadedOption(_CompletedParameter, click.Option):
    """Click option made from one of our options, with a heading in `--help`.

    Click leaves its value unparsed: `parse_options` of sqlstress.plan parses it later.
    """

    def __init__(self, option: Option) -> None:
        names = [f"-{option.short}"] * bool(option.short) + [f"--{option.name}", *option.aliases]
        if option.flag:
            super().__init__(names, help=option.help, is_flag=True, default=None)
        else:
            shown = f"  [default: {option.default}]" if option.default not in (None, ()) else ""
            super().__init__(
                names, help=option.help + shown, metavar=option.metavar, multiple=option.multiple
            )
        self.heading, self.option, self._aliases = option.group, option, option.aliases

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        without = copy.copy(self)
        without.opts = [name for name in self.opts if name not in self._aliases]
        return super(HeadedOption, without).get_help_record(ctx)


class HeadedArgument(_CompletedParameter, click.Argument):
    """Click argument made from one of our options that is positional, with one or several words."""

    def __init__(self, option: Option) -> None:
        count = 1 if option.argument == ONE else -1
        super().__init__(
            [option.name], required=False, nargs=count, type=click.UNPROCESSED, metavar=option.metavar
        )
        self.heading, self.text, self.option = option.group, option.help, option

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.metavar or "", self.text


MAIN_HEADING = "Most used"
RUNNING = "Running"
"""Heading in `--help` of options for files and the display."""


class GroupedCommand(click.Command):
    """Command whose `--help` shows the main options first, and other options by heading.

    Unexpected positional words are an error.
    """

    def __init__(self, *args: Any, main: Sequence[str] = (), **known: Any) -> None:
        """`main` has the names, without dashes, of options that `--help` shows first."""
        super().__init__(*args, **known)
        self._main = main

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # click allows extra words here, so that they are rejected below with better advice: the user may have
        # written an option before the name of a command, for example.
        ctx.allow_extra_args = True
        try:
            words = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            # `unsupported` has the reasons why this experiment lacks options of other experiments.
            experiment = commands().get(str(ctx.info_name).rpartition(" ")[2])
            reason = experiment.unsupported.get(error.option_name.lstrip("-")) if experiment else None
            message = (
                f"{error.option_name}: {reason}."
                if reason
                else no_such_option(error.option_name, _suggested_names(ctx))
            )
            raise click.UsageError(message, ctx) from error
        if words and not ctx.resilient_parsing:
            raise click.UsageError(f"unexpected argument {words[0]!r}. {_advise_on_word(words[0], ctx)}", ctx)
        return [] if ctx.resilient_parsing else words

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, params in self.sections(ctx).items():
            with formatter.section(heading):
                formatter.write_dl([record for param in params if (record := param.get_help_record(ctx))])

    def sections(self, ctx: click.Context) -> dict[str, list[click.Parameter]]:
        """Return the parameters for `--help`, by heading, in order."""
        ours = (click.Option, HeadedArgument)
        shown = [
            param for param in self.get_params(ctx) if isinstance(param, ours) and param.get_help_record(ctx)
        ]
        by_name = {f"--{name}": param for name in self._main for param in shown if f"--{name}" in param.opts}
        words = [param for param in shown if isinstance(param, HeadedArgument)]
        first: list[click.Parameter] = [*words, *by_name.values()] if self._main else []
        sections: dict[str, list[click.Parameter]] = {MAIN_HEADING: first} if first else {}
        for param in shown:
            if param not in first:
                heading = param.heading if isinstance(param, HeadedOption | HeadedArgument) else RUNNING
                sections.setdefault(heading, []).append(param)
        return sections


def _suggested_names(ctx: click.Context) -> list[str]:
    """Return the names that a mistyped option of the command in `ctx` may mean.

    If the command line names no command, the options of `sqlstress` itself are included.
    """
    arguments, contexts = ctx.find_root().obj, [ctx]
    if arguments and arguments[0].startswith("-"):
        contexts.append(ctx.find_root())
    return [
        name for context in contexts for param in context.command.get_params(context) for name in param.opts
    ]


def no_such_option(word: str, known: Iterable[str]) -> str:
    """Return the error message for an unknown option, with similar options in `known`."""
    if text := REMOVED.get(word.lstrip("-")):
        return text
    longer = [name for name in known if name.startswith(word)][:MAX_SUGGESTIONS]
    near = (
        f" Did you mean {join_alternatives(longer)}?" if longer else suggestion(word, known, MAX_SUGGESTIONS)
    )
    return f"No such option '{word}'.{near}"


def _advise_on_word(word: str, ctx: click.Context) -> str:
    """Return advice on an unexpected word: write the command first, or leave the word out."""
    group = ctx.parent.command if ctx.parent else None
    commands = group.list_commands(ctx) if isinstance(group, click.Group) else []
    near = difflib.get_close_matches(word, commands, n=1)
    if near:
        return f"Write the command first: sqlstress {near[0]}, then its options."
    named = [param.make_metavar(ctx) for param in ctx.command.params if isinstance(param, click.Argument)]
    return (
        f"{ctx.info_name} takes {f'one {named[0]} and ' if named else ''}options{'' if named else ' only'}."
    )


def with_options(options: Iterable[Option]) -> Callable[[C], C]:
    """Return a decorator that adds our options to a click command, before other parameters."""

    def add(command: C) -> C:
        new_options = list(options)
        command.params[:0] = click_options(new_options)
        command.allow_interspersed_args = not any(option.argument == REST for option in new_options)
        return command

    return add


def click_options(options: Iterable[Option]) -> list[click.Parameter]:
    """Return our options as click parameters."""
    return [HeadedArgument(option) if option.argument else HeadedOption(option) for option in options]


def output_option(what: str, formats: Sequence[str] = tuple(FORMATS)) -> Callable[[Any], Any]:
    """Return a decorator that adds the option -o. `what` begins its help text."""
    suffixes = ", ".join(f".{suffix}" for suffix in SUFFIXES if suffix in formats)
    long_forms = " or ".join(f"{form}:FILE" for form in formats if form not in SUFFIXES)
    more = f". Also {long_forms}" if long_forms else ""
    return click.option(
        "-o",
        "--output",
        "outputs",
        multiple=True,
        metavar="FILE",
        type=click.Path(readable=False),
        help=f"{what}: {suffixes}. FORMAT:FILE takes any name, and FORMAT:- is standard output{more}. "
        "May be repeated.",
    )


details_option = click.option(
    "--details", is_flag=True, help="Print all findings and settings, and what each column means."
)
github_option = click.option(
    "--github", is_flag=True, help="In GitHub Actions, write the step summary and annotations."
)
_RUNNING: dict[str, Callable[[Any], Any]] = {
    "directory": click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(),
        metavar="FOLDER",
        help="Folder for the databases. sqlstress makes a new folder in it.  [default: .]",
    ),
    "keep": click.option("--keep", is_flag=True, help="Keep the databases of each case's last trial."),
    "keep_going": click.option(
        "--keep-going", is_flag=True, help="Go on after wrong data. Default: the first failed check stops."
    ),
    "outputs": output_option("Save the report as it grows"),
    "github": github_option,
    "details": details_option,
    "quiet": click.option("--quiet", is_flag=True, help="Print errors only."),
    "no_progress": click.option("--no-progress", is_flag=True, help="Show no progress bar."),
}
"""Decorators that add options for files and the display, by name of the parameter."""
NO_SWEEP = ("keep", "keep_going")
"""Parameters for sweeps (measurements of all cases) only, which `ab` and `limit` lack."""


def run_options(*without: str, saves: str = "") -> Callable[[F], F]:
    """Return a decorator that adds the options for files and the display, except `without`.

    `saves` is set for a study whose report has no figures per case, such as a crash test. If so, the help
    text of -o begins with `saves`, and lists only the formats that need no such figures.
    """
    options = {name: option for name, option in _RUNNING.items() if name not in without}
    if saves:
        options["outputs"] = output_option(saves, DOCUMENTS)

    def add(function: F) -> F:
        for decorator in reversed(options.values()):
            function = decorator(function)
        return function

    return add


def set_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the unparsed values that the user set, by option name, such as "busy-timeout".

    In `given`, the values of click's parameters, a parameter that the user did not set is None or ().
    """
    return {name.replace("_", "-"): value for name, value in given.items() if value not in (None, ())}


class RunOptions(NamedTuple):
    """Values of the options for files and the display, with methods that run a study."""

    outputs: tuple[str, ...]
    github: bool
    details: bool
    quiet: bool
    no_progress: bool
    directory: Path = Path()
    keep: bool = False
    keep_going: bool = False

    @classmethod
    def pop_from(cls, given: dict[str, Any]) -> RunOptions:
        """Remove the options for files and the display from `given`, and return them."""
        return cls(**{name: given.pop(name) for name in _RUNNING if name in given})

    def measure(
        self,
        study: Study[B],
        opening: BenchOpener[B],
        formats: Collection[str] = FORMATS,
        strict: bool = False,
    ) -> int:
        """Run a study, save and print its report, and return the exit code.

        `opening` makes the study's bench: the objects with which it measures, such as a folder for databases.
        -o accepts only `formats`. With `strict` (option --strict), a study without a definite answer, such as
        an inconclusive A/B test, does not return 0.
        """
        from sqlstress.cli.measure import measure, watcher
        from sqlstress.cli.outputs import Saver

        saver = Saver.of(self.outputs, self.github, self.quiet, self.details, formats)
        watching = watcher(self._shows_progress and sys.stderr is not None and sys.stderr.isatty())
        return measure(study, opening, saver, watching, strict=strict)

    def observe(self, request: ObservationRequest) -> int:
        """Run a study that observes other programs, show their state, and return the exit code."""
        from sqlstress.cli.measure import command_line, measure, moment_observer
        from sqlstress.cli.outputs import Saver

        saver = Saver.of(self.outputs, self.github, self.quiet, self.details, DOCUMENTS)
        shown = moment_observer(self._shows_progress and saver.prints, request.plain)
        return measure(request.study, request.opens(command_line()), saver, shown)

    @property
    def _shows_progress(self) -> bool:
        return not (self.quiet or self.no_progress)

    def measure_plan(self, plan: Plan) -> int:
        # Imported only if the options are valid, so that errors in options are reported at once.
        from sqlstress.cli.measure import command_line
        from sqlstress.studies.sweep import study_of_plan

        # Some formats need figures per case. A study such as a crash test has no such figures.
        formats = DOCUMENTS if plan.experiment and plan.experiment.study else FORMATS
        study, session = study_of_plan(plan, self.directory, self.keep, command_line(), self.keep_going)
        return self.measure(study, session, formats)
