"""Tests of how the experiment with primary keys is shown."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.keys.experiment import ID_MAKERS, ID_TYPES, SCHEMAS, Picks
from sqlstress.experiments.keys.show import KeysShown
from sqlstress.report import Run, Space, TreeSpace
from sqlstress.report.case import Case
from sqlstress.show.blocks import MISSING, Block, Table
from sqlstress.show.markdown import report_markdown
from sqlstress.show.text import WIDTH, report_text
from tests.example_keys import EXAMPLE, keys_report, run
from tests.example_report import assert_golden
from tests.several import several
from tests.strategies import trials

FULL = ("id-rowid", "no-key", "pair-norowid", "pair-rowid")


def shown(*runs: Run) -> list[Block]:
    (group,) = group_runs(runs)
    return list(KeysShown().blocks(group))


def tables(*runs: Run) -> list[Table]:
    return [block for block in shown(*runs) if isinstance(block, Table)]


def column(table: Table, name: str) -> list[str]:
    place = table.headers.index(name)
    return [row[place] for row in table.rows]


def test_the_report_is_shown_as_kept() -> None:
    assert_golden("keys.txt", report_text(keys_report()))
    assert_golden("keys.md", report_markdown(keys_report()))


def test_every_line_of_all_schemas_fits_a_terminal_of_80_columns() -> None:
    runs = [
        run(
            schema,
            id_type,
            6000.0 if id_type == "uuid4" else None,
            made_by=maker,
            concurrency=processes,
            busy=10**6,
        )
        for schema in FULL
        for id_type in ID_TYPES
        for maker in ID_MAKERS
        for processes in (4, 1024)
    ]
    lines = report_text(replace(EXAMPLE, runs=tuple(runs))).splitlines()
    assert max(map(len, lines)) <= WIDTH
    heading = next(line for line in lines if line.split()[:2] == ["schema", "id"])
    # What tells the cases apart, and the times, are never what leaves a table that is too wide.
    assert {"by", "esses", "s", "=", "per", "fied"} <= set(heading.split())


def test_of_several_passes_the_median_time_is_shown_with_its_spread() -> None:
    (times, _) = tables(*(several(one, 0.05) for one in keys_report(("pair-rowid",)).runs))[:2]
    assert column(times, "time s") == ["1.80 ±10%", "3.60 ±10%", "3.50 ±10%", "3.40 ±10%", "3.40 ±10%"]
    text = report_text(replace(EXAMPLE, runs=tuple(map(several, keys_report().runs))))
    assert "±: 95% interval of the typical time" in " ".join(text.split())
    assert "±" not in report_text(keys_report())


def test_a_time_that_other_programs_met_is_marked() -> None:
    met = run("no-key", "uuid4")
    met = replace(met, trials=(replace(met.trials[0], foreign_share=0.5),))
    (times, _) = tables(met)[:2]
    assert column(times, "time s") == ["~3.10"]


def test_every_line_of_several_noisy_passes_fits_a_terminal_of_80_columns() -> None:
    runs = [
        several(run(schema, id_type, 6000.0, made_by=maker, concurrency=processes, busy=10**6), 5.0)
        for schema in FULL
        for id_type in ID_TYPES
        for maker in ID_MAKERS
        for processes in (4, 1024)
    ]
    met = [
        replace(one, trials=tuple(replace(each, foreign_share=1.0) for each in one.trials)) for one in runs
    ]
    assert max(map(len, report_text(replace(EXAMPLE, runs=tuple(met))).splitlines())) <= WIDTH


def test_each_type_stands_beside_uuid4_of_its_schema() -> None:
    times, spaces, _ = tables(*keys_report().runs)
    assert column(times, "uuid4 = 1 (time)") == [
        *("0.25", "1.00", "0.71", "0.58", "0.61"),
        *("0.61", "1.00", "0.97", "0.94", "0.90"),
    ]
    assert column(spaces, "uuid4 = 1 (file)")[:2] == ["0.35", "1.00"]


def test_without_uuid4_there_is_nothing_to_stand_beside() -> None:
    for table in tables(run("no-key", "int"), run("no-key", "uuid7")):
        assert not [name for name in table.headers if "uuid4" in name]


def test_the_space_is_told_as_sqlite3_analyzer_writes_it() -> None:
    _, spaces = tables(run("pair-rowid", "uuid4"))[:2]
    row = dict(zip(spaces.headers, spaces.rows[0], strict=True))
    assert row == {
        "schema": "pair-rowid",
        "id type": "uuid4",
        "file MB": "17.25",
        "uuid4 = 1 (file)": "1.00",
        "bytes per row": "164",
        "table": "32.2%",
        "indices": "63.1%",
        "table fan-out": "104",
        "indices fan-out": "106",
    }


def test_a_fan_out_is_a_whole_number_however_small() -> None:
    tree = TreeSpace("picks", "picks", False, 50, 0, 1, 0, 13, 2, 0)
    (spaces,) = [
        table
        for table in tables(run("no-key", "int", space=Space(10**6, 4096, 244, 0, (tree,)), users=9))
        if "file MB" in table.headers
    ]
    assert column(spaces, "table fan-out") == ["7"]


def test_where_no_space_was_measured_there_is_no_table_of_it() -> None:
    assert len(tables(run("no-key", "uuid7", space=None))) == 1
    one, other = run("id-rowid", "int", space=None), run("no-key", "int")
    assert column(tables(one, other)[1], "schema") == ["no-key"]


def test_who_made_the_ids_and_how_many_processes_are_told_where_it_differs() -> None:
    usual = run("id-rowid", "ulid")
    (times, *_) = tables(usual)
    assert times.headers[:3] == ("schema", "id type", "time s")
    (times, *_) = tables(
        usual, run("id-rowid", "ulid", made_by="sqlite", concurrency=8), run("no-key", "ulid", concurrency=8)
    )
    assert times.headers[:4] == ("schema", "id type", "made by", "processes")
    assert column(times, "made by") == ["python", "sqlite", MISSING]
    assert column(times, "processes") == ["4", "8", "8"]


def test_a_case_that_could_not_be_measured_is_marked_in_its_row() -> None:
    failed = replace(run("no-key", "ulid"), trials=(), error="worker 2 was killed")
    (times, spaces, *_) = tables(run("no-key", "uuid4"), failed)
    assert column(times, "time s")[1] == "failed"
    assert times.rows[1][-1] == MISSING
    assert len(spaces.rows) == 1


def test_the_published_figures_are_shown_in_the_units_of_the_text() -> None:
    *_, published = tables(*keys_report(FULL).runs)
    found = {tuple(row[:3]): row[3:] for row in published.rows}
    assert found["no-key", "ulid", "file, MB"] == ("13.00", "12.11")
    assert found["no-key", "ulid", "indices' share"] == ("43.3%", "47.4%")
    assert found["no-key", "ulid", "indices' fan-out"] == ("106", "107")
    assert found["id-rowid", "ulid", "time, uuid4 = 1"] == ("0.58", "0.71")
    assert found["no-key", "ulid", "file, pair-norowid = 1"] == ("0.76", "0.77")


def test_what_the_processes_did_is_told_in_numbers() -> None:
    (group,) = group_runs((run("no-key", "ulid", users=2000, picks=200, begin="immediate"),))
    assert KeysShown().what(group) == (
        "2,000 users pick about 200 of 10,000 items each, in a transaction each, BEGIN IMMEDIATE"
    )


loads = st.builds(
    Picks,
    schema=st.sampled_from((*SCHEMAS, "of another version")),
    id_type=st.sampled_from((*ID_TYPES, "of another version")),
    made_by=st.sampled_from(ID_MAKERS),
)
cases = st.builds(Case, workload=st.just("keys"), concurrency=st.sampled_from((1, 4)), spec=loads)
runs_of_keys = st.builds(Run, case=cases, trials=st.lists(trials, max_size=2).map(tuple))


@given(st.lists(runs_of_keys, max_size=5))
def test_whatever_the_figures_they_are_shown(runs: list[Run]) -> None:
    report = replace(EXAMPLE, runs=tuple(runs))
    text = report_text(report)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert report_markdown(report)
    assert not re.search(r"\bnan\b|\binf\b", text)


@pytest.mark.parametrize("figure", [1e308, float("inf"), float("nan"), 0.0, -1.0])
def test_no_time_however_strange_breaks_the_tables(figure: float) -> None:
    text = report_text(
        replace(EXAMPLE, runs=(run("no-key", "uuid4"), run("no-key", "ulid", figure or 1e-300)))
    )
    assert max(map(len, text.splitlines())) <= WIDTH
