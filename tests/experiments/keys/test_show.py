"""Display of the experiment with primary keys."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.classics.keys import ID_TYPES
from sqlstress.experiments.classics.keys_show import KeysShown
from sqlstress.show.blocks import MISSING
from sqlstress.show.text import WIDTH, report_text
from tests.example_keys import EXAMPLE, keys_report, run
from tests.several import column, several, tables

FULL = ("id-rowid", "no-key", "pair-norowid", "pair-rowid")


def test_lines_of_all_schemas_fit_80_columns_if_noisy() -> None:
    runs = [
        several(run(schema, id_type, 6000.0, concurrency=processes, busy=10**6), 5.0)
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
    (times, _) = tables(*(several(keys_run, 0.05) for keys_run in keys_report(("pair-rowid",)).runs))[:2]
    assert column(times, "time s") == ["1.80 ±10%", "3.60 ±10%", "3.50 ±10%", "3.40 ±10%", "3.40 ±10%"]
    text = report_text(replace(EXAMPLE, runs=tuple(map(several, keys_report().runs))))
    assert "±: 95% interval of the typical time" in " ".join(text.split())
    met = run("no-key", "uuid4")
    met = replace(met, trials=(replace(met.trials[0], foreign_share=0.5),))
    assert column(tables(met)[0], "time s") == ["~3.10"]


def test_tables_without_uuid4_have_no_ratios_to_it() -> None:
    for table in tables(run("no-key", "int"), run("no-key", "uuid7")):
        assert not [name for name in table.headers if "uuid4" in name]


def test_space_table_lacks_runs_without_measured_space() -> None:
    assert len(tables(run("no-key", "uuid7", space=None))) == 1
    one, other = run("id-rowid", "int", space=None), run("no-key", "int")
    assert column(tables(one, other)[1], "schema") == ["no-key"]


def test_number_of_processes_is_shown_if_it_differs() -> None:
    usual = run("id-rowid", "ulid")
    (times, *_) = tables(usual)
    assert times.headers[:3] == ("schema", "id type", "time s")
    (times, *_) = tables(usual, run("no-key", "ulid", concurrency=8))
    assert times.headers[:3] == ("schema", "id type", "processes")
    assert column(times, "processes") == ["4", "8"]


def test_unmeasured_case_is_marked_in_its_row() -> None:
    failed = replace(run("no-key", "ulid"), trials=(), error="worker 2 was killed")
    (times, spaces, *_) = tables(run("no-key", "uuid4"), failed)
    assert column(times, "time s")[1] == "failed"
    assert times.rows[1][-1] == MISSING
    assert len(spaces.rows) == 1


def test_load_is_described() -> None:
    (group,) = group_runs((run("no-key", "ulid", users=2000, picks=200, begin="immediate"),))
    assert KeysShown().activity(group) == (
        "2,000 users pick about 200 of 10,000 items each; one transaction per user, BEGIN IMMEDIATE"
    )
