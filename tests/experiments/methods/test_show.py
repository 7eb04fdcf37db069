"""Tests of how the experiment with methods is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.classics.methods import PHASES, tricks_of
from sqlstress.experiments.classics.methods_show import _factor
from sqlstress.plan import cases_of
from sqlstress.report import Run
from sqlstress.show.blocks import MISSING
from tests.example_methods import OK, run
from tests.several import several, tables


def rows(*runs: Run) -> list[dict[str, str]]:
    """Return the rows of the table, by the names of their columns."""
    (table,) = tables(*runs)
    return [dict(zip(table.headers, row, strict=True)) for row in table.rows]


def test_each_cell_has_a_row_with_the_median_of_its_passes_and_their_spread() -> None:
    quiet, noisy = (
        several(run("insert", tricks, 100, 300.0), noise) for tricks, noise in (("1b1", 0.05), ("JSON", 0.3))
    )
    assert [row["rows/s"] for row in rows(quiet, noisy)] == ["300 ±10%", "300 ±80%"]
    assert [row["rows/s"] for row in rows(run("insert", "1b1", 100, 300.0))] == ["300"]


def test_rows_stand_by_phase_and_driver_and_then_by_size() -> None:
    cases = cases_of({"full": "on", "driver": "peewee,sqlite3"}, "methods")
    runs = [replace(run(case.spec.phase, tricks_of(case), case.spec.scale), case=case) for case in cases]
    known = [(row["phase"], row["driver"], int(row["rows"].replace(",", ""))) for row in rows(*runs)]
    assert known == sorted(known, key=lambda row: (PHASES.index(row[0]), *row[1:]))
    assert len(known) == len(cases)


def test_rate_is_relative_to_one_by_one_of_its_phase_and_driver() -> None:
    known = rows(
        run("insert", "1b1", 100, 100.0),
        run("insert", "1b1 + WAL", 100, 320.0),
        run("insert", "1b1 + WAL", 100, 500.0, driver="peewee"),
        run("allocate", "BLK", 450, "limit"),
    )
    beside = [(row["method"], row["driver"], row["1b1 = 1"]) for row in known]
    assert beside == [
        ("1b1", "sqlite3", "1x"),
        ("1b1 + WAL", "sqlite3", "3.2x"),
        ("1b1 + WAL", "peewee", MISSING),
        ("BLK", "sqlite3", MISSING),
    ]
    assert known[-1]["rows/s"] == "LIMIT"


def test_driver_has_a_ratio_to_sqlite3_if_both_did_the_cell() -> None:
    known = rows(
        run("insert", "BLK", 100, 50_000.0, driver="peewee"),
        run("insert", "BLK", 1000, 60_000.0, driver="peewee"),
        run("insert", "BLK", 100, 100_000.0),
    )
    assert [row["sqlite3 = 1"] for row in known] == ["0.5x", MISSING, "1x"]
    assert "sqlite3 = 1" not in tables(run("insert", "BLK", 100, 100_000.0))[0].headers


@pytest.mark.parametrize(
    ("failure", "text"), [("timeout", "TIMEOUT"), ("limit", "LIMIT"), ("another", "failed")]
)
def test_unfinished_cell_states_the_reason(failure: str, text: str) -> None:
    assert rows(run("insert", "1b1", 100, failure), run("insert", "BLK", 100))[0]["rows/s"] == text


def test_cell_with_wrong_data_has_no_figure() -> None:
    one = run("insert", "1b1", 100)
    wrong = replace(OK, checks=(replace(OK.checks[0], status="failed"),))
    (row,) = rows(replace(one, trials=(replace(one.trials[0], verdict=wrong),)))
    assert (row["rows/s"], row["verified"]) == ("FAILED", "FAILED")


def test_report_without_a_method_shows_no_table() -> None:
    strange = replace(run("insert", "1b1", 100), case=replace(run("insert", "2b2", 100).case))
    assert tables(strange) == []


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        *((1.0, "1x"), (1.23, "1.2x"), (90.2, "90x"), (0.0421, "0.04x")),
        *((0.0005, "<0.01x"), (9999.4, "9999x"), (17_322, "17kx")),
    ],
)
def test_factors_are_short(ratio: float, text: str) -> None:
    assert _factor(ratio) == text


@given(st.floats(1e-9, 1e15))
def test_no_figure_is_wider_than_its_column(value: float) -> None:
    assert len(_factor(value)) <= 6
