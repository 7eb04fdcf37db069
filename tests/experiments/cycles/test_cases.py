"""Tests of what the options of the experiment with cycles mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiments.cycles.experiment import SETTINGS, Cycling, setting_of
from sqlstress.plan import cases_of, from_toml
from sqlstress.report.case import Case, Settings


def planned(**given_options: Any) -> tuple[Case, ...]:
    """Return the cases of these options, with underscores for dashes."""
    return cases_of({name.replace("_", "-"): value for name, value in given_options.items()}, "cycles")


def test_without_options_the_published_experiment_is_planned_in_five_passes() -> None:
    delete, delete_tx, wal, wal_tx, wal_tx_off = planned(seed=7)
    assert delete == Case(
        workload="cycles",
        duration_s=0.0,
        warmup_s=0.0,
        repeat=5,
        seed=7,
        settings=Settings(journal_mode="delete", synchronous="full"),
        spec=Cycling(cycles=100, rows=5, transaction="none", timeout_s=60.0),
    )
    journals = [case.settings.journal_mode for case in (delete_tx, wal, wal_tx, wal_tx_off)]
    assert journals == ["delete", "wal", "wal", "wal"]
    cyclings = [case.spec for case in (delete_tx, wal, wal_tx, wal_tx_off)]
    assert [cycling and cycling.transaction for cycling in cyclings] == ["run", "none", "run", "run"]
    assert [case.settings.wal_autocheckpoint for case in (wal, wal_tx, wal_tx_off)] == [None, None, 0]


def test_settings_are_outside_and_concurrencies_inside() -> None:
    cases = planned(settings="wal,delete", concurrency="2,1")
    assert [(case.settings.journal_mode, case.concurrency) for case in cases] == [
        ("wal", 2),
        ("wal", 1),
        ("delete", 2),
        ("delete", 1),
    ]


def test_a_transaction_can_be_that_of_a_cycle_which_changes_only_settings_with_one() -> None:
    names = [setting_of(case) for case in planned(transaction="cycle")]
    assert names == ["delete", "delete-cycle", "wal", "wal-cycle", "wal-cycle-off"]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_shown_by_the_name_that_asks_for_it(name: str) -> None:
    assert [setting_of(case) for case in planned(settings=name)] == [name]


def test_a_setting_that_is_asked_for_by_two_names_is_measured_once() -> None:
    assert len(planned(settings="wal-tx,wal-cycle", transaction="cycle")) == 1
    assert len(planned(settings="wal-tx,wal-cycle")) == 2


def test_a_checkpoints_frames_are_those_of_the_settings_that_have_checkpoints() -> None:
    cases = planned(wal_autocheckpoint="50")
    assert [case.settings.wal_autocheckpoint for case in cases] == [None, None, 50, 50, 0]


def test_checkpoints_can_be_turned_off_row_by_row_too() -> None:
    (case,) = planned(settings="wal-off")
    assert (setting_of(case), case.settings.wal_autocheckpoint) == ("wal-off", 0)
    assert case.spec.transaction == "none"


def test_every_option_arrives_where_it_belongs() -> None:
    (case,) = planned(
        settings="wal-tx", cycles="7", rows="3", transaction="cycle", timeout="5s", synchronous="normal",
        fullfsync="on", wal_autocheckpoint="9", page_size="8192", cache_size="-4000", mmap_size="65536",
        pragma=("temp_store=memory",), busy_timeout="1s", busy="fair", driver="apsw", verify="full",
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
        settings=Settings(
            "wal", "normal", True, 9, 8192, -4000, 65536, (("temp_store", "memory"),), 1000, "fair"
        ),
        spec=Cycling(7, 3, "cycle", 5.0),
    )


def test_a_plan_in_a_file_can_have_cycles(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('[[case]]\nworkload = "cycles"\nsettings = ["wal", "wal-tx"]\ncycles = 3\n')
    assert [setting_of(case) for case in from_toml(path)] == ["wal", "wal-tx"]


@pytest.mark.parametrize(
    ("given_options", "told"),
    [
        ({"settings": "wal,delete", "transaction": "run"}, "--transaction is for settings in one"),
        ({"settings": "wal-tx-off,delete", "wal_autocheckpoint": "5"}, "--wal-autocheckpoint is for"),
        ({"pragma": ("locking_mode=exclusive",)}, "hides the WAL's index"),
        ({"pragma": ("locking_mode=exclusive",), "settings": "delete", "concurrency": "2"}, "lets one"),
    ],
)
def test_what_contradicts_itself_is_refused_in_a_line(given_options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        planned(**given_options)
    assert "\n" not in str(caught.value)


def test_one_process_may_lock_a_rollback_journals_file_for_itself() -> None:
    assert len(planned(pragma=("locking_mode=exclusive",), settings="delete,delete-tx")) == 2


@given(st.lists(st.sampled_from(SETTINGS), min_size=1), st.sampled_from(("cycle", "run")))
def test_no_two_cases_are_called_the_same(settings: list[str], transaction: str) -> None:
    asked = {"transaction": transaction} if any("tx" in name for name in settings) else {}
    labels = [case.label for case in planned(settings=",".join(settings), concurrency="1,2", **asked)]
    told_apart = {name.replace("tx", "cycle") if transaction == "cycle" else name for name in settings}
    assert len(set(labels)) == len(labels) == 2 * len(told_apart)
