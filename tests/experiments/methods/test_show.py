"""Tests of how the experiment with methods is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.classics.methods import tricks_of
from sqlstress.experiments.classics.methods_show import MethodsShown, _factor, _short
from sqlstress.plan import cases_of
from sqlstress.report import Run
from sqlstress.show.blocks import MISSING, Note, Paragraph
from tests.example_methods import OK, run
from tests.several import several, tables


def titles(*runs: Run) -> list[str]:
    (group,) = group_runs(runs)
    return [block.text for block in MethodsShown().blocks(group) if isinstance(block, Paragraph)]


def legend(*runs: Run) -> str:
    (group,) = group_runs(runs)
    (note,) = (block for block in MethodsShown().blocks(group) if isinstance(block, Note))
    return note.text


def test_the_plots_are_the_same_on_every_system() -> None:
    # The last digits of a logarithm are the C library's.
    (group,) = group_runs([run("insert", "JSON", 100, 3000.0)])
    (plot,) = MethodsShown().plots(group)
    ((shade,),) = plot.views[0].data[0]["z"]
    assert shade == round(shade, 4) != 0


def test_of_several_passes_the_matrices_show_the_median_and_the_legend_how_far_it_may_be_off() -> None:
    runs = [
        several(run("insert", tricks, 100, 300.0), noise) for tricks, noise in (("1b1", 0.05), ("JSON", 0.3))
    ]
    matrices = [table.rows for table in tables(*runs)[:2]]
    assert matrices == [(("100", "300.0 (0.33 s)"),), (("100", "300.0 (0.33 s)"),)]
    said = "rows per second may be off by ±10% in the middle cell and ±80% in the noisiest"
    assert said in legend(*runs)
    assert "±" not in legend(run("insert", "1b1", 100))


def test_every_planned_cell_has_its_place_in_a_matrix() -> None:
    cases = cases_of({"full": "on", "driver": "peewee"}, "methods")
    runs = [replace(run(case.spec.phase, tricks_of(case), case.spec.scale), case=case) for case in cases]
    cells = [row for table in tables(*runs)[:-1] for row in table.rows]
    assert sum("(" in cell for row in cells for cell in row) == len(cases)


SUMMED = (
    run("insert", "1b1", 100, 100.0),
    run("insert", "1b1 + WAL", 100, 320.0),
    run("insert", "BLK", 100, 40_000.0),
    run("allocate", "1b1", 10, 50.0),
    run("allocate", "BLK", 100, 20_000.0),
    run("allocate", "BLK", 450, "limit"),
    run("query", "BLK", 100, "limit"),
)


def test_the_published_summary_mixes_phases_and_is_shown_only_when_it_is_asked_for() -> None:
    assert not any("as published" in title for title in titles(*SUMMED))
    asked = [
        replace(each, case=replace(each.case, spec=replace(each.case.spec, as_published=True)))
        for each in SUMMED
    ]
    assert any("as published" in title for title in titles(*asked))
    assert tables(*asked)[-1].rows[:2] == (
        ("insert", "1b1", "100.0 (1x)", "320.0 (3.2x)", MISSING, MISSING),
        ("allocate", "BLK", "20,000 (200x)", MISSING, MISSING, MISSING),
    )


def test_the_binding_is_told_where_both_drivers_have_done_the_same() -> None:
    done = (
        run("insert", "BLK", 100, 50_000.0, driver="peewee"),
        run("insert", "BLK", 1000, 60_000.0, driver="peewee"),
        run("insert", "BLK", 100, 100_000.0),
        run("insert", "JSON", 100, 100_000.0, driver="peewee"),
        run("insert", "1b1", 100, 100.0, driver="peewee"),
        run("insert", "1b1", 100, 200.0),
    )
    *_, binding = tables(*done)
    assert binding.headers[-3:] == ("sqlite3 rows/s", "times as long", "µs more a row")
    assert binding.rows == (("insert", "BLK", "100", "50,000", "100,000", "2", "10"),)
    *_, binding = tables(*done, run("insert", "BLK", 100, 150_000.0, driver="apsw"))
    assert binding.rows == (("insert", "BLK", "100", "50,000", "100,000", "150,000", "2", "10"),)


def test_the_matrices_are_those_of_the_fewest_processes_and_the_others_stand_beside_them() -> None:
    first, *_, contention = tables(
        run("insert", "1b1", 100, 100.0),
        run("insert", "1b1", 1000, "timeout"),
        run("insert", "1b1", 100, 80.0, concurrency=2),
        run("insert", "1b1", 100, "timeout", concurrency=4),
    )
    assert [row[1] for row in first.rows] == ["100.0 (1.00 s)", "TIMEOUT"]
    assert contention.headers[3:] == ("rows/s of 1", "times, 2 processes", "times, 4 processes")
    assert contention.rows == (("insert", "1b1", "100", "100.0", "0.8x", "TIMEOUT"),)


WRONG = replace(OK, checks=(replace(OK.checks[0], status="failed"),))


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (OK, "The tables and the answers of all measured cells were verified."),
        (WRONG, "FAILED: the tables or the answers are wrong. All other cells were verified."),
        (replace(OK, checks=()), "Not verified: --verify none."),
    ],
)
def test_it_is_told_whether_the_cells_were_verified(verdict: object, told: str) -> None:
    one = run("insert", "1b1", 100)
    changed = replace(one, trials=(replace(one.trials[0], verdict=verdict),))  # type: ignore[arg-type]
    assert titles(changed)[0] == told


def test_a_report_without_a_method_shows_no_table() -> None:
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
    assert len(_short(value)) <= 7
    assert len(_factor(value)) <= 6
