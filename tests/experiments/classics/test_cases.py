"""Options of methods, keys and cycles, the cases that they select, and cells that are skipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiment import case_label, experiment_of
from sqlstress.experiments.classics.spec import (
    ID_TYPES,
    SCHEMAS,
    SETTINGS,
    Cycling,
    Picks,
    setting_of,
    tricks_of,
)
from sqlstress.plan import cases_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case, Settings
from tests.commands import by_name
from tests.experiments.classics.cases import cell

# Methods.


SEED_TABLES = {
    "insert": ("1b1", "1b1 + TSC", "1b1 + WAL", "1b1 + WAL + TSC", "BLK", "JSON"),
    "allocate": ("1b1", "1b1 + WAL", "1b1 + TSC", "BLK", "1b1 + WAL + TSC", "JSON", "SPC", "SPC + WAL"),
    "query": ("1b1", "JSON", "SPC", "1b1 + WAL", "JSON + WAL", "SPC + WAL"),
}
"""The columns of the published tables."""


def methods_cases(**given: Any) -> tuple[Case, ...]:
    return cases_of({name.replace("_", "-"): value for name, value in given.items()}, "methods")


def scales(cases: tuple[Case, ...], phase: str, tricks: str) -> list[int]:
    return [case.spec.scale for case in cases if case.spec.phase == phase and tricks_of(case) == tricks]


def test_default_has_every_published_column_with_both_drivers() -> None:
    for driver in ("peewee", "sqlite3"):
        cases = tuple(case for case in methods_cases() if case.driver == driver)
        for phase, columns in SEED_TABLES.items():
            assert all(scales(cases, phase, tricks) for tricks in columns)
    assert {case.repeat for case in methods_cases()} == {3}


def test_default_compares_methods_with_as_many_allocated_rows() -> None:
    cases = methods_cases(driver="sqlite3")
    largest = {tricks: max(scales(cases, "allocate", tricks)) for tricks in ("BLK/n + TSC", "JSON", "SPC")}
    assert largest == dict.fromkeys(largest, 300)


def test_full_has_the_published_scales() -> None:
    cases = methods_cases(full=True, driver="sqlite3")
    assert scales(cases, "insert", "1b1") == [100, 1000, 10_000, 100_000]
    assert scales(cases, "insert", "BLK/n + TSC") == [100, 1000, 10_000, 100_000]
    assert scales(cases, "allocate", "1b1 + TSC") == [10, 30, 50, 70, 90]
    assert scales(cases, "allocate", "1b1 + WAL + TSC") == list(range(100, 1001, 50))
    assert scales(cases, "allocate", "SPC + WAL") == list(range(100, 1301, 100))
    queried = [100, 1000, 2000, 4000, 8000, 10_000, 11_000, 12_000, 13_000, 14_000]
    assert scales(cases, "query", "SPC + WAL") == scales(cases, "query", "JSON") == queried
    # Without --full a part of them is measured.
    assert {case.spec for case in methods_cases()} < {case.spec for case in cases}
    assert len(methods_cases()) < 100


def test_time_limit_is_the_same_for_every_method() -> None:
    assert {case.spec.timeout_s for case in methods_cases()} == {2.6}
    assert {case.spec.timeout_s for case in methods_cases(timeout="500ms")} == {0.5}


def test_wal_is_the_journal_mode_and_the_rest_has_sqlites_default() -> None:
    for case in methods_cases():
        assert case.settings.journal_mode == ("wal" if "WAL" in tricks_of(case) else "delete")
        assert (case.settings.synchronous, case.settings.busy_timeout_ms) == ("full", 60_000)
        assert case.spec.transaction == ("TSC" in tricks_of(case))


def test_phases_methods_drivers_and_scales_are_chosen() -> None:
    cases = methods_cases(phase="query", method="json,SPC", driver="apsw", scale="200,100")
    told = [(tricks_of(case), case.spec.scale) for case in cases if case.spec]
    columns = ("JSON", "SPC", "JSON + WAL", "SPC + WAL")
    assert told == [(tricks, scale) for tricks in columns for scale in (100, 200)]
    assert {case.driver for case in cases} == {"apsw"}


def test_larger_scales_of_a_method_come_after_its_smaller_ones() -> None:
    last: dict[tuple[object, ...], int] = {}
    for case in methods_cases(full=True):
        series = (case.driver, case.spec.phase, tricks_of(case))
        assert case.spec.scale > last.get(series, 0)
        last[series] = case.spec.scale


CASE = cell("insert", "1b1", 1000)


def ran(case: Case, outcome: str = "timeout") -> Run:
    trial = Trial(0, 1.0, 0, 0, 0.0, 0.0, None, None, 0, 0, 0, 0, outcome=outcome)
    return Run(case, (trial,))


def at(scale: int, **fields: Any) -> Case:
    return replace(CASE, spec=replace(CASE.spec, scale=scale, **fields))


def needless(case: Case, runs: Sequence[Run]) -> str | None:
    return experiment_of(case).skip_reason(case, runs)


@pytest.mark.parametrize(("outcome", "reason"), [("timeout", "timed out"), ("limit", "met a limit")])
def test_after_a_failure_at_a_smaller_scale_a_cell_is_needless(outcome: str, reason: str) -> None:
    runs = [ran(at(10), "done"), ran(at(100), outcome)]
    assert needless(CASE, runs) == f"1b1 {reason} at 100 already"


@pytest.mark.parametrize(("outcome", "reason"), [("timeout", "timed out"), ("limit", "met a limit")])
def test_cell_without_a_figure_is_not_measured_again(outcome: str, reason: str) -> None:
    assert needless(CASE, [ran(CASE, outcome)]) == f"1b1 {reason} at 1,000 already"
    assert needless(CASE, [ran(CASE, "done")]) is None


@pytest.mark.parametrize(
    "other",
    [
        at(2000),
        at(100, name="JSON"),
        at(100, transaction=True),
        at(100, phase="query"),
        replace(at(100), driver="apsw"),
        replace(at(100), concurrency=2),
        replace(at(100), settings=replace(CASE.settings, journal_mode="wal")),
        Case(),
    ],
    ids=lambda case: case_label(case),
)
def test_failure_of_another_method_skips_no_case(other: Case) -> None:
    assert needless(CASE, [ran(other)]) is None


def test_finished_or_unmeasured_cases_skip_no_other_case() -> None:
    assert needless(CASE, [ran(at(100), "done"), Run(at(10), error="worker 1 was killed")]) is None
    assert needless(CASE, []) is None


# Keys.


def keys_cases(**given: Any) -> tuple[Case, ...]:
    return cases_of({"seed": "1"} | {name.replace("_", "-"): given[name] for name in given}, "keys")


def test_default_options_select_two_schemas_and_all_types() -> None:
    cases = keys_cases()
    schemas = ("id-rowid", "no-key")
    loads = [Picks(schema, id_type, users=150) for schema in schemas for id_type in ID_TYPES]
    settings = Settings(synchronous="normal", pragmas=(("foreign_keys", "on"),))
    assert [case.spec for case in cases] == loads
    assert {(case.workload, case.concurrency, case.settings) for case in cases} == {("keys", 4, settings)}
    assert loads[0] == Picks("id-rowid", "int", 150, 100, 10_000, "deferred")
    assert {case.repeat for case in cases} == {5}


def test_full_selects_every_schema_with_every_type() -> None:
    loads = [case.spec for case in keys_cases(full=True, users="2000", picks="200")]
    expected = [Picks(schema, id_type, users=2000, picks=200) for schema in SCHEMAS for id_type in ID_TYPES]
    assert loads == expected


def test_full_measures_the_given_types_only() -> None:
    loads = [case.spec for case in keys_cases(full=True, id_type="ulid")]
    assert loads == [Picks(schema, "ulid", users=150) for schema in SCHEMAS]


def test_cases_are_ordered_by_schema_concurrency_and_type() -> None:
    cases = keys_cases(schema="id-norowid", id_type="ulid,int", concurrency="1,2")
    assert [(case.concurrency, case.spec.id_type) for case in cases] == [
        (processes, id_type) for processes in (1, 2) for id_type in ("ulid", "int")
    ]


def test_foreign_keys_are_enforced_unless_a_pragma_turns_them_off() -> None:
    assert keys_cases(pragma=("temp_store=memory",))[0].settings.pragmas == (
        ("foreign_keys", "on"),
        ("temp_store", "memory"),
    )
    assert keys_cases(pragma=("foreign_keys=off",))[0].settings.pragmas == (("foreign_keys", "off"),)


def test_options_of_keys_set_their_case_fields() -> None:
    given = {
        "concurrency": "2", "schema": "id-norowid", "id_type": "ulid", "repeat": "3",
        "users": "200", "picks": "20", "items": "2_000", "begin": "immediate", "journal_mode": "delete",
        "synchronous": "full", "fullfsync": "on", "wal_autocheckpoint": "9", "page_size": "8192",
        "cache_size": "-2000", "mmap_size": "65536", "pragma": ("temp_store=memory",), "busy_timeout": "5s",
        "driver": "apsw", "verify": "none", "max_failed": "10%", "seed": "7",
    }  # fmt: skip
    assert {name.replace("_", "-") for name in given} | {"full"} == by_name("keys").keys()
    pragmas = (("foreign_keys", "on"), ("temp_store", "memory"))
    assert keys_cases(**given) == (
        Case(
            workload="keys",
            driver="apsw",
            concurrency=2,
            duration_s=0.0,
            warmup_s=0.0,
            repeat=3,
            seed=7,
            verify="none",
            max_failed=0.1,
            settings=Settings("delete", "full", True, 9, 8192, -2000, 65536, pragmas, 5000),
            spec=Picks("id-norowid", "ulid", 200, 20, 2000, "immediate"),
        ),
    )


# Cycles.


def cycles_cases(**given_options: Any) -> tuple[Case, ...]:
    """Return the cases of these options, with underscores for dashes."""
    return cases_of({name.replace("_", "-"): value for name, value in given_options.items()}, "cycles")


def test_default_options_select_the_published_cases_in_five_passes() -> None:
    cases = cycles_cases(seed=7)
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
    assert [setting_of(case) for case in cycles_cases(settings=name)] == [name]


def test_setting_given_twice_is_measured_once() -> None:
    assert len(cycles_cases(settings="wal-tx,wal-tx")) == 1


def test_wal_autocheckpoint_applies_to_settings_with_checkpoints() -> None:
    cases = cycles_cases(wal_autocheckpoint="50")
    assert [case.settings.wal_autocheckpoint for case in cases] == [None, None, 50, 50, 0]
    (case,) = cycles_cases(settings="wal-off")
    assert (case.settings.wal_autocheckpoint, case.spec.transaction) == (0, "none")


def test_options_of_cycles_set_their_case_fields() -> None:
    (case,) = cycles_cases(
        settings="wal-tx", cycles="7", rows="3", timeout="5s", synchronous="normal",
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
        spec=Cycling(7, 3, "run", 5.0),
    )


def test_exclusive_locking_mode_is_allowed_for_one_process() -> None:
    assert len(cycles_cases(pragma=("locking_mode=exclusive",), settings="delete,delete-tx")) == 2


@given(st.lists(st.sampled_from(SETTINGS), min_size=1))
def test_case_labels_are_unique(settings: list[str]) -> None:
    labels = [case_label(case) for case in cycles_cases(settings=",".join(settings))]
    assert len(set(labels)) == len(labels) == len({*settings})
