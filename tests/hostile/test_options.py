"""Every option of every command with any value: planned, or refused in at most two lines."""

import re
from collections import Counter
from pathlib import Path

import click
from hypothesis import strategies as st

from sqlstress.cli.commands import cli
from sqlstress.options.option import Option
from tests.commands import MEASURING, by_name
from tests.hostile.conftest import Judge, amounts
from tests.hostile.texts import NUMBERS, arguments
from tests.rows import fault

PLAN = '[[case]]\nworkload = "kv"\n'
CONTEXT = click.Context(cli)
COMMANDS = {
    name: command for name in cli.list_commands(CONTEXT) if (command := cli.get_command(CONTEXT, name))
}
BEGINNINGS = {"ab": ["--a=--synchronous full", "--b="], "run": ["plan.toml"]}
"""Arguments that a command needs before it checks others."""
SURELY_REFUSED = {"-o": "-o stop", "--dir": "--dir gone"}
"""The end of every command line: an invalid output format, or a missing folder, which are refused last, when
everything else has been parsed and planned."""


def names(command: click.Command) -> set[str]:
    return {name for param in command.params for name in param.opts}


def sensible(name: str, param: click.Parameter) -> list[str]:
    """Return likely valid values: the words of the option's help that it accepts."""
    words = re.findall(r"[\w.=/%-]+", getattr(param, "help", None) or "")
    options_by_name = by_name(name) if name in MEASURING else {}
    option = options_by_name.get((param.name or "").replace("_", "-"))
    return [word for word in words if option is None or takes(option, word)] or ["1"]


def takes(option: Option, word: str) -> bool:
    """Return whether an option accepts a word."""
    try:
        option.parse(word)
    except ValueError:
        return False
    return True


def parameter_forms(command: str, param: click.Parameter) -> st.SearchStrategy[list[str]]:
    """Return a strategy of the forms of a parameter on a command line."""
    right = st.sampled_from(sensible(command, param))
    values = st.one_of(right, right, right, st.sampled_from(NUMBERS), arguments)
    if isinstance(param, click.Argument):
        return values.map(lambda value: [value])
    name = st.sampled_from(param.opts)
    if isinstance(param, click.Option) and param.is_flag:
        return name.map(lambda option_name: [option_name])
    separate = st.tuples(name, values).map(list)
    return separate | separate.map(lambda words: ["=".join(words)])


def lines(name: str) -> st.SearchStrategy[list[str]]:
    """Return a strategy of command lines of a command, some with the arguments that it needs first."""
    params = [parameter_forms(name, param) for param in COMMANDS[name].params]
    rest = st.lists(st.one_of(params), max_size=4) if params else st.just([])
    begin = st.sampled_from([[name], [name, *BEGINNINGS.get(name, [])]])
    return st.tuples(begin, rest).map(
        lambda parts: [*parts[0], *(word for words in parts[1] for word in words)]
    )


def with_refused_end(line: list[str]) -> list[str]:
    """Return the command line with an end that is refused once everything else is accepted."""
    known_names = names(COMMANDS[line[0]])
    return [*line, *next((end.split() for name, end in SURELY_REFUSED.items() if name in known_names), [])]


@fault("input", "any value for any option of any command", "planned or refused")
@amounts(2, 9000)
def test_any_option_of_any_command_is_planned_or_refused_in_a_line_or_two(judge: Judge, number: int) -> None:
    Path("plan.toml").write_text(PLAN, encoding="utf-8")
    cases_by_command: Counter[str] = Counter()
    understood: Counter[str] = Counter()

    def check(line: list[str]) -> None:
        output = judge(*with_refused_end(line))
        cases_by_command.update([line[0]])
        if "-o 'stop'" in output.err or "a folder for the databases in gone" in output.err:
            understood.update([line[0]])
        else:
            # Hypothesis also takes constants from this file: --help is no error.
            is_help = line == ["schema"] or {"-h", "--help"} & {*line}
            answers = line[0] == "why" or any(word.startswith("--program") for word in line)
            assert output.code == 0 if is_help else output.code in ((0, 2) if answers else (2,))

    judge.cases(st.sampled_from(list(COMMANDS)).flatmap(lines), check, number)
    judge.record("understood, of those seen", (dict(understood), dict(cases_by_command)))
    assert sum(understood.values()) > number / 20
