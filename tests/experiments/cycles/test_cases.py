"""Options of the `cycles` experiment and the cases they select."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiment import case_label
from sqlstress.experiments.classics.spec import SETTINGS, Cycling, setting_of
from sqlstress.plan import cases_of
from sqlstress.report.case import Case, Settings


def selected_cases(**given_options: Any) -> tuple[Case, ...]:
    """Return the cases of these options, with underscores for dashes."""
    return cases_of({name.replace("_", "-"): value for name, value in given_options.items()}, "cycles")


def test_default_options_select_the_published_cases_in_five_passes() -> None:
    cases = selected_cases(seed=7)
    assert cases[0] == Case(
        workload="cycles",
        duration_s=0.0,
        warmup_s=0.0,
        repeat=5,
        seed=7,
        settings=Settings(journal_mode="delete", synchronous="full"),
        spec=Cycling(cycles=100, rows=5, transaction="none", timeout_s=60.0),
    )
    modes = [(case.settings.journal_mode, case.spec.transaction) for case in cases]
    assert modes == [("delete", "none"), ("delete", "run"), ("wal", "none"), ("wal", "run"), ("wal", "run")]
    assert [case.settings.wal_autocheckpoint for case in cases] == [None] * 4 + [0]


@pytest.mark.parametrize("name", SETTINGS)
def test_setting_is_labelled_with_its_option_value(name: str) -> None:
    assert [setting_of(case) for case in selected_cases(settings=name)] == [name]


def test_setting_given_twice_is_measured_once() -> None:
    assert len(selected_cases(settings="wal-tx,wal-tx")) == 1


def test_wal_autocheckpoint_applies_to_settings_with_checkpoints() -> None:
    cases = selected_cases(wal_autocheckpoint="50")
    assert [case.settings.wal_autocheckpoint for case in cases] == [None, None, 50, 50, 0]
    (case,) = selected_cases(settings="wal-off")
    assert (case.settings.wal_autocheckpoint, case.spec.transaction) == (0, "none")


def test_options_set_their_case_fields() -> None:
    (case,) = selected_cases(
        settings="wal-cycle", cycles="7", rows="3", timeout="5s", synchronous="normal",
        fullfsync="on", wal_autocheckpoint="9", page_size="8192", cache_size="-4000", mmap_size="65536",
        pragma=("temp_store=memory",), busy_timeout="1s", driver="apsw", verify="full",
        repeat="2", seed="9",
    )  # fmt: skip
    assert case == Case(
        workload="cycles",
        driver="apsw",
        duration_s=0.0,
        warmup_s=0.0,
        repeat=2,
        seed=9,
        verify="full",
        settings=Settings("wal", "normal", True, 9, 8192, -4000, 65536, (("temp_store", "memory"),), 1000),
        spec=Cycling(7, 3, "cycle", 5.0),
    )


def test_exclusive_locking_mode_is_allowed_for_one_process() -> None:
    assert len(selected_cases(pragma=("locking_mode=exclusive",), settings="delete,delete-tx")) == 2


@given(st.lists(st.sampled_from(SETTINGS), min_size=1))
def test_case_labels_are_unique(settings: list[str]) -> None:
    labels = [case_label(case) for case in selected_cases(settings=",".join(settings))]
    assert len(set(labels)) == len(labels) == len({*settings})
