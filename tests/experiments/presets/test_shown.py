"""How presets are shown, in every format; no sentence says more than its interval."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import jsonschema
import pytest

from sqlstress.analysis.finding import PROVED, UNTOLD, WRONG
from sqlstress.experiments.tune.presets import catalogue
from sqlstress.experiments.tune.show_presets import listed, verdict
from sqlstress.report import from_json, to_json
from sqlstress.report.schema import report_schema
from sqlstress.report.study_results import Gain
from sqlstress.show.endings import BAD, FAILURE, FINE, UNSURE, endings, exit_code
from sqlstress.show.formats import FORMATS
from sqlstress.show.github import workflow_commands
from sqlstress.show.markdown import report_markdown
from sqlstress.show.phrases import phrase
from sqlstress.show.text import drawn, report_text
from tests.choice_report import PRESETS, preset_report
from tests.example_report import assert_golden

REPORT = preset_report()


def test_it_is_shown_as_its_golden_files() -> None:
    assert_golden("presets.txt", report_text(REPORT))
    assert_golden("presets.md", report_markdown(REPORT))


def test_its_json_is_read_as_it_was_written_and_fits_the_schema() -> None:
    assert from_json(to_json(REPORT)) == REPORT
    jsonschema.Draft202012Validator(report_schema()).validate(json.loads(to_json(REPORT)))


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_it(form: str) -> None:
    assert FORMATS[form](REPORT)


def test_the_csv_says_of_each_slice_which_preset_it_is_of() -> None:
    header, *rows = FORMATS["csv"](REPORT).splitlines()
    arm = header.split(",").index("arm")
    assert {row.split(",")[arm] for row in rows} == {"yours", "rails", "kine", "django"}


def test_each_gain_is_told_as_far_as_its_interval_goes() -> None:
    found = verdict(PRESETS)
    assert found.status == UNTOLD
    assert phrase(found.finding).startswith(
        "rails: 4.1 times your own settings (3.61 to 4.70); "
        "kine: as good as your own settings (0.962 to 1.05 times); "
        "django: can't be told from your own settings (0.870 to 1.68 times)."
    )


def with_gains(*gains: Gain | None) -> list[str]:
    first, *others = PRESETS.presets
    found = replace(
        PRESETS, presets=(first, *(replace(o, gain=g) for o, g in zip(others, gains, strict=True)))
    )
    return [verdict(found).status, str(exit_code(endings(preset_report(found), strict=True)))]


def test_what_can_not_be_told_is_no_failure_unless_somebody_is_strict() -> None:
    sure, open_ = Gain(2.0, 1.5, 2.5, 9), Gain(1.0, 0.5, 2.0, 9)
    assert with_gains(sure, sure, sure) == [PROVED, str(FINE)]
    assert with_gains(sure, sure, open_) == [UNTOLD, str(UNSURE)]
    assert with_gains(None, None, None) == [UNTOLD, str(UNSURE)]
    assert exit_code(endings(REPORT)) == FINE
    assert any("Presets%3A comparison of presets" in line for line in workflow_commands(REPORT))


def test_wrong_data_and_an_early_end_are_failures() -> None:
    wrong = preset_report(replace(PRESETS, wrong="rails: key 7"))
    assert verdict(wrong.results["presets"]).status == WRONG
    assert exit_code(endings(wrong)) == BAD
    early = preset_report(replace(PRESETS, error="rails: the disk is full"))
    assert exit_code(endings(early)) == FAILURE
    assert endings(preset_report(replace(PRESETS))) == ()


def test_every_preset_is_listed_with_its_risk_its_source_and_its_date() -> None:
    text = "\n".join(map(drawn, listed(catalogue().values())))
    assert text.count("A power failure can lose what was committed since the last checkpoint.") == 11
    for one in catalogue().values():
        assert f"{one.name}: {one.project}."[:60] in text
    assert len(re.findall(r"\d{4}-\d\d-\d\d\.", text)) == len(catalogue())


def test_advice_is_of_what_ended_it() -> None:
    few = replace(PRESETS, presets=tuple(replace(one, gain=None) for one in PRESETS.presets))
    assert phrase(verdict(replace(few, planned=4, rounds=4)).finding).endswith(
        "4 of 4 rounds is too few. Give --rounds 10."
    )
    ended = phrase(verdict(replace(few, planned=20, rounds=2)).finding)
    assert "2 of 20 rounds is too few" in ended and "--max-time" in ended and "--rounds 10" not in ended
