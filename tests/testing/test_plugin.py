"""The pytest fixture: registered automatically, cheap, and with the measurement in a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT

TESTS = """
def test_right(sqlstress):
    report = sqlstress.app("bank.py", concurrency=2, duration=0.2)
    assert report.ok, report

def test_wrong(sqlstress):
    report = sqlstress.app("bank_wrong.py", processes=4, seconds=0.3)
    assert report.ok, report

def test_misspelt(sqlstress):
    sqlstress.ap("bank.py")

def test_hunted(sqlstress):
    report = sqlstress.hunt("app", "bank_wrong.py", max_time=20, shrink_time="0s")
    assert not report.ok, report
"""


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-q", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )


@pytest.mark.thorough
def test_failing_test_shows_the_measurement(tmp_path: Path) -> None:
    for name in ("bank.py", "bank_wrong.py"):
        text = (ROOT / "examples" / "app" / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "test_bank.py").write_text(TESTS, encoding="utf-8")
    done = pytest_in(tmp_path, "test_bank.py")
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "AssertionError: <sqlstress report: the data is wrong" in done.stdout
    assert "what sqlstress measured" in done.stdout
    assert "FAILED at 4 processes" in done.stdout and "Settings of your connections" in done.stdout
    assert "sqlstress has no command 'ap'. Did you mean app? The commands are kv, " in done.stdout
    names = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert names == {"bank.py", "bank_wrong.py", "test_bank.py"}


def test_unused_plugin_imports_nothing_else() -> None:
    code = "import sys; import pytest; before = set(sys.modules); import sqlstress.pytest_plugin; "
    code += "print(*sorted(name for name in set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["sqlstress", "sqlstress.pytest_plugin"]


def test_plugin_is_registered() -> None:
    setup_text = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    assert "pytest11 =\n    sqlstress = sqlstress.pytest_plugin\n" in setup_text
