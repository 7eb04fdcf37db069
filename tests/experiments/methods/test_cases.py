"""The cells that the options of the experiment with methods ask for, and those that are needless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sqlstress.experiment import case_label, experiment_of
from sqlstress.experiments.classics.methods import tricks_of
from sqlstress.plan import cases_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from tests.experiments.methods.cells import cell

SEED_TABLES = {
    "insert": ("1b1", "1b1 + TSC", "1b1 + WAL", "1b1 + WAL + TSC", "BLK", "JSON"),
    "allocate": ("1b1", "1b1 + WAL", "1b1 + TSC", "BLK", "1b1 + WAL + TSC", "JSON", "SPC", "SPC + WAL"),
    "query": ("1b1", "JSON", "SPC", "1b1 + WAL", "JSON + WAL", "SPC + WAL"),
}
"""The columns of the published tables."""


def selected_cases(**given: Any) -> tuple[Case, ...]:
    return cases_of({name.replace("_", "-"): value for name, value in given.items()}, "methods")


def scales(cases: tuple[Case, ...], phase: str, tricks: str) -> list[int]:
    return [case.spec.scale for case in cases if case.spec.phase == phase and tricks_of(case) == tricks]


def test_default_has_every_column_of_the_published_tables() -> None:
    for driver in ("peewee", "sqlite3"):
        cases = tuple(case for case in selected_cases() if case.driver == driver)
        for phase, columns in SEED_TABLES.items():
            assert all(scales(cases, phase, tricks) for tricks in columns)
    assert {case.repeat for case in selected_cases()} == {3}


def test_full_has_the_published_scales() -> None:
    cases = selected_cases(full=True, driver="sqlite3")
    assert scales(cases, "insert", "1b1") == [100, 1000, 10_000, 100_000]
    assert scales(cases, "insert", "BLK/n + TSC") == [100, 1000, 10_000, 100_000]
    assert scales(cases, "allocate", "1b1 + TSC") == [10, 30, 50, 70, 90]
    assert scales(cases, "allocate", "1b1 + WAL + TSC") == list(range(100, 1001, 50))
    assert scales(cases, "allocate", "SPC + WAL") == list(range(100, 1301, 100))
    queried = [100, 1000, 2000, 4000, 8000, 10_000, 11_000, 12_000, 13_000, 14_000]
    assert scales(cases, "query", "SPC + WAL") == scales(cases, "query", "VALUES") == queried
    # Without --full a part of them is measured.
    assert {case.spec for case in selected_cases()} < {case.spec for case in cases}
    assert len(selected_cases()) < 100


def test_timeouts_are_the_published_values_unless_given() -> None:
    for case in selected_cases():
        patient = case.spec.phase == "query" or case.spec.name == "SPC"
        assert case.spec.timeout_s == (10.0 if patient else 2.6)
    assert {case.spec.timeout_s for case in selected_cases(timeout="500ms")} == {0.5}


def test_wal_is_the_journal_mode_and_the_rest_has_sqlites_default() -> None:
    for case in selected_cases():
        assert case.settings.journal_mode == ("wal" if "WAL" in tricks_of(case) else "delete")
        assert (case.settings.synchronous, case.settings.busy_timeout_ms) == ("full", 60_000)
        assert case.spec.transaction == ("TSC" in tricks_of(case))


def test_phases_methods_drivers_and_scales_are_chosen() -> None:
    cases = selected_cases(phase="query", method="json,SPC", driver="apsw", scale="200,100")
    told = [(tricks_of(case), case.spec.scale) for case in cases if case.spec]
    columns = ("JSON", "SPC", "JSON + WAL", "SPC + WAL")
    assert told == [(tricks, scale) for tricks in columns for scale in (100, 200)]
    assert {case.driver for case in cases} == {"apsw"}


def test_larger_scales_of_a_method_come_after_smaller_scales() -> None:
    last: dict[tuple[object, ...], int] = {}
    for case in selected_cases(full=True):
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


def test_timed_out_cell_is_not_measured_again() -> None:
    assert needless(CASE, [ran(CASE, "timeout")]) == "1b1 timed out at 1,000 already"
    assert needless(CASE, [ran(CASE, "done")]) is None
    # A limit is met at once, in each pass.
    assert needless(CASE, [ran(CASE, "limit")]) is None


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
