"""Tests of the cells that the options of the experiment with methods ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiments.methods.experiment import METHOD_NAMES, PHASES, tricks_of
from sqlstress.plan import cases_of, from_toml
from sqlstress.report.case import Case
from tests.commands import by_name
from tests.options.test_options import anything

SEED_TABLES = {
    "insert": ("1b1", "1b1 + TSC", "1b1 + WAL", "1b1 + WAL + TSC", "BLK", "JSON"),
    "allocate": ("1b1", "1b1 + WAL", "1b1 + TSC", "BLK", "1b1 + WAL + TSC", "JSON", "SPC", "SPC + WAL"),
    "query": ("1b1", "JSON", "SPC", "1b1 + WAL", "JSON + WAL", "SPC + WAL"),
}
"""The columns of the published tables."""


def planned(**given: Any) -> tuple[Case, ...]:
    return cases_of({name.replace("_", "-"): value for name, value in given.items()}, "methods")


def scales(cases: tuple[Case, ...], phase: str, tricks: str) -> list[int]:
    return [case.spec.scale for case in cases if case.spec.phase == phase and tricks_of(case) == tricks]


def refused(**given: Any) -> str:
    with pytest.raises(UsageError) as caught:
        planned(**given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_default_has_every_column_of_the_published_tables_with_both_drivers() -> None:
    for driver in ("peewee", "sqlite3"):
        cases = tuple(case for case in planned() if case.driver == driver)
        for phase, columns in SEED_TABLES.items():
            assert all(scales(cases, phase, tricks) for tricks in columns)


def test_without_options_each_cell_is_measured_in_three_passes() -> None:
    assert {case.repeat for case in planned()} == {3}


def test_full_has_the_published_scales() -> None:
    cases = planned(full=True, driver="sqlite3")
    assert scales(cases, "insert", "1b1") == [100, 1000, 10_000, 100_000]
    assert scales(cases, "insert", "BLK/n + TSC") == [100, 1000, 10_000, 100_000]
    assert scales(cases, "allocate", "1b1 + TSC") == [10, 30, 50, 70, 90]
    assert scales(cases, "allocate", "1b1 + WAL + TSC") == list(range(100, 1001, 50))
    assert scales(cases, "allocate", "SPC + WAL") == list(range(100, 1301, 100))
    queried = [100, 1000, 2000, 4000, 8000, 10_000, 11_000, 12_000, 13_000, 14_000]
    assert scales(cases, "query", "SPC + WAL") == scales(cases, "query", "VALUES") == queried


def test_the_default_is_a_part_of_full() -> None:
    def cells(cases: tuple[Case, ...]) -> set[tuple[object, ...]]:
        return {(case.driver, tricks_of(case), case.spec.phase, case.spec.scale) for case in cases}

    assert cells(planned()) < cells(planned(full=True))
    assert len(planned()) < 100


def test_the_time_outs_are_the_published_ones_unless_one_is_given() -> None:
    times = {(case.spec.phase, case.spec.name == "SPC", case.spec.timeout_s) for case in planned()}
    assert times == {
        ("insert", False, 2.6),
        ("allocate", False, 2.6),
        ("allocate", True, 10.0),
        ("query", False, 10.0),
        ("query", True, 10.0),
    }
    assert {case.spec.timeout_s for case in planned(timeout="500ms") if case.spec} == {0.5}


def test_wal_is_the_journal_mode_and_the_rest_has_sqlites_default() -> None:
    for case in planned():
        assert case.settings.journal_mode == ("wal" if "WAL" in tricks_of(case) else "delete")
        assert case.settings.synchronous == "full"
        assert case.settings.busy_timeout_ms == 60_000
        assert case.spec.transaction == ("TSC" in tricks_of(case))


def test_phases_methods_drivers_scales_and_processes_are_chosen() -> None:
    cases = planned(phase="query", method="json,SPC", driver="apsw", scale="200,100", concurrency="1,2")
    told = [(case.concurrency, tricks_of(case), case.spec.scale) for case in cases if case.spec]
    columns = ("JSON", "SPC", "JSON + WAL", "SPC + WAL")
    assert told == [(n, tricks, scale) for n in (1, 2) for tricks in columns for scale in (100, 200)]
    assert {case.driver for case in cases} == {"apsw"}


def test_the_larger_scales_of_a_method_come_after_its_smaller_ones() -> None:
    last: dict[tuple[object, ...], int] = {}
    for case in planned(full=True):
        series = (case.driver, case.spec.phase, tricks_of(case))
        assert case.spec.scale > last.get(series, 0)
        last[series] = case.spec.scale


@pytest.mark.parametrize(
    ("given", "because"),
    [
        ({"scale": "100"}, "--scale counts samples or pairs: name one --phase with it"),
        ({"scale": "100", "phase": "insert,query"}, "name one --phase"),
        ({"scale": "100", "phase": "insert", "full": True}, "--scale and --full both choose the scales"),
        ({"scale": "1", "phase": "allocate"}, "--scale 1: results are allocated for 2 to 3,000 samples"),
        ({"scale": "3001", "phase": "allocate"}, "2 to 3,000 samples"),
        (
            {"scale": "1009", "phase": "query"},
            "1,009 pairs lie between 1 and 1,009 samples, and the table that is queried has 500",
        ),
        (
            {"scale": "100", "phase": "query", "samples": 19},
            "10 and 10 samples, and the table that is queried has 19",
        ),
        ({"samples": 100}, "4,000 pairs lie between 50 and 80 samples"),
        ({"method": "spc", "phase": "insert"}, "--method spc has no part in this --phase"),
        ({"method": "two"}, "--method: 'two' is not one of 1b1, blk"),
        ({"phase": "delete"}, "--phase: 'delete' is not one of insert, allocate, query"),
        ({"driver": "dry"}, "--driver: 'dry' is not one of peewee, sqlite3, apsw"),
        ({"samples": 60, "phase": "insert"}, "--samples is of queries only: it needs --phase query"),
        ({"chunk": "5", "method": "blk"}, "--chunk is of BLK/n only, which is not asked for"),
        ({"as_published": True, "phase": "insert"}, "--as-published is of insertions and allocations"),
        ({"chunk": "0"}, "--chunk: '0' is not a whole number from 1"),
        ({"timeout": "0"}, "--timeout: '0' is not a duration from 0.01 s"),
        ({"full": True, "concurrency": "1-4"}, "more than 1,000 cases"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_carried_out_is_refused_with_the_reason(given: dict[str, Any], because: str) -> None:
    assert because in refused(**given)


@given(st.dictionaries(st.sampled_from(list(by_name("methods"))), anything, max_size=4))
def test_whatever_is_given_is_planned_or_refused_in_a_line(given: dict[str, Any]) -> None:
    try:
        cases = cases_of(given, "methods")
    except UsageError as error:
        assert "\n" not in str(error)
        return
    for case in cases:
        assert case.spec.phase in PHASES and case.spec.name in METHOD_NAMES
        assert case.workload == "methods"


def test_a_plan_in_toml_asks_for_the_same(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'seed = 7\n[[case]]\nworkload = "methods"\nphase = ["insert"]\nmethod = ["json", "blk/n"]\n'
        'driver = ["sqlite3", "apsw"]\nscale = [10, "20"]\nchunk = 5\n',
        encoding="utf-8",
    )
    asked = planned(
        seed=7, phase="insert", method="json,blk/n", driver="sqlite3,apsw", scale="10,20", chunk=5
    )
    assert from_toml(plan) == asked
    assert len(asked) == 8
