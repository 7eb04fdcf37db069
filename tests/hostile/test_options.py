"""Every option of every command, with anything as its value: planned, or refused in a line or two."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import click
import pytest
from hypothesis import strategies as st

from sqlstress.cli.commands import cli
from sqlstress.options.option import Option
from tests.commands import MEASURING, by_name
from tests.hostile.conftest import Judge, amounts
from tests.hostile.texts import NUMBERS, arguments

PLAN = '[[case]]\nworkload = "kv"\n'
CONTEXT = click.Context(cli)
COMMANDS = {
    name: command for name in cli.list_commands(CONTEXT) if (command := cli.get_command(CONTEXT, name))
}
BEGINNINGS = {"ab": ["--a=--synchronous full", "--b="], "run": ["plan.toml"]}
"""What a command must be told before anything else is looked at."""
SURELY_REFUSED = {"-o": "-o stop", "--dir": "--dir gone"}
"""What ends every command line: an output of no format, or a folder that is not there, is refused last of
all, when everything else has been parsed and planned."""


def names(command: click.Command) -> set[str]:
    return {name for param in command.params for name in param.opts}


def sensible(name: str, param: click.Parameter) -> list[str]:
    """Return what is likely to be right: the words of an option's own help, those that it takes."""
    words = re.findall(r"[\w.=/%-]+", getattr(param, "help", None) or "")
    own = by_name(name) if name in MEASURING else {}
    option = own.get((param.name or "").replace("_", "-"))
    return [word for word in words if option is None or takes(option, word)] or ["1"]


def takes(option: Option, word: str) -> bool:
    """Say whether an option can be read from a word."""
    try:
        option.parse(word)
    except ValueError:
        return False
    return True


def written(command: str, param: click.Parameter) -> st.SearchStrategy[list[str]]:
    """Return how one parameter may stand on a command line."""
    right = st.sampled_from(sensible(command, param))
    values = st.one_of(right, right, right, st.sampled_from(NUMBERS), arguments)
    if isinstance(param, click.Argument):
        return values.map(lambda value: [value])
    name = st.sampled_from(param.opts)
    if isinstance(param, click.Option) and param.is_flag:
        return name.map(lambda each: [each])
    apart = st.tuples(name, values).map(list)
    return apart | apart.map(lambda words: ["=".join(words)])


def lines(name: str) -> st.SearchStrategy[list[str]]:
    """Return command lines of a command, which may be given what it needs first."""
    params = [written(name, param) for param in COMMANDS[name].params]
    rest = st.lists(st.one_of(params), max_size=4) if params else st.just([])
    begin = st.sampled_from([[name], [name, *BEGINNINGS.get(name, [])]])
    return st.tuples(begin, rest).map(
        lambda parts: [*parts[0], *(word for words in parts[1] for word in words)]
    )


def ended(line: list[str]) -> list[str]:
    """Return the command line with what refuses it when all of it has been understood."""
    known = names(COMMANDS[line[0]])
    return [*line, *next((end.split() for name, end in SURELY_REFUSED.items() if name in known), [])]


@pytest.mark.fault(
    area="input",
    injected="any value for any option of any command",
    outcome="planned or refused",
)
@amounts(2, 9000)
def test_any_option_of_any_command_is_planned_or_refused_in_a_line_or_two(judge: Judge, number: int) -> None:
    Path("plan.toml").write_text(PLAN, encoding="utf-8")
    seen: Counter[str] = Counter()
    understood: Counter[str] = Counter()

    def check(line: list[str]) -> None:
        said = judge(*ended(line))
        seen.update([line[0]])
        if "-o 'stop'" in said.err or "a folder for the databases in gone" in said.err:
            understood.update([line[0]])
        else:
            # Of what Hypothesis finds in this file as well, --help is no mistake.
            assert said.code == (0 if line == ["schema"] or {"-h", "--help"} & {*line} else 2)

    judge.cases(st.sampled_from(list(COMMANDS)).flatmap(lines), check, number)
    judge.record("understood, of those seen", (dict(understood), dict(seen)))
    assert sum(understood.values()) > number / 20
