"""Unusual environments: narrow terminals, limited encodings, undecodable arguments."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sqlstress.cli.commands import summaries
from tests.hostile.conftest import Judge
from tests.rows import fault, thorough

ROOT = Path(__file__).parents[2]
REPORTS = [str(path) for path in sorted((ROOT / "reports").glob("*.json"))]
ASCII = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
PLAIN_C = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def sqlstress(*arguments: str | bytes, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run the program with these variables set."""
    return subprocess.run(
        [sys.executable, "-m", "sqlstress", *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        check=False,
        cwd=ROOT,
        timeout=60,
    )


@pytest.mark.thorough
@fault("input", "a terminal that takes ASCII only", "shown in plainer characters")
@pytest.mark.parametrize("variables", [pytest.param(ASCII, id="ascii"), pytest.param(PLAIN_C, id="C")])
def test_reports_are_shown_on_an_ascii_terminal(variables: dict[str, str]) -> None:
    done = sqlstress("report", *REPORTS, **variables)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout.splitlines()) > 100


@pytest.mark.parametrize("name", ["", *summaries()])
def test_help_is_ascii_and_has_short_lines(judge: Judge, name: str) -> None:
    output = judge(*name.split(), "--help")
    assert output.out.isascii()
    assert max(map(len, output.out.splitlines())) <= 100


@pytest.mark.parametrize("columns", ["1", "0", "-5", "wide", "9" * 30])
def test_help_fits_for_any_reported_width_of_the_terminal(judge: Judge, columns: str) -> None:
    with (
        pytest.MonkeyPatch.context() as patch
    ):  # undo it before pytest itself reads the width for its summary
        patch.setenv("COLUMNS", columns)
        output = judge("kv", "--help")
    assert max(map(len, output.out.splitlines())) <= 100


@fault("input", "arguments that are not UTF-8", "exit 2")
@pytest.mark.skipif(sys.platform != "linux", reason="arguments are text there")
@pytest.mark.parametrize(
    "arguments",
    [
        ["report", b"\xff\xfe.json"],
        thorough(["run", b"\xff.toml"], id="run"),
        thorough(["kv", b"--\xff"], id="option"),
        ["kv", "-o", b"\xff"],
        thorough([b"\xff"], id="command"),
    ],
    ids=repr,
)
def test_undecodable_arguments_are_refused_in_a_line(arguments: list[str | bytes]) -> None:
    done = sqlstress(*arguments, **ASCII)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.isascii() and done.stderr.count(b"\n") <= 2
