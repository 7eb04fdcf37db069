"""An experiment is one folder and one line of the registry: everything else comes from its class."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from sqlstress.cli.commands import run
from sqlstress.engine.protocols import Outcome
from sqlstress.errors import UsageError
from sqlstress.plan import from_toml
from sqlstress.registry import EXPERIMENTS
from sqlstress.report import from_json
from sqlstress.report.case import Case
from sqlstress.report.json_schema import report_schema
from sqlstress.show.json_file import report_json
from tests.experiments.appends.experiment import Appending
from tests.halves import open_source, open_work
from tests.pulses import nothing

LINE = "tests.experiments.appends.experiment:AppendsExperiment"
FILES = [f"-osaved.{form}" for form in ("json", "csv", "md", "html", "xml")] + ["-obmf:saved.bmf"]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(EXPERIMENTS, "appends", LINE)
    monkeypatch.chdir(tmp_path)


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the output of a command, which must succeed."""
    code = run(arguments)
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    return printed.out


def test_help_knows_the_command_and_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\n  appends  Rows appended by N processes.\n" in output_of(capsys, "--help")
    text = output_of(capsys, "appends", "--help")
    assert "--rows N" in text and "Rows of each process, a transaction each.  [default: 100]" in text


def test_experiment_is_measured_verified_shown_saved_and_compared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = output_of(capsys, "appends", "--rows=30", "-c2", "--synchronous=off", "--seed=1", *FILES)
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("appends  "))
    assert (row[1], row[-1]) == ("2", "ok")
    text = Path("saved.json").read_text(encoding="utf-8")
    report = from_json(text)
    (one,) = report.runs
    assert (one.case.spec, one.trials[0].rows, one.verdict.status) == (Appending(30), 60, "ok")
    assert json.loads(text)["runs"][0]["case"]["appending"] == {"rows": 30}
    assert report_json(report) == text
    Draft202012Validator(report_schema()).validate(json.loads(text))
    assert "appending_rows" in Path("saved.csv").read_text(encoding="utf-8").splitlines()[0]
    written = [path.read_text(encoding="utf-8") for path in Path().glob("saved.*")]
    assert len(written) == len(FILES) and all("appends" in each for each in written)
    assert '"appends: appends, 2 processes, ' in Path("saved.bmf").read_text(encoding="utf-8")
    assert output_of(capsys, "report", "saved.json") == shown
    page = Path("saved.html").read_text(encoding="utf-8")
    assert all(f"<h3>{title}</h3>" in page for title in ("Latency percentiles", "Latency histogram"))
    Path("again.json").write_text(report_json(report), encoding="utf-8")
    compared = output_of(capsys, "compare", "saved.json", "again.json")
    assert compared.count(" ~1.00") == 1 and "NOT COMPARABLE" not in compared
    monkeypatch.delitem(EXPERIMENTS, "appends")
    with pytest.raises(UsageError, match="has no experiment 'appends'"):
        from_json(text)


def test_plan_can_name_the_experiment() -> None:
    Path("plan.toml").write_text('seed = 7\n[[case]]\nworkload = "appends"\nconcurrency = 3\nrows = 9\n')
    assert from_toml(Path("plan.toml")) == (
        Case("appends", concurrency=3, duration_s=0.0, warmup_s=0.0, seed=7, spec=Appending(9)),
    )


@pytest.mark.parametrize(("sql", "problems"), [("SELECT 1", 0), ("DELETE FROM log WHERE number = 3", 1)])
def test_missing_row_is_reported(sql: str, problems: int, tmp_path: Path) -> None:
    case = Case("appends", spec=Appending(9))
    work = open_work(case, tmp_path, 1, {})
    work.prepare(nothing)
    source = open_source(case, tmp_path, 1, 1, work.shared)
    chunk = source.next_chunk(100)
    assert chunk
    for call, params in zip(chunk.calls, chunk.params, strict=True):
        call(params)
    source.settle(chunk, 9, [], source.stamps)
    source.close()
    with work.place.opened() as connection:  # type: ignore[attr-defined]
        connection.rows(sql)
    (check,) = (
        each for each in work.verify([Outcome(1, False, None)], nothing).checks if "rows" in each.name
    )
    assert (check.checked, check.problems) == (9, problems)
