"""Tests of what the options of the experiment with cycles mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiment import case_label
from sqlstress.experiments.classics.cycles import SETTINGS, Cycling, setting_of
from sqlstress.plan import cases_of
from sqlstress.report.case import Case, Settings


def planned(**given_options: Any) -> tuple[Case, ...]:
    """Return the cases of these options, with underscores for dashes."""
    return cases_of({name.replace("_", "-"): value for name, value in given_options.items()}, "cycles")


def test_without_options_the_published_experiment_is_planned_in_five_passes() -> None:
    cases = planned(seed=7)
    assert cases[0] == Case(
        workload="cycles",
        duration_s=0.0,
        warmup_s=0.0,
        repeat=5,
        seed=7,
        settings=Settings(journal_mode="delete", synchronous="full"),
        spec=Cycling(cycles=100, rows=5, transaction="none", timeout_s=60.0),
    )
    told = [(case.settings.journal_mode, case.spec.transaction) for case in cases]
    assert told == [("delete", "none"), ("delete", "run"), ("wal", "none"), ("wal", "run"), ("wal", "run")]
    assert [case.settings.wal_autocheckpoint for case in cases] == [None] * 4 + [0]


def test_settings_are_outside_and_concurrencies_inside() -> None:
    cases = planned(settings="wal,delete", concurrency="2,1")
    found = [(case.settings.journal_mode, case.concurrency) for case in cases]
    assert found == [("wal", 2), ("wal", 1), ("delete", 2), ("delete", 1)]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_shown_by_the_name_that_asks_for_it(name: str) -> None:
    assert [setting_of(case) for case in planned(settings=name)] == [name]


def test_a_setting_that_is_given_twice_is_measured_once() -> None:
    assert len(planned(settings="wal-tx,wal-tx")) == 1


def test_a_checkpoints_frames_are_those_of_the_settings_that_have_checkpoints() -> None:
    cases = planned(wal_autocheckpoint="50")
    assert [case.settings.wal_autocheckpoint for case in cases] == [None, None, 50, 50, 0]
    (case,) = planned(settings="wal-off")
    assert (case.settings.wal_autocheckpoint, case.spec.transaction) == (0, "none")


def test_every_option_arrives_where_it_belongs() -> None:
    (case,) = planned(
        settings="wal-cycle", cycles="7", rows="3", timeout="5s", synchronous="normal",
        fullfsync="on", wal_autocheckpoint="9", page_size="8192", cache_size="-4000", mmap_size="65536",
        pragma=("temp_store=memory",), busy_timeout="1s", driver="apsw", verify="full",
        repeat="2", concurrency="3", seed="9",
    )  # fmt: skip
    assert case == Case(
        workload="cycles",
        driver="apsw",
        concurrency=3,
        duration_s=0.0,
        warmup_s=0.0,
        repeat=2,
        seed=9,
        verify="full",
        settings=Settings("wal", "normal", True, 9, 8192, -4000, 65536, (("temp_store", "memory"),), 1000),
        spec=Cycling(7, 3, "cycle", 5.0),
    )


def test_one_process_may_lock_a_rollback_journals_file_for_itself() -> None:
    assert len(planned(pragma=("locking_mode=exclusive",), settings="delete,delete-tx")) == 2


@given(st.lists(st.sampled_from(SETTINGS), min_size=1))
def test_no_two_cases_are_called_the_same(settings: list[str]) -> None:
    labels = [case_label(case) for case in planned(settings=",".join(settings), concurrency="1,2")]
    assert len(set(labels)) == len(labels) == 2 * len({*settings})
