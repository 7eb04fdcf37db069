"""How a search and a comparison of presets are shown; no sentence says more than its interval."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from sqlstress.analysis.finding import PROVED, UNTOLD, WRONG
from sqlstress.experiments.tune.experiment import catalogue
from sqlstress.experiments.tune.show import listed, preset_verdict, tune_verdict
from sqlstress.report import Report, from_json, to_json
from sqlstress.report.json_schema import report_schema
from sqlstress.report.study_results import Gain
from sqlstress.show.endings import BAD, FAILURE, FINE, UNSURE, endings, exit_code
from sqlstress.show.formats import FORMATS
from sqlstress.show.github import workflow_commands
from sqlstress.show.markdown import report_markdown
from sqlstress.show.phrases import phrase
from sqlstress.show.text import drawn, report_text
from tests.choice_report import PRESETS, TUNING, preset_report, tune_report
from tests.example_report import assert_golden

TUNE, PRESET = tune_report(), preset_report()
OPTIONS = "--wal-autocheckpoint 10000 --page-size 1024"
EACH = pytest.mark.parametrize("report", [TUNE, PRESET], ids=["tune", "presets"])


@EACH
def test_it_is_shown_as_its_golden_files_and_its_json_is_read_as_it_was_written(report: Report) -> None:
    (name,) = report.results
    assert_golden(f"{name}.txt", report_text(report))
    assert_golden(f"{name}.md", report_markdown(report))
    assert from_json(to_json(report)) == report
    jsonschema.Draft202012Validator(report_schema()).validate(json.loads(to_json(report)))


@EACH
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_it(report: Report, form: str) -> None:
    assert FORMATS[form](report)


def test_the_csv_says_of_each_slice_which_preset_it_is_of() -> None:
    header, *rows = FORMATS["csv"](PRESET).splitlines()
    arm = header.split(",").index("arm")
    assert {row.split(",")[arm] for row in rows} == {"yours", "rails", "kine", "django"}


@pytest.mark.parametrize(("report_of", "result"), [(tune_report, TUNING), (preset_report, PRESETS)])
def test_wrong_data_and_an_early_end_are_failures(report_of: Callable[[Any], Report], result: Any) -> None:
    assert endings(report_of(result)) == ()
    assert exit_code(endings(report_of(replace(result, wrong="key 7")))) == BAD
    assert exit_code(endings(report_of(replace(result, error="the disk is full")))) == FAILURE


@pytest.mark.parametrize(
    ("gain", "code", "said"),
    [
        (
            Gain(1.31, 1.22, 1.4, 12),
            PROVED,
            f"Better: {OPTIONS} reaches 1.3 times the default (1.22 to 1.40)",
        ),
        (Gain(1.01, 0.98, 1.04, 12), PROVED, "The default is as good. The best found, --wal"),
        (Gain(1.02, 1.01, 1.03, 12), PROVED, "The default is as good. The best found, --wal"),
        (Gain(0.8, 0.7, 0.9, 12), PROVED, "The default is as good. The best found, --wal"),
        (Gain(1.1, 0.9, 1.3, 5), UNTOLD, "Cannot tell whether anything is better than the default: the"),
        (None, UNTOLD, "Cannot tell whether anything is better than the default: too little was"),
    ],
)
def test_the_answer_is_what_the_fresh_pairs_leave_possible(gain: Gain | None, code: str, said: str) -> None:
    report = tune_report(replace(TUNING, gain=gain))
    found = tune_verdict(replace(TUNING, gain=gain))
    assert found.status == code
    assert phrase(found.finding).startswith(said)
    assert exit_code(endings(report, strict=True)) == (UNSURE if code == UNTOLD else FINE)
    assert exit_code(endings(report)) == FINE
    # A line to paste stands only where something is better.
    paste = "To paste: PRAGMA page_size = 1024; PRAGMA wal_autocheckpoint = 10000;"
    assert (paste in report_text(report)) == said.startswith("Better")


def test_fewer_checkpoints_are_said_to_risk_more_where_only_they_sync() -> None:
    full = replace(TUNING.case, settings=replace(TUNING.case.settings, synchronous="full"))
    risk = "With synchronous=NORMAL a power failure can lose what was committed"
    assert risk in report_text(TUNE)
    assert risk not in report_text(tune_report(replace(TUNING, case=full)))


def test_a_search_that_was_stopped_needs_no_more_time_than_it_was_given() -> None:
    stopped = replace(TUNING, gain=None, max_time_s=600.0, seconds=12.0)
    said = phrase(tune_verdict(stopped).finding)
    assert "--max-time" not in said and "let it finish" in said
    assert "--max-time" in phrase(tune_verdict(replace(stopped, seconds=590.0)).finding)


SURE, OPEN = Gain(2.0, 1.5, 2.5, 9), Gain(1.0, 0.5, 2.0, 9)


@pytest.mark.parametrize(
    ("gain", "status", "code"), [(SURE, PROVED, FINE), (OPEN, UNTOLD, UNSURE), (None, UNTOLD, UNSURE)]
)
def test_what_can_not_be_told_is_no_failure_unless_somebody_is_strict(
    gain: Gain | None, status: str, code: int
) -> None:
    first, *others = PRESETS.presets
    known = None if gain is None else SURE
    gains = zip(others, (known, known, gain), strict=True)
    found = replace(PRESETS, presets=(first, *(replace(preset, gain=own) for preset, own in gains)))
    assert preset_verdict(found).status == status
    assert exit_code(endings(preset_report(found), strict=True)) == code
    assert exit_code(endings(preset_report(found))) == FINE
    assert any("Presets%3A comparison of presets" in line for line in workflow_commands(PRESET))


def test_advice_is_of_what_ended_it() -> None:
    few = replace(PRESETS, presets=tuple(replace(preset, gain=None) for preset in PRESETS.presets))
    whole, ended = (
        phrase(preset_verdict(replace(few, planned=planned, rounds=rounds)).finding)
        for planned, rounds in ((4, 4), (20, 2))
    )
    assert whole.endswith("4 of 4 rounds is too few. Use --rounds 10.")
    assert "2 of 20 rounds is too few" in ended and "--max-time" in ended and "--rounds 10" not in ended
    assert preset_verdict(replace(PRESETS, wrong="rails: key 7")).status == WRONG
    assert tune_verdict(replace(TUNING, wrong="key 7")).status == WRONG


def test_every_preset_is_listed_with_its_risk_its_source_and_its_date() -> None:
    text = "\n".join(map(drawn, listed(catalogue().values())))
    assert text.count("A power failure can lose what was committed since the last checkpoint.") == 11
    for preset in catalogue().values():
        assert f"{preset.name}: {preset.project}."[:60] in text
    assert len(re.findall(r"\d{4}-\d\d-\d\d\.", text)) == len(catalogue())
