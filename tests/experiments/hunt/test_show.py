"""Presentation of a hunt: the rounds, the fault, the smallest round, and a command."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from sqlstress.experiments.hunt.result import BUILTIN_LOAD, Hunt
from sqlstress.experiments.hunt.spec import Schedule
from sqlstress.report import Check, Report, Verdict
from sqlstress.show.endings import endings, exit_code
from sqlstress.show.formats import DOCUMENTS, FORMATS
from sqlstress.show.text import WIDTH, report_text
from tests.drawing import examples
from tests.example_report import assert_golden, corpus_report
from tests.strategies import hunts

_KEPT = corpus_report("hunt").results[BUILTIN_LOAD]
assert isinstance(_KEPT, Hunt)
assert _KEPT.found
HUNT = _KEPT
NOTHING = replace(HUNT, found=None, smallest=None, known=None, rounds=41, seconds=60.2)
IN_WORK = replace(
    HUNT,
    work="app",
    operations={"transfer": 812},
    found=replace(
        _KEPT.found,
        verdict=Verdict((Check("checks after the load", "failed", 1, 1, ("there are 9,990",)),)),
        schedule=Schedule(("write-lock",), 2, 0.005),
        failed=0,
    ),
    smallest=None,
)


def hunt_report(hunt: Hunt = HUNT) -> Report:
    """Return the report of a hunt."""
    return replace(corpus_report("hunt"), results={BUILTIN_LOAD: hunt})


@pytest.mark.parametrize(
    ("name", "hunt", "code"), [("hunt", HUNT, 1), ("hunt-nothing", NOTHING, 0), ("hunt-work", IN_WORK, 1)]
)
def test_hunt_matches_its_golden_file(name: str, hunt: object, code: int) -> None:
    report = hunt_report(hunt)  # type: ignore[arg-type]
    assert_golden(f"{name}.txt", report_text(report))
    assert exit_code(endings(report)) == code


def test_hunt_ended_early_shows_the_reason_and_exits_4() -> None:
    report = hunt_report(replace(NOTHING, error="worker 1: SQLITE_FULL: disk full"))
    assert exit_code(endings(report)) == 4
    assert "Ended after 41 rounds" in " ".join(report_text(report).split())


@given(hunts)
@settings(max_examples=examples(0.3))
def test_any_hunt_is_shown_in_every_format_within_80_columns(hunt: object) -> None:
    report = hunt_report(hunt)  # type: ignore[arg-type]
    assert max(map(len, report_text(report).splitlines())) <= WIDTH
    assert all(FORMATS[form](report) for form in DOCUMENTS)
