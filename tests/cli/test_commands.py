"""Tests of the commands: their list, their options, their output."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import apsw
import jsonschema
import pytest

from sqlstress import __version__
from sqlstress.cli.commands import main_options, summaries
from sqlstress.cli.common_options import MAIN_HEADING
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiment import commands, get_experiment
from sqlstress.report import Check, Verdict
from tests.cli.conftest import EXAMPLE, Cli, FakeSession, assert_refused, saved
from tests.engine.processes import environment
from tests.several import with_trials


def test_help_shows_the_commands_and_the_main_options(cli: Cli) -> None:
    said = cli("--help", expected=0)
    for name in (*summaries(), *(f"--{option.name}" for option in main_options()), "--output"):
        assert f" {name}" in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert cli("-h") == said


@pytest.mark.parametrize("command", summaries())
def test_every_command_has_help_with_an_example(cli: Cli, command: str) -> None:
    said = cli(command, "--help", expected=0)
    assert said.out.startswith(f"Usage: sqlstress {command} ")
    assert f"Example: sqlstress {command}" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_help_of_kv_shows_every_option_once_under_its_heading(cli: Cli) -> None:
    text = cli("kv", "--help").out
    most_used = {option.name for option in main_options()}
    for option in get_experiment("kv").options:
        heading = text.index(f"\n{MAIN_HEADING if option.name in most_used else option.group}:\n")
        assert heading < text.index(f"--{option.name} ", heading)
        assert len(re.findall(rf"^  (?:-\w, )?--{option.name} ", text, re.M)) == 1
    assert text.index("\nRunning:\n") < text.index("--quiet")


@pytest.mark.parametrize("command", [*commands(), "ab", "limit"])
def test_long_help_begins_with_the_most_used_options(cli: Cli, command: str) -> None:
    headings = re.findall(r"^(\S.*):\n((?:  .*\n)+)", cli(command, "--help").out, re.M)
    first, options = headings[0]
    assert first == MAIN_HEADING
    assert 5 <= len(re.findall(r"^  (?:-\w, )?--", options, re.M)) <= 8


def test_old_spelling_of_an_option_is_taken_and_not_shown(cli: Cli, session: type[FakeSession]) -> None:
    assert cli("sql", "-b", "bank@2", "-c", "1").code == 0
    assert [(script.name, script.weight) for script in session.cases[0].spec.scripts] == [("bank", 2)]
    assert " -b" not in cli("sql", "--help").out


def test_version_equals_the_package_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"sqlstress {__version__}\n", "")


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["--concurrency", "1-3", "--buckets", "20", "--seed", "5"],
        [
            "-c",
            "1",
            "-b",
            "1,2",
            "--pragma",
            "temp_store=memory",
            "--pragma",
            "cell_size_check=on",
            "--seed=5",
        ],
        ["--quiet", "--seed", "5"],
        ["--preset", "classic", "--seed", "5"],
    ],
)
def test_command_line_without_a_command_runs_kv(
    cli: Cli, session: type[FakeSession], line: list[str]
) -> None:
    line = line or ["--seed", "5"]
    bare = cli(*line)
    cases = session.cases
    assert (bare.code, bare.err) == (0, "")
    assert cli("kv", *line) == bare
    assert session.cases == cases != ()


def test_options_of_the_run_arrive_and_the_report_knows_its_command_line(
    cli: Cli, session: type[FakeSession], tmp_path: Path
) -> None:
    cli("--dir", str(tmp_path), "--keep", "--concurrency", "1")
    assert (session.directory, session.keep) == (tmp_path, True)
    said = cli("--concurrency", "1", "-o", "report.json")
    assert (session.directory, session.keep) == (Path(), False)
    assert saved().command == ("sqlstress", "--concurrency", "1", "-o", "report.json")
    assert "TPS" in said.out and max(map(len, said.out.splitlines())) <= 80


def test_plan_is_measured(cli: Cli, session: type[FakeSession], tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text('[[case]]\nworkload = "kv"\nconcurrency = 3\n', encoding="utf-8")
    assert cli("run", "plan.toml").code == 0
    assert [case.concurrency for case in session.cases] == [3]


def test_quiet_prints_nothing_and_a_kept_folder_is_printed(cli: Cli, session: type[FakeSession]) -> None:
    assert cli("--quiet", "--keep") == (0, "", "")
    assert cli("--keep").out.endswith("The databases are kept in sqlstress-01234567.\n")


def test_file_that_could_not_be_removed_is_a_warning(
    cli: Cli, session: type[FakeSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "stayed", (Path("sqlstress-01234567/kv.db"), Path("kv.db-wal")))
    said = cli("--quiet")
    assert (said.code, said.out) == (0, "")
    assert said.err == (
        f"Warning: {Path('sqlstress-01234567/kv.db')} and 1 more could not be removed: another program has "
        "it open. The next measurement in that folder removes it.\n"
    )


# Exit codes


def failing() -> None:
    lost = Verdict((Check("last write", "failed", 10, 1, ("key 7 is gone",)),))
    FakeSession.report = replace(EXAMPLE, runs=(EXAMPLE.runs[0], with_trials(EXAMPLE.runs[1], verdict=lost)))


def test_wrong_data_exits_with_1(cli: Cli, session: type[FakeSession]) -> None:
    failing()
    said = cli()
    assert said.code == 1
    assert said.err == "Error: the data is wrong: key 7 is gone.\n"
    assert cli("--quiet") == (1, "", said.err)


def test_interruption_exits_with_130_and_says_what_is_saved(cli: Cli, session: type[FakeSession]) -> None:
    session.report = replace(EXAMPLE, interrupted=True, planned=20)
    assert cli("--quiet") == (130, "", "Stopped after 8 of 20 cases.\n")
    said = cli("--quiet", "-o", "report.json", "-o", "csv:table")
    assert said.err == "Stopped after 8 of 20 cases; what was measured is in report.json, table.\n"


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (EnvironmentFailure("no WAL here. Choose another --dir."), 4, "no WAL here. Choose another --dir."),
        (KeyError("x"), 4, "(KeyError: 'x')"),
        (KeyboardInterrupt(), 130, "stopped."),
    ],
    ids=["surroundings", "nobody expected it", "Ctrl-C"],
)
def test_error_is_one_line_with_its_exit_code(
    cli: Cli, session: type[FakeSession], error: BaseException, code: int, told: str
) -> None:
    session.report = error
    said = cli()
    assert (said.code, said.out, len(said.lines)) == (code, "", 1)
    assert said.err.startswith("Error: ") and told in said.err
    assert ("please report it" in said.err) == isinstance(error, KeyError)


@pytest.mark.parametrize("code", [0, 1])
def test_closed_pipe_does_not_change_the_exit_code(
    cli: Cli, session: type[FakeSession], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    if code:
        failing()

    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("sqlstress.cli.outputs.click.echo", gone)
    assert cli() == (code, "", "")


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("utf-8", "– ▁▅█ µs ✓"), ("cp1252", "- 158 us ?"), ("cp437", "- 158 us ?")],  # noqa: RUF001
)
def test_unsupported_characters_are_printed_as_plainer_ones(
    tmp_path: Path, encoding: str, shown: str
) -> None:
    text = "– ▁▅█ µs ✓"  # noqa: RUF001
    done = subprocess.run(
        [sys.executable, "-c", f"from sqlstress.cli.outputs import print_text; print_text({text!r})"],
        cwd=tmp_path, env={**environment(), "PYTHONIOENCODING": encoding}, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout.decode(encoding).rstrip() == shown


# Output of the smaller commands


def test_printed_schema_accepts_a_report(cli: Cli, session: type[FakeSession], tmp_path: Path) -> None:
    said = cli("schema", expected=0)
    schema = json.loads(said.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    cli("-o", "report.json")
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(report)
    del report["environment"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(report)


def test_doctor_reports_the_cost_of_a_sync_and_leaves_no_file(cli: Cli, tmp_path: Path) -> None:
    said = cli("doctor", expected=0)
    assert "Sync  " in said.out
    assert "SQLite" in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


def test_doctor_warns_of_settings_on_the_command_line(cli: Cli) -> None:
    asked, plain = cli("doctor", "--synchronous", "off"), cli("doctor")
    assert asked.code == plain.code == 0
    assert "synchronous" in asked.out.casefold()
    assert asked.out.count("arning") >= plain.out.count("arning")


def test_doctor_examines_no_library_for_a_driver_that_has_none(cli: Cli) -> None:
    said = cli("doctor", "--driver", "dry")
    assert said.code == 0
    assert "SQLite 3" not in said.out.partition("Other stores")[0]


def test_doctor_names_the_sqlite_of_a_program_in_the_path(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ("ledger.exe" if sys.platform == "win32" else "ledger")
    program.write_bytes(Path(apsw.__file__).read_bytes())
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert f"SQLite {apsw.sqlite_lib_version()}" in cli("doctor", "--program", program.name).out


def test_doctor_says_how_to_examine_a_program_that_loads_its_sqlite(cli: Cli) -> None:
    Path("launcher").write_bytes(b"launcher")
    assert "start it, and give its process id" in cli("doctor", "--program", "launcher").out


def test_doctor_refuses_a_program_whose_name_is_too_long(cli: Cli) -> None:
    assert "cannot read" in assert_refused(cli("doctor", "--program", "x" * 5000))


def test_doctor_needs_a_folder_that_is_there(cli: Cli) -> None:
    assert "Choose another --dir" in assert_refused(cli("doctor", "--dir", "missing"))


@pytest.mark.parametrize("words", [(), ("app",), ("ab", "sql")], ids=["none", "app", "ab sql"])
def test_help_command_prints_the_help_of_the_option(cli: Cli, words: tuple[str, ...]) -> None:
    asked, usual = cli("help", *words), cli(*words, "--help")
    assert asked.code == 0 and asked.out.startswith("Usage: ")
    assert asked.out == usual.out
