"""`sqlstress why`: a short answer for each kind of question."""

from __future__ import annotations

import pytest

from sqlstress.sqlite_codes import NAMES
from tests.cli.conftest import Cli, assert_short


@pytest.mark.parametrize("code", ["SIGBUS", *NAMES.values(), "database is locked"])
@pytest.mark.parametrize("after", [(), ("--after", "0s"), ("--after", "5s")])
def test_answer_has_two_to_six_lines(cli: Cli, code: str, after: tuple[str, ...]) -> None:
    answer = cli("why", code, *after)
    assert answer.code == 0
    assert 2 <= len(answer.out.splitlines()) <= 6


def test_wait_decides_between_opposite_causes(cli: Cli) -> None:
    at_once, late = (cli("why", "database is locked", "--after", time).out for time in ("0s", "5s"))
    assert "BEGIN IMMEDIATE" in at_once and "whole busy timeout" not in at_once
    assert "whole busy timeout" in late and "timeout was 0" not in late


def test_single_cause_is_named_with_its_cure(cli: Cli) -> None:
    cause, cure = cli("why", "261").out.splitlines()
    assert cause.startswith("SQLITE_BUSY_RECOVERY (261): ")
    assert "busy timeout" in cure


@pytest.mark.parametrize("line", ["why sqlit_busy", "why xyz", "why 5 --after soon", "why"])
def test_wrong_question_gets_a_short_error(cli: Cli, line: str) -> None:
    answer = cli(*line.split())
    assert answer.code == 2
    assert_short(answer)
