"""Tables of methods, keys and cycles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.classics.show import KeysShown
from sqlstress.experiments.classics.spec import ID_TYPES, PHASES, Cycling, tricks_of
from sqlstress.plan import cases_of
from sqlstress.report import Run
from sqlstress.show.blocks import MISSING
from sqlstress.show.text import WIDTH, report_text
from tests.cycles_report import cycles_report, published_settings
from tests.example_keys import keys_report
from tests.example_keys import run as keys_run
from tests.example_methods import EXAMPLE, OK
from tests.example_methods import run as methods_run
from tests.several import column, several, tables

# Methods.


def rows(*runs: Run) -> list[dict[str, str]]:
    """Return the rows of the table, by the names of their columns."""
    (table,) = tables(*runs)
    return [dict(zip(table.headers, row, strict=True)) for row in table.rows]


def test_each_cell_has_a_row_with_median_and_spread_of_its_passes() -> None:
    quiet, noisy = (
        several(methods_run("insert", tricks, 100, 300.0), noise)
        for tricks, noise in (("1b1", 0.05), ("JSON", 0.3))
    )
    assert [row["rows/s"] for row in rows(quiet, noisy)] == ["300 ±10%", "300 ±80%"]
    assert [row["rows/s"] for row in rows(methods_run("insert", "1b1", 100, 300.0))] == ["300"]


def test_rows_stand_by_phase_and_driver_and_then_by_size() -> None:
    cases = cases_of({"full": "on", "driver": "peewee,sqlite3"}, "methods")
    runs = [
        replace(methods_run(case.spec.phase, tricks_of(case), case.spec.scale), case=case) for case in cases
    ]
    known = [(row["phase"], row["driver"], int(row["rows"].replace(",", ""))) for row in rows(*runs)]
    assert known == sorted(known, key=lambda row: (PHASES.index(row[0]), *row[1:]))
    assert len(known) == len(cases)


def test_rate_is_relative_to_one_by_one_of_its_phase_and_driver() -> None:
    known = rows(
        methods_run("insert", "1b1", 100, 100.0),
        methods_run("insert", "1b1 + WAL", 100, 320.0),
        methods_run("insert", "1b1 + WAL", 100, 500.0, driver="peewee"),
        methods_run("allocate", "BLK", 450, "limit"),
    )
    beside = [(row["method"], row["driver"], row["1b1 = 1"]) for row in known]
    assert beside == [
        ("1b1", "sqlite3", "1.00"),
        ("1b1 + WAL", "sqlite3", "3.20"),
        ("1b1 + WAL", "peewee", MISSING),
        ("BLK", "sqlite3", MISSING),
    ]
    assert known[-1]["rows/s"] == "LIMIT"


def test_driver_has_a_ratio_to_sqlite3_if_both_did_the_cell() -> None:
    known = rows(
        methods_run("insert", "BLK", 100, 50_000.0, driver="peewee"),
        methods_run("insert", "BLK", 1000, 60_000.0, driver="peewee"),
        methods_run("insert", "BLK", 100, 100_000.0),
    )
    assert [row["sqlite3 = 1"] for row in known] == ["0.50", MISSING, "1.00"]
    assert "sqlite3 = 1" not in tables(methods_run("insert", "BLK", 100, 100_000.0))[0].headers


@pytest.mark.parametrize(
    ("failure", "text"), [("timeout", "TIMEOUT"), ("limit", "LIMIT"), ("another", "failed")]
)
def test_unfinished_cell_states_the_reason(failure: str, text: str) -> None:
    assert (
        rows(methods_run("insert", "1b1", 100, failure), methods_run("insert", "BLK", 100))[0]["rows/s"]
        == text
    )


def test_cell_with_wrong_data_has_no_figure() -> None:
    one = methods_run("insert", "1b1", 100)
    wrong = replace(OK, checks=(replace(OK.checks[0], status="failed"),))
    (row,) = rows(replace(one, trials=(replace(one.trials[0], verdict=wrong),)))
    assert (row["rows/s"], row["verified"]) == ("FAILED", "FAILED")


def test_report_of_an_unknown_phase_shows_no_table() -> None:
    assert tables(methods_run("update", "1b1", 100)) == []


# Keys.


FULL = ("id-rowid", "no-key", "pair-norowid", "pair-rowid")


def test_lines_of_all_schemas_fit_80_columns_if_noisy() -> None:
    runs = [
        several(keys_run(schema, id_type, 6000.0, concurrency=processes, busy=10**6), 5.0)
        for schema in FULL
        for id_type in ID_TYPES
        for processes in (4, 1024)
    ]
    met = [
        replace(each, trials=tuple(replace(trial, foreign_share=1.0) for trial in each.trials))
        for each in runs
    ]
    lines = report_text(replace(EXAMPLE, runs=tuple(met))).splitlines()
    assert max(map(len, lines)) <= WIDTH
    heading = next(line for line in lines if line.split()[:2] == ["schema", "id"])
    # A table that is too wide drops neither the columns that identify its cases nor the times.
    assert {"procs", "s", "=", "per", "data"} <= set(heading.split())


def test_several_passes_show_the_median_time_with_its_spread() -> None:
    (times, _) = tables(*(several(keys_run("no-key", id_type), 0.05) for id_type in ID_TYPES))[:2]
    assert column(times, "time s") == ["1.90 ±10%", "3.10 ±10%", "3.00 ±10%", "2.80 ±10%"]
    text = report_text(replace(EXAMPLE, runs=tuple(map(several, keys_report().runs))))
    assert "±: 95% interval of the typical time" in " ".join(text.split())
    met = keys_run("no-key", "uuid4")
    met = replace(met, trials=(replace(met.trials[0], foreign_share=0.5),))
    assert column(tables(met)[0], "time s") == ["~3.10"]


def test_tables_without_uuid4_have_no_ratios_to_it() -> None:
    for table in tables(keys_run("no-key", "int"), keys_run("no-key", "uuid7")):
        assert not [name for name in table.headers if "uuid4" in name]


def test_space_table_lacks_runs_without_measured_space() -> None:
    assert len(tables(keys_run("no-key", "uuid7", space=None))) == 1
    one, other = keys_run("id-rowid", "int", space=None), keys_run("no-key", "int")
    assert column(tables(one, other)[1], "schema") == ["no-key"]


def test_space_without_dbstat_is_the_size_of_the_file() -> None:
    known = keys_run("no-key", "uuid4").trials[0].space
    assert known
    runs = keys_run("no-key", "uuid4", space=replace(known, trees=())), keys_run("no-key", "int", space=None)
    (_, spaces) = tables(*runs)
    assert spaces.headers == ("schema", "id type", "file MB", "uuid4 = 1 (file)")
    shown = " ".join(report_text(replace(EXAMPLE, runs=runs)).split())
    assert "The space is not split by table and index, because this Python's SQLite lacks dbstat." in shown
    whole = report_text(replace(EXAMPLE, runs=(keys_run("no-key", "uuid4"),)))
    only_size = replace(known, page_size=None, page_count=None, free_pages=None, trees=())
    published = report_text(replace(EXAMPLE, runs=(keys_run("no-key", "uuid4", space=only_size),)))
    assert "dbstat" not in whole + published


def test_number_of_processes_is_shown_if_it_differs() -> None:
    usual = keys_run("id-rowid", "ulid")
    (times, *_) = tables(usual)
    assert times.headers[:3] == ("schema", "id type", "time s")
    (times, *_) = tables(usual, keys_run("no-key", "ulid", concurrency=8))
    assert times.headers[:3] == ("schema", "id type", "processes")
    assert column(times, "processes") == ["4", "8"]


def test_case_that_could_not_be_measured_is_marked_in_its_row() -> None:
    failed = replace(keys_run("no-key", "ulid"), trials=(), error="worker 2 was killed")
    (times, spaces, *_) = tables(keys_run("no-key", "uuid4"), failed)
    assert column(times, "time s")[1] == "failed"
    assert times.rows[1][-1] == MISSING
    assert len(spaces.rows) == 1


def test_load_is_described() -> None:
    (group,) = group_runs((keys_run("no-key", "ulid", users=2000, picks=200, begin="immediate"),))
    assert KeysShown().activity(group) == (
        "2,000 users pick about 200 of 10,000 items each; one transaction per user, BEGIN IMMEDIATE"
    )


# Cycles.


def test_several_passes_show_the_median_total_with_its_spread() -> None:
    runs = [several(each_run, 0.05) for each_run in published_settings()[2:]]
    (table,) = tables(*runs)
    assert column(table, "total ms") == ["7,122 ±10%", "2,297 ±10%", "2,293 ±10%"]
    assert "±: 95% interval of the typical total" in " ".join(report_text(cycles_report(*runs)).split())


def test_total_disturbed_by_other_programs_is_marked_and_fits_80_columns() -> None:
    runs = [several(each_run, 5.0) for each_run in published_settings()]
    met = [
        replace(each_run, trials=tuple(replace(each, foreign_share=1.0) for each in each_run.trials))
        for each_run in runs
    ]
    text = report_text(cycles_report(*met))
    assert "~7,122 ±>99%" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_failed_run_is_marked_in_its_row() -> None:
    broken = replace(published_settings()[2], trials=(), error="worker 1 was killed by SIGKILL")
    (table,) = tables(broken, published_settings()[3])
    assert column(table, "total ms") == ["failed", "2,297"]


def test_table_is_separate_for_other_numbers_of_rows_or_cycles() -> None:
    usual, off = published_settings()[3:]
    case = replace(usual.case, spec=Cycling(cycles=7, rows=2, transaction="none"))
    text = report_text(cycles_report(usual, replace(usual, case=case)))
    assert text.count("setting") == 2
    assert "7 cycles: insert 2 rows one by one" in text
    # The heading has only settings that all rows share.
    assert "wal_autocheckpoint=0" in report_text(cycles_report(off))
    assert "wal_autocheckpoint" not in report_text(cycles_report(off, usual))


def test_legend_states_what_is_proved() -> None:
    text = " ".join(report_text(cycles_report(published_settings()[2])).split())
    assert "data (verified): ok = the table holds what the last acknowledged commit left" in text
