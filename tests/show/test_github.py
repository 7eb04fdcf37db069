"""Tests of the output for GitHub Actions."""

import re
from dataclasses import replace

import pytest

from sqlstress.report import Report, Run
from sqlstress.show.github import MAX_SUMMARY_BYTES, MOST, summary, workflow_commands
from sqlstress.show.markdown import report_markdown
from tests.example_report import failed_report
from tests.show.hostile import hostile_report
from tests.show.variants import EXAMPLE, troubled_report

COMMAND = re.compile(r"::(error|warning) title=([^:,\r\n]*)::([^\r\n]*)")
"""A workflow command as the runner parses it: characters that end a property are escaped."""


def kinds(report: Report) -> list[str]:
    found = [COMMAND.fullmatch(line) for line in workflow_commands(report)]
    assert all(found)
    return [match[1] for match in found if match]


def test_wrong_data_and_dead_workers_are_errors_before_warnings() -> None:
    assert kinds(failed_report())[0] == "error"
    assert kinds(troubled_report())[0] == "error"
    assert "error" not in kinds(EXAMPLE)
    assert kinds(failed_report()) == sorted(kinds(failed_report()))


def test_each_kind_has_at_most_ten_and_the_last_counts_the_rest() -> None:
    died = Run(EXAMPLE.runs[0].case, error="worker 1 was killed")
    lines = workflow_commands(replace(EXAMPLE, runs=(died,) * 25))
    errors = [line for line in lines if line.startswith("::error")]
    assert len(errors) == MOST
    assert errors[-1] == "::error title=And more::16 more: see the step's summary."
    exactly = [line for line in workflow_commands(replace(EXAMPLE, runs=(died,) * 10)) if "::error" in line]
    assert len(exactly) == MOST
    assert not exactly[-1].startswith("::error title=And more")


def test_hostile_texts_start_no_command_of_their_own() -> None:
    assert set(kinds(hostile_report())) == {"error", "warning"}
    assert all(len(line) < 5000 for line in workflow_commands(hostile_report()))


def test_percent_sign_is_escaped() -> None:
    died = Run(EXAMPLE.runs[0].case, error="100%0A full: a, b")
    (line, *_) = workflow_commands(replace(EXAMPLE, runs=(died,)))
    assert line == "::error title=Not measured%3A kv%3A 1 bucket%2C 1 process::100%250A full: a, b"


@pytest.mark.thorough
def test_summary_too_large_for_github_is_one_sentence() -> None:
    text = summary(*[EXAMPLE] * (MAX_SUMMARY_BYTES // len(report_markdown(EXAMPLE)) + 1))
    assert text == "The report is too large for a step's summary: save it with -o report.html.\n"
