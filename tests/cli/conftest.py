"""The command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sqlstress.cli.run_command import run
from sqlstress.engine.study import Observer
from sqlstress.report import Report
from sqlstress.report.case import Case
from sqlstress.studies.sweep import Save, Sweep, carry_out
from tests.brief import changes
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


@pytest.fixture(autouse=True)
def brief_runs() -> Iterator[None]:
    """Measure what a sync costs, and wait for windows, for no longer than a test needs."""
    with pytest.MonkeyPatch.context() as patch:
        for names, name, value in changes():
            patch.setitem(names, name, value)
        yield


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
    """What was asked to be measured, and the report that is the answer."""

    cases: tuple[Case, ...] = ()
    directory = Path()
    keep = False
    stayed: tuple[Path, ...] = ()
    report: Report | BaseException = EXAMPLE

    @classmethod
    def carry_out(cls, study: Any, session: Any, save: Save, observer: Observer) -> Report:
        """Take down what is asked of a sweep, and answer."""
        if not isinstance(study, Sweep):
            return carry_out(study, session, save, observer)
        cls.cases, cls.directory, cls.keep = study.cases, session.directory, session.keep
        session.kept_folder = session.directory / "sqlstress-01234567" if session.keep else None
        session.stayed = cls.stayed
        if isinstance(cls.report, BaseException):
            raise cls.report
        report = replace(cls.report, command=session.command)
        if report.runs:
            save(report)
        return report


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeSession]]:
    """Stand in for the engine where cases are swept."""
    monkeypatch.setattr("sqlstress.cli.measure.carry_out", FakeSession.carry_out)
    yield FakeSession
    FakeSession.report = EXAMPLE
    FakeSession.cases = ()
