"""The command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sqlstress.cli.run_command import run
from sqlstress.report import Report
from sqlstress.report.case import Case
from tests.example_report import example_report

EXAMPLE = example_report()


class Said(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What it complained of."""
        return self.err.splitlines()


Cli = Callable[..., Said]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command line in an empty folder; nothing that it says may be a traceback."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Said:
        code = run(arguments)
        said = Said(code, *capsys.readouterr())
        assert "Traceback" not in said.out + said.err
        return said

    return command


class FakeSession:
    """Measures nothing: takes down what was asked, and answers with a report."""

    cases: tuple[Case, ...] = ()
    directory = Path()
    keep = False
    report: Report | BaseException = EXAMPLE

    def __init__(
        self, cases: tuple[Case, ...], directory: Path, keep: bool, command: tuple[str, ...]
    ) -> None:
        kind = type(self)
        kind.cases, kind.directory, kind.keep = cases, directory, keep
        self.command = command
        self.kept_folder = directory / "sqlstress-01234567" if keep else None

    def measure(self, save: Callable[[Report], None], observer: Any) -> Report:
        """Answer."""
        if isinstance(self.report, BaseException):
            raise self.report
        report = replace(self.report, command=self.command)
        if report.runs:
            save(report)
        return report


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeSession]]:
    """Stand in for the engine."""
    monkeypatch.setattr("sqlstress.cli.measure.Session", FakeSession)
    yield FakeSession
    FakeSession.report = EXAMPLE
    FakeSession.cases = ()
