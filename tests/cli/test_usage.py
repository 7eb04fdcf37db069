"""Tests of the messages for wrong command lines: one or two lines, with a remedy."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, FakeSession, assert_golden_refusals, assert_short
from tests.commands import MEASURING, by_name

pytestmark = pytest.mark.usefixtures("session")

WRONG = [
    ("sql gone.sql", "cannot read 'gone.sql'", "No such file"),
    ("sql -b bank --setup gone.sql", "cannot read 'gone.sql'", "No such file"),
    ("exec --setup nope.sql -- python", "cannot read 'nope.sql'", "No such file"),
    ("app a.py --setup nope.sql", "cannot read 'nope.sql'", "No such file"),
    ("-o missing/report.json", "-o 'missing/report.json'", "missing. Create it first"),
    ("--dir file.txt", "--dir", "is a file"),
    ("--duration", "--duration", "requires an argument"),
    ("--quiet=yes", "--quiet", "not take a value"),
    ("ab --b=here", "--b: Got unexpected extra argument (here)", "options of the load"),
    ("ab --b='", "--b: No closing quotation", "options of the load"),
    ("ab --python-a nope --python-b nope", "cannot start nope", "Name an interpreter"),
    ("check", "BASELINE.json", "sqlstress check --help"),
    ("check nope.json nope.json", "cannot read 'nope.json'", "No such file"),
    ("check file.txt file.txt", "'file.txt': not a sqlstress report", "line 1"),
    ("compare nope", "cannot read 'nope'", "No such file"),
    ("run", "PLAN", "sqlstress run --help"),
    ("run a.toml b.toml", "b.toml", "sqlstress run --help"),
    ("run nope.toml", "nope.toml", "No such file"),
    ("run file.txt", "file.txt", "is not a TOML file"),
    ("run folder.json", "folder.json", "cannot read the plan"),
    ("doctor here", "here", "sqlstress doctor --help"),
]
"""Command lines whose error messages contain text of the system, click or a parser."""
if sys.platform != "win32":
    WRONG.append((f"-o {'x' * 300}.json", "-o 'xxxxxx", "too long. Choose another file"))


@pytest.fixture
def around(cli: Cli) -> Cli:
    """A folder that holds a file, a folder named like a report, and plans."""
    Path("folder.json").mkdir()
    Path("file.txt").write_text("this is not TOML\n", encoding="utf-8")
    Path("file.py").touch()
    Path("empty.toml").write_text('workload = "kv"\n', encoding="utf-8")
    Path("typo.toml").write_text('[[case]]\nworkload = "kv"\nconcurency = 4\n', encoding="utf-8")
    return cli


def test_wrong_command_line_is_refused_with_cause_and_remedy(around: Cli) -> None:
    assert_golden_refusals(around, "usage.txt")
    assert FakeSession.cases == ()


@pytest.mark.parametrize(("line", "named", "remedy"), WRONG, ids=lambda text: text[:40])
def test_foreign_error_messages_are_printed_with_a_remedy(
    around: Cli, line: str, named: str, remedy: str
) -> None:
    said = around(*line.split())
    assert said.code == 2
    assert_short(said)
    assert named in said.err
    assert remedy.lower() in said.err.lower()
    assert FakeSession.cases == ()


ANY_TEXT = {"setup", "database", "check", "stdin", "builtin", "compare", "against", "a", "b"}
"""Options that take file names and similar; wrong ones are tested above. So are those of the Pythons."""


@pytest.mark.parametrize("command", MEASURING)
def test_every_option_names_a_wrong_value(around: Cli, command: str) -> None:
    needed = {"ab": ["--a="], "limit": ["--p99=10ms"]}.get(command, [])
    program = ["--", "python"] if command == "exec" else []
    for name, option in by_name(command).items():
        if option.argument or name in ANY_TEXT or name.startswith("python-"):
            continue
        said = around(command, *needed, f"--{name}=~wrong", *program)
        assert_short(said)
        assert (said.code, f"--{name}" in said.lines[0]) == (2, True), said
        # A connection string may contain a password.
        assert option.flag or name == "dsn" or "~wrong" in said.lines[0]
    assert FakeSession.cases == ()


def test_missing_driver_is_refused_with_its_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cli: Cli
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "sqlstress.targets.sqlite.drivers.apsw_driver", raising=False)
    monkeypatch.setitem(sys.modules, "apsw", None)
    said = cli("--driver", "apsw", "-c", "1")
    assert said.code == 2
    assert_short(said)
    assert "python -m pip install apsw, or choose another --driver" in said.err
    assert list(tmp_path.iterdir()) == []
