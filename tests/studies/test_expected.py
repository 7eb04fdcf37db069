"""Tests of the guess of how long a case takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.experiments.methods.experiment import Method
from sqlstress.plan import cases_of
from sqlstress.report.case import Case
from sqlstress.studies.sweep import expected_s


def test_a_journal_a_transaction_and_a_time_out_change_how_long_cycles_are_expected_to_take() -> None:
    delete, delete_tx, wal, wal_tx, _ = map(expected_s, cases_of({}, "cycles"))
    assert delete > wal > wal_tx
    assert delete > delete_tx
    (short,) = cases_of({"settings": "delete", "cycles": 100_000, "timeout": "2s"}, "cycles")
    assert expected_s(short) == pytest.approx(2, abs=1)


def test_the_cycles_that_are_usual_are_expected_to_take_seconds() -> None:
    assert 2 < sum(map(expected_s, cases_of({}, "cycles"))) < 15


def test_more_work_is_expected_to_take_longer() -> None:
    case = Case()
    longer = [
        replace(case, **change)
        for change in (
            {"duration_s": 9.0},
            {"warmup_s": 9.0},
            {"concurrency": 8},
            {"buckets": 9},
        )
    ]
    assert all(expected_s(each) > expected_s(case) for each in longer)
    assert expected_s(Case(ops=2000)) > expected_s(Case(ops=1000))
    assert expected_s(Case(workload="classic", ops=5000)) < 10


def test_the_guess_of_a_method_knows_what_a_row_costs_and_where_its_time_out_is() -> None:
    def cell(name: str, transaction: bool = False, scale: int = 1000, timeout_s: float = 60.0) -> Case:
        return Case(workload="methods", spec=Method("insert", name, transaction, scale, timeout_s))

    commits, rows, bulk = (expected_s(each) for each in (cell("1b1"), cell("1b1", True), cell("BLK")))
    assert commits > rows > bulk
    assert expected_s(cell("BLK", scale=100_000)) > bulk
    assert expected_s(cell("1b1", timeout_s=1.0)) < commits
