"""docs/options.md: what --help prints, with each sentence about an option said once.

Most options belong to several commands. The first command that has an option describes it. A later one names
it, with its own default if that is another, and adds what is different.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import click

from sqlstress.cli.commands import cli, summaries
from sqlstress.cli.common_options import RUNNING

INTRODUCTION = """# Commands and options

Without a command, `kv` runs. In a plan, the options of a case are keys without the dashes:
`read-ratio = 0.9`. Write a value as on the command line, or as a TOML number, boolean or list.

The first command with an option explains it. Later ones name it and say what differs; a heading in italics
stands for all options below it. A default is in parentheses. `sqlstress COMMAND --help` prints everything
about one command. `sql -b` is another spelling of `sql --builtin`."""
FEW = 3
"""Maximum number of missing options for which a group is still named as a whole."""


@dataclass(frozen=True)
class Option:
    """An option, as the reference shows it."""

    heading: str
    flags: str
    default: str
    meaning: str

    @property
    def name(self) -> str:
        """The long name."""
        return next(word for word in self.flags.split() if word.startswith("--"))

    @property
    def line(self) -> str:
        """The option's line in a list."""
        default = f" (`{self.default}`)" if self.default else ""
        return f"- `{self.flags}`{default}: {self.meaning}"


def _context() -> click.Context:
    # Use its settings, because commands keep those of their first context.
    return click.Context(cli, info_name="sqlstress", **cli.context_settings)


def check_command_line(name: str, words: Sequence[str]) -> None:
    """Check that a command of this name exists and accepts these words."""
    context = _context()
    command = cli.get_command(context, name)
    assert command is not None, name
    command.make_context(name, [*words], parent=context)


def reference() -> str:
    """Return the page."""
    context = _context()
    parts = [INTRODUCTION]
    first: dict[str, tuple[str, Option]] = {}
    for name in summaries():
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        parts += [f"## {inner.command_path}", _sentences(" ".join((command.help or "").split()))[0]]
        parts += _options(name, list(_of(command, inner)), first)
        parts.append(f"```sh\n{(command.epilog or '').removeprefix('Example: ')}\n```")
    return "\n\n".join(parts) + "\n"


def _of(command: click.Command, context: click.Context) -> Iterator[Option]:
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if isinstance(param, click.Option) and record and param.name != "help":
            flags, text = record
            meaning, _, extra = text.partition("  [")
            default = re.search(r"default: ([^;\]]+)", extra)
            yield Option(
                getattr(param, "heading", RUNNING), flags, default.group(1) if default else "", meaning
            )


def _options(command: str, options: list[Option], first: dict[str, tuple[str, Option]]) -> Iterator[str]:
    """Yield a command's new options under their headings, then the names of options of earlier commands."""
    own: list[Option] = []
    shared: dict[str, list[tuple[Option, Option]]] = defaultdict(list)
    for option in options:
        other, known = first.setdefault(option.flags, (command, option))
        different = _different(option, known)
        if other == command or different:
            own.append(option if other == command else replace(option, meaning=different))
        else:
            shared[other].append((option, known))
    for heading in dict.fromkeys(option.heading for option in own):
        yield f"### {heading}"
        yield "\n".join(option.line for option in own if option.heading == heading)
    for other, pairs in shared.items():
        yield f"As with [{other}](#sqlstress-{other}): {', '.join(_names(pairs, first, other))}."


def _different(option: Option, known: Option) -> str:
    """Return the sentences of an option's help that an earlier command's help lacks."""
    earlier = _sentences(known.meaning)
    return " ".join(sentence for sentence in _sentences(option.meaning) if sentence not in earlier)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.)]) (?=[A-Z{]|--)", text)


def _names(
    pairs: list[tuple[Option, Option]], first: Mapping[str, tuple[str, Option]], other: str
) -> Iterator[str]:
    """Yield the names of shared options, or that of their group: `SQLite` but `--driver`."""
    groups: dict[str, list[Option]] = defaultdict(list)
    for command, option in first.values():
        if command == other:
            groups[option.heading].append(option)
    for heading, group in groups.items():
        shared = {known.flags: option for option, known in pairs if known.heading == heading}
        lacking = [option.name for option in group if option.flags not in shared]
        alike = all(option.default == known.default for option, known in pairs if known.heading == heading)
        if alike and len(lacking) <= FEW and len(shared) > 2 * len(lacking):
            yield f"*{heading}*{' without ' * bool(lacking)}" + " and ".join(f"`{name}`" for name in lacking)
            continue
        for option in group:
            if option.flags in shared:
                default = shared[option.flags].default
                other_default = f" (`{default}`)" if default and default != option.default else ""
                yield f"`{option.name}`{other_default}"
