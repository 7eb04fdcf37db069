"""How a search is shown, in every format; no sentence says more than its interval."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from sqlstress.analysis.finding import PROVED, UNTOLD, WRONG
from sqlstress.experiments.tune.results import Tuning
from sqlstress.experiments.tune.show import verdict
from sqlstress.report import from_json, to_json
from sqlstress.report.schema import report_schema
from sqlstress.report.study_results import Gain
from sqlstress.show.endings import BAD, FAILURE, FINE, UNSURE, endings, exit_code
from sqlstress.show.formats import FORMATS
from sqlstress.show.markdown import report_markdown
from sqlstress.show.phrases import phrase
from sqlstress.show.text import report_text
from tests.choice_report import TUNING, tune_report
from tests.example_report import assert_golden

REPORT = tune_report()
OPTIONS = "--wal-autocheckpoint 10000 --page-size 1024"


def with_gain(gain: Gain | None) -> Tuning:
    return replace(TUNING, gain=gain)


def test_it_is_shown_as_its_golden_files() -> None:
    assert_golden("tune.txt", report_text(REPORT))
    assert_golden("tune.md", report_markdown(REPORT))


def test_its_json_is_read_as_it_was_written_and_fits_the_schema() -> None:
    assert from_json(to_json(REPORT)) == REPORT
    jsonschema.Draft202012Validator(report_schema()).validate(json.loads(to_json(REPORT)))


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_it(form: str) -> None:
    assert FORMATS[form](REPORT)


@pytest.mark.parametrize(
    ("gain", "code", "said"),
    [
        (
            Gain(1.31, 1.22, 1.4, 12),
            PROVED,
            f"Better: {OPTIONS} reaches 1.3 times the default (1.22 to 1.40)",
        ),
        (Gain(1.01, 0.98, 1.04, 12), PROVED, "The default is as good: the best that was found, --wal"),
        (Gain(1.02, 1.01, 1.03, 12), PROVED, "The default is as good: the best that was found, --wal"),
        (Gain(0.8, 0.7, 0.9, 12), PROVED, "The default is as good: the best that was found, --wal"),
        (Gain(1.1, 0.9, 1.3, 5), UNTOLD, "It can't be told whether anything is better than the default: the"),
        (None, UNTOLD, "It can't be told whether anything is better than the default: too little was"),
    ],
)
def test_the_answer_is_what_the_fresh_pairs_leave_possible(gain: Gain | None, code: str, said: str) -> None:
    found = verdict(with_gain(gain))
    assert found.status == code
    assert phrase(found.finding).startswith(said)
    strict = exit_code(endings(tune_report(with_gain(gain)), strict=True))
    assert strict == (UNSURE if code == UNTOLD else FINE)
    assert exit_code(endings(tune_report(with_gain(gain)))) == FINE


def test_a_line_to_paste_stands_only_where_something_is_better() -> None:
    assert "To paste: PRAGMA page_size = 1024; PRAGMA wal_autocheckpoint = 10000;" in report_text(REPORT)
    assert "To paste" not in report_text(tune_report(with_gain(Gain(1.1, 0.9, 1.3, 5))))
    assert "To paste" not in report_text(tune_report(with_gain(Gain(1.02, 1.01, 1.03, 5))))


def test_fewer_checkpoints_are_said_to_risk_more_where_only_they_sync() -> None:
    full = replace(TUNING.case, settings=replace(TUNING.case.settings, synchronous="full"))
    risk = "With synchronous=NORMAL a power failure can lose what was committed"
    assert risk in report_text(REPORT)
    assert risk not in report_text(tune_report(replace(TUNING, case=full)))


def test_wrong_data_and_an_early_end_are_failures() -> None:
    wrong = tune_report(replace(TUNING, wrong="key 7"))
    assert verdict(wrong.results["tune"]).status == WRONG
    assert exit_code(endings(wrong)) == BAD
    assert exit_code(endings(tune_report(replace(TUNING, error="the disk is full")))) == FAILURE


def test_a_search_that_was_stopped_needs_no_more_time_than_it_was_given() -> None:
    stopped = replace(TUNING, gain=None, max_time_s=600.0, seconds=12.0)
    assert "--max-time" not in phrase(verdict(stopped).finding) and "let it go on" in phrase(
        verdict(stopped).finding
    )
    assert "--max-time" in phrase(verdict(replace(stopped, seconds=590.0)).finding)
