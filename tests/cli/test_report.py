"""Tests of `sqlstress report` and of --github."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.report import to_json
from sqlstress.show.formats import FORMATS
from sqlstress.show.github import workflow_commands
from sqlstress.show.text import BRIEF, report_text
from sqlstress.show.trackers import latency_json, throughput_json
from tests.cli.conftest import EXAMPLE, Cli, FakeSession
from tests.engine.processes import environment
from tests.example_report import failed_report
from tests.faults.commands import posix


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Save the example, and a report with wrong data, in the folder in which commands run."""
    (tmp_path / "good.json").write_text(to_json(EXAMPLE), encoding="utf-8")
    (tmp_path / "bad.json").write_text(to_json(failed_report()), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("saved")
def test_saved_report_is_printed_as_when_it_was_measured(cli: Cli) -> None:
    assert cli("report", "good.json") == (0, BRIEF.report(EXAMPLE), "")
    assert cli("report", "good.json", "--details") == (0, report_text(EXAMPLE), "")


@pytest.mark.usefixtures("saved")
def test_several_reports_are_printed_after_each_other(cli: Cli) -> None:
    said = cli("report", "good.json", "bad.json")
    assert said.out == BRIEF.report(EXAMPLE, failed_report())


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "github-action-benchmark"])
def test_saved_report_is_written_in_every_format(cli: Cli, saved: Path, form: str) -> None:
    assert cli("report", "good.json", "-o", f"{form}:out") == (0, "", "")
    assert (saved / "out").read_bytes().decode() == FORMATS[form](EXAMPLE)


@posix
def test_closed_pipe_of_standard_output_is_no_error(saved: Path) -> None:
    theirs, ours = os.pipe()
    os.close(theirs)
    words = (sys.executable, "-m", "sqlstress", "report", "good.json", "-o", "json:-")
    with os.fdopen(ours, "wb") as nobody_reads:
        done = subprocess.run(
            words, cwd=saved, env=environment(), stdout=nobody_reads, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_page_of_several_reports_keeps_the_names_of_their_files(cli: Cli, saved: Path) -> None:
    (saved / "other.json").write_text(to_json(EXAMPLE), encoding="utf-8")
    assert cli("report", "good.json", "other.json", "-o", "both.html").code == 0
    page = (saved / "both.html").read_text(encoding="utf-8")
    assert "<h1>Report A: good: " in page and "<h1>Report B: other: " in page
    assert "<td>good</td>" in re.sub("<td[^>]*>", "<td>", page)


def test_github_action_benchmark_gets_files_for_throughput_and_latency(cli: Cli, saved: Path) -> None:
    assert cli("report", "good.json", "-o", "github-action-benchmark:tps.json").code == 0
    assert (saved / "tps.json").read_text(encoding="utf-8") == throughput_json(EXAMPLE)
    assert (saved / "tps-latency.json").read_text(encoding="utf-8") == latency_json(EXAMPLE)


def test_several_reports_go_into_one_file_but_for_json(cli: Cli, saved: Path) -> None:
    assert cli("report", "good.json", "bad.json", "-o", "both.xml").code == 0
    assert (saved / "both.xml").read_text(encoding="utf-8") == FORMATS["xml"](EXAMPLE, failed_report())
    said = cli("report", "good.json", "bad.json", "-o", "both.json")
    assert (said.code, len(said.lines)) == (2, 1)
    assert "one report" in said.err
    assert not (saved / "both.json").exists()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["missing.json"], ["cannot read 'missing.json'", "No such file"]),
        (["not.json"], ["'not.json': not a sqlstress report"]),
        (["bytes.json"], ["'bytes.json' is not a sqlstress report: it is not text"]),
        (["good.json", "-o", "x.pdf"], ["-o 'x.pdf'", "bmf"]),
        (["good.json", "missing.json", "-o", "x.md"], ["cannot read 'missing.json'"]),
        ([], ["Missing argument 'FILE...'"]),
    ],
    ids=str,
)
def test_unusable_report_is_a_short_error_and_writes_no_file(
    cli: Cli, saved: Path, arguments: list[str], parts: list[str]
) -> None:
    (saved / "not.json").write_text("{", encoding="utf-8")
    (saved / "bytes.json").write_bytes(b"\xff\xfe{")
    said = cli("report", *arguments)
    assert (said.code, said.out) == (2, "")
    assert len(said.lines) <= 2
    assert all(part in said.err for part in parts)
    assert not list(saved.glob("x.*"))


def test_github_gets_the_summary_and_the_annotations(
    cli: Cli, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(saved / "summary.md"))
    (saved / "summary.md").write_text("before\n", encoding="utf-8")
    said = cli("report", "bad.json", "--github")
    assert said == (0, "\n".join(workflow_commands(failed_report())) + "\n", "")
    assert (saved / "summary.md").read_text(encoding="utf-8") == f"before\n{FORMATS['md'](failed_report())}\n"


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "good.json", "--github"],
        ["--concurrency", "1", "--github"],
        ["check", "gone.json", "gone.json", "--github"],
    ],
)
def test_github_option_outside_of_github_is_refused_at_once(
    cli: Cli, session: type[FakeSession], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    session.report = AssertionError("it was measured")
    said = cli(*arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "Error: --github works in GitHub Actions only: GITHUB_STEP_SUMMARY is not set. Leave it out.\n"
    )


def test_measurement_is_annotated_and_keeps_its_exit_code(
    cli: Cli, session: type[FakeSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    session.report = failed_report()
    said = cli("--quiet", "--github")
    assert said.code == 1
    assert said.out.startswith("::error title=Wrong data")
    assert "FAILED" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_unwritable_summary_does_not_hide_wrong_data(
    cli: Cli, session: type[FakeSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "summary.md"))
    session.report = failed_report()
    said = cli("--quiet", "--github")
    assert said.code == 1
    assert "cannot write GITHUB_STEP_SUMMARY" in said.err
    session.report = EXAMPLE
    assert cli("--quiet", "--github").code == EnvironmentFailure.exit_code
