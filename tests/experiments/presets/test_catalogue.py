"""The presets that ship with the package: each can be measured, and says where it is from."""

from __future__ import annotations

from datetime import date

import pytest

from sqlstress.experiments.tune.presets import YOURS, Preset, catalogue
from sqlstress.plan import cases_of
from sqlstress.report.power_failure import CORRUPT, risk

EACH = pytest.mark.parametrize("one", catalogue().values(), ids=lambda one: one.name)


@EACH
def test_its_settings_are_options_of_the_main_experiment(one: Preset) -> None:
    (case,) = cases_of({"concurrency": "1", "seed": 0, **one.settings, "pragma": one.pragmas})
    assert case.settings.journal_mode == one.settings["journal-mode"]
    assert case.settings.synchronous == one.settings["synchronous"]
    assert len(case.settings.pragmas) == len(one.pragmas)


@EACH
def test_it_says_whose_it_is_where_it_stands_and_when_that_was_looked_up(one: Preset) -> None:
    assert one.project
    assert one.source.startswith("https://")
    assert date(2026, 11, 1) <= date.fromisoformat(one.looked_up)
    assert one.name == one.name.lower() != YOURS


@EACH
def test_its_risk_is_that_of_its_journal_mode_and_synchronous(one: Preset) -> None:
    found = risk(one.settings["journal-mode"], one.settings["synchronous"])
    assert one.risk == found.told
    assert found.worst != CORRUPT
