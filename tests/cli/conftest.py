"""The command line, run in this process."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from sqlstress.cli.commands import run
from sqlstress.engine.study import Observer
from sqlstress.report import Report, from_json
from sqlstress.report.case import Case
from sqlstress.report.json_schema import report_schema
from sqlstress.studies.sweep import Save, Sweep, run_study
from tests.example_report import GOLDEN, assert_golden, example_report

EXAMPLE = example_report()


class Said(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of standard error."""
        return self.err.splitlines()

    @property
    def text(self) -> str:
        """Standard output in one line."""
        return " ".join(self.out.split())


Cli = Callable[..., Said]


@pytest.fixture(autouse=True)
def all_are_brief(brief_runs: None) -> None:
    """Keep all runs as brief as a test needs."""


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command line in an empty folder; its output must contain no traceback.

    With an expected exit code, standard error must be empty too.
    """
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str | Path, expected: int | None = None) -> Said:
        code = run([*map(str, arguments)])
        said = Said(code, *capsys.readouterr())
        assert "Traceback" not in said.out + said.err
        assert expected is None or (said.code, said.err) == (expected, ""), said
        return said

    return command


def saved(name: str | Path = "report.json") -> Report:
    """Return a report that was saved in the folder of the test."""
    return from_json(Path(name).read_text(encoding="utf-8"))


def valid(name: str = "report.json") -> Report:
    """Return a saved report, which must fit the schema."""
    jsonschema.validate(json.loads(Path(name).read_text(encoding="utf-8")), report_schema())
    return saved(name)


def assert_refused(said: Said, code: int = 2) -> str:
    """Check that a command wrote one line, on standard error, and return it."""
    assert (said.code, said.out, len(said.lines)) == (code, "", 1), said
    return said.err


def assert_short(said: Said) -> None:
    """Check that the error is one line, or has a second line that names the help; and standard output is
    empty.
    """
    assert said.out == ""
    assert said.lines[0].startswith("Error: ")
    assert len(said.lines) == 1 or (len(said.lines) == 2 and said.lines[1].startswith("See sqlstress "))
    assert all(len(line) < 420 for line in said.lines)


def assert_golden_refusals(cli: Cli, name: str) -> None:
    """Check the command lines of tests/golden/said/NAME: each is refused with the lines below it."""
    transcript = (GOLDEN / "said" / name).read_text(encoding="utf-8")
    prompt, found = "$ sqlstress ", []
    for line in transcript.splitlines():
        if line.startswith(prompt):
            said = cli(*line.removeprefix(prompt).split())
            assert said.code == 2, line
            assert "s3cr3t" not in said.err
            assert_short(said)
            found += [line, *said.lines]
    assert_golden(f"said/{name}", "\n".join(found) + "\n")


class FakeSession:
    """The requested measurement, and the report that is its result."""

    cases: tuple[Case, ...] = ()
    directory = Path()
    keep = False
    stayed: tuple[Path, ...] = ()
    report: Report | BaseException = EXAMPLE

    @classmethod
    def carry_out(cls, study: Any, session: Any, save: Save, observer: Observer) -> Report:
        """Record the arguments of a sweep, and return the report."""
        if not isinstance(study, Sweep):
            return run_study(study, session, save, observer)
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
    """Replace the engine for sweeps of cases."""
    monkeypatch.setattr("sqlstress.cli.measure.run_study", FakeSession.carry_out)
    yield FakeSession
    FakeSession.report = EXAMPLE
    FakeSession.cases = ()


@pytest.fixture
def url(server: str) -> str:
    """The connection string of a PostgreSQL server, as a URL."""
    from psycopg.conninfo import conninfo_to_dict

    return "postgresql://{user}:{password}@{host}:{port}/{dbname}".format(**conninfo_to_dict(server))
