"""What is searched for a load, and the case of each row; and the presets that ship with the package."""

from __future__ import annotations

from datetime import date
from itertools import product
from typing import Any

import pytest

from sqlstress.errors import UsageError
from sqlstress.experiments.tune.experiment import YOURS, Preset, catalogue
from sqlstress.experiments.tune.search import FACTORS, Space, factors_of, pragmas
from sqlstress.plan import cases_of
from sqlstress.report.case import Case
from sqlstress.report.power_failure import CORRUPT, risk

LOAD = {"concurrency": "4", "seed": 1}


def base(**given: Any) -> Case:
    (case,) = cases_of({**LOAD, **given})
    return case


def space(**given: Any) -> Space:
    case = base(**given)
    return Space(
        factors_of(given, case, [case.buckets]), lambda options: cases_of({**LOAD, **given, **options})[0]
    )


def test_no_row_changes_what_is_promised() -> None:
    found, own = space(), base()
    rows = list(product(*map(range, found.sizes)))
    assert len(rows) == 96
    for case in map(found.case, rows):
        assert case.settings.journal_mode == own.settings.journal_mode
        assert case.settings.synchronous == own.settings.synchronous
        assert case.spec.batch == own.spec.batch
        assert (case.concurrency, case.seed, case.duration_s) == (own.concurrency, own.seed, own.duration_s)
    assert len(set(map(found.case, rows))) == len(rows)
    assert found.case((0,) * 5) == own


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        ({"page-size": "4096"}, {"page-size"}),
        ({"wal-autocheckpoint": "500"}, {"checkpoints"}),
        ({"checkpointer": "passive"}, {"checkpoints"}),
        ({"journal-mode": "delete"}, {"checkpoints"}),
        ({"concurrency": "1"}, {"busy"}),
        ({"busy": "default", "cache-size": "10"}, {"busy", "cache-size"}),
    ],
)
def test_what_was_given_or_means_nothing_is_left_alone(given: dict[str, str], gone: set[str]) -> None:
    names = {factor.name for factor in factors_of(given, base(**given), [1])}
    assert names == {factor.name for factor in FACTORS} - gone


def test_numbers_of_files_are_searched_only_where_there_are_several() -> None:
    names = [factor.name for factor in factors_of({}, base(), [4, 1, 20])]
    assert names[-1] == "buckets"
    assert [value for value, _ in factors_of({}, base(), [4, 1, 20])[-1].levels] == ["", "1", "20"]


def test_too_many_numbers_of_files_and_nothing_to_search_are_refused() -> None:
    with pytest.raises(UsageError, match="at most 6"):
        factors_of({}, base(), range(1, 8))
    every = {name: "1" for factor in FACTORS for _, options in factor.levels for name in options}
    with pytest.raises(UsageError, match="nothing is left to search"):
        factors_of(every, base(), [1])


def test_a_row_is_written_as_options_and_as_pragmas() -> None:
    found = space()
    row = (2, 1, 1, 0, 1)
    assert found.words(row) == (
        *("--wal-autocheckpoint", "10000", "--page-size", "1024"),
        *("--cache-size", "-65536", "--busy", "fair"),
    )
    assert found.values(row) == ("10000", "1024", "-65536", "", "fair")
    assert pragmas(found.case(row).settings, base().settings) == (
        "PRAGMA page_size = 1024",
        "PRAGMA wal_autocheckpoint = 10000",
        "PRAGMA cache_size = -65536",
    )
    assert pragmas(found.case((3, 0, 0, 0, 0)).settings, base().settings) == (
        "PRAGMA wal_autocheckpoint = 0",
    )


@pytest.mark.parametrize("preset", catalogue().values(), ids=lambda preset: preset.name)
def test_a_preset_can_be_measured_and_says_where_it_is_from_and_what_it_risks(preset: Preset) -> None:
    (case,) = cases_of({"concurrency": "1", "seed": 0, **preset.settings, "pragma": preset.pragmas})
    journal, level = preset.settings["journal-mode"], preset.settings["synchronous"]
    assert (case.settings.journal_mode, case.settings.synchronous) == (journal, level)
    assert len(case.settings.pragmas) == len(preset.pragmas)
    assert preset.project and preset.source.startswith("https://")
    assert date(2026, 11, 1) <= date.fromisoformat(preset.looked_up)
    assert preset.name == preset.name.lower() != YOURS
    assert preset.risk == risk(journal, level).told
    assert risk(journal, level).worst != CORRUPT
