"""Commands that take the name of an experiment: its name, and the remaining arguments."""

import pytest

from sqlstress.cli.commands import named_experiment
from sqlstress.cli.studies import ab_command as ab
from sqlstress.cli.studies import limit_command as limit
from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("words", "experiment", "others"),
    [
        ("", "kv", ""),
        ("--p99 10ms", "kv", "--p99 10ms"),
        ("kv --p99 10ms", "kv", "--p99 10ms"),
        ("sql a.sql --p99 10ms", "sql", "a.sql --p99 10ms"),
        ("--p99 10ms sql a.sql", "sql", "--p99 10ms a.sql"),
        ("--p99=10ms -c4 --quiet sql a.sql", "sql", "--p99=10ms -c4 --quiet a.sql"),
        ("-c 4 --per-statement sql a.sql", "sql", "-c 4 --per-statement a.sql"),
        ("--setup sql app own.py", "app", "--setup sql own.py"),
        ("exec --p99 1s -- sql {db}", "exec", "--p99 1s -- sql {db}"),
        ("-- sql", "kv", "-- sql"),
        ("keys", "kv", "keys"),
    ],
)
def test_first_argument_that_is_no_option_names_the_experiment(
    words: str, experiment: str, others: str
) -> None:
    assert named_experiment(words.split(), limit) == (experiment, others.split())


def test_options_of_either_command_may_precede_the_experiment() -> None:
    words = ["--a", "-b bank", "--strict", "--github", "--max-pairs", "10", "sql"]
    assert named_experiment(words, ab) == ("sql", words[:-1])


def test_each_experiment_has_its_own_help(cli: Cli) -> None:
    for command in ("limit", "ab"):
        assert "--key-space" in cli(command, "--help").out
        said = cli(command, "sql", "--help")
        assert f"Usage: sqlstress {command} sql [OPTIONS] [SCRIPT[@N]]..." in said.out
        assert "--key-space" not in said.out and "--ledger" not in said.out
        assert f"write sql, exec or app after {command}" in " ".join(said.out.replace("`", "").split())
