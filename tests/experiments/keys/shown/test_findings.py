"""What is said of primary keys: which to take, and what they cost."""

from __future__ import annotations

import pytest

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.group import group_runs
from sqlstress.experiments.keys.shown.cells import SPACE, space_figure
from sqlstress.report import Check, Run, Space, TreeSpace, Verdict
from tests.example_keys import PAGES, keys_report, run

WRONG = Verdict((Check("picks", "failed", 5, 1, ("user 1's pick of item 2 is gone",)),))


def said(*runs: Run) -> dict[str, list[str]]:
    """Return what is said of these runs, which are one group, by code."""
    (group,) = group_runs(runs)
    found: dict[str, list[str]] = {}
    for finding in advise_group(group):
        found.setdefault(finding.code, []).append(finding.text)
    return found


def of_types(schema: str = "id-rowid", **seconds: float) -> list[str]:
    """Return what is said of types with these times."""
    return said(*(run(schema, name.replace("_", "-"), took) for name, took in seconds.items()))["id-type"]


def test_the_example_says_which_type_to_take_in_each_schema_and_what_it_costs() -> None:
    found = said(*keys_report().runs)
    assert found["id-type"] == [
        "id-rowid: take int where one database gives all ids (0.25 of uuid4's time, 0.35 of its file), "
        "else uuid7 (0.61 of uuid4's time, 1.0 of its file).",
        "no-key: take int where one database gives all ids (0.61 of uuid4's time, 0.49 of its file), "
        "else uuid7, which says when it was made; it is not clearly quicker than uuid4 "
        "(0.90 of uuid4's time, 1.0 of its file).",
    ]
    assert found["schema"] == [
        "With uuid7, no-key was the quickest (2.80 s) and the smallest (12.1 MB). "
        "Only pair-norowid and pair-rowid keep a pick from being there twice: measure them with --schema."
    ]


def test_of_types_that_are_as_good_the_standard_one_is_advised() -> None:
    (text,) = of_types(uuid4=10.0, ulid=5.0, ulid_monotonic=5.2, uuid7=5.4)
    assert text == "id-rowid: take uuid7 (0.54 of uuid4's time, 1.0 of its file)."
    (text,) = of_types(uuid4=10.0, ulid=5.0, uuid7=6.9)
    assert text.startswith("id-rowid: take ulid (0.50")


def test_where_nothing_is_quicker_uuid4_may_stay() -> None:
    (text,) = of_types(uuid4=5.0, ulid=7.0, uuid7=7.0)
    assert text == "id-rowid: take uuid4: no other was quicker by more than 33%."


def test_integers_that_are_slower_are_not_advised() -> None:
    (text,) = of_types(int=9.0, uuid4=6.0, ulid=5.0)
    assert "int" not in text


def test_without_uuid4_or_anything_beside_it_nothing_is_said_of_types() -> None:
    assert "id-type" not in said(run("no-key", "int"), run("no-key", "uuid7"))
    assert "id-type" not in said(run("no-key", "uuid4"), run("id-rowid", "uuid7"))


def test_the_largest_number_of_processes_and_ids_of_python_count() -> None:
    runs = [
        run("id-rowid", "uuid4", 8.0),
        run("id-rowid", "ulid", 4.0),
        run("id-rowid", "ulid", 1.0, made_by="sqlite"),
        *(run("id-rowid", id_type, 1.0, concurrency=1) for id_type in ("uuid4", "ulid")),
    ]
    (text,) = said(*runs)["id-type"]
    assert text.startswith("id-rowid: take ulid (0.50 of uuid4's time")


def test_what_it_costs_that_no_pick_can_be_there_twice_is_said() -> None:
    (text,) = said(*keys_report(("no-key", "pair-norowid", "pair-rowid")).runs)["schema"]
    assert text == (
        "With uuid7, no-key was the quickest (2.80 s) and the smallest (12.1 MB). "
        "Only pair-norowid and pair-rowid keep a pick from being there twice: "
        "pair-norowid 1.3 times and pair-rowid 1.4 times its file."
    )
    (text,) = said(*keys_report(("id-rowid", "pair-rowid")).runs)["schema"]
    assert text == (
        "With uuid7, pair-rowid was the quickest (3.40 s), id-rowid the smallest (16.0 MB). "
        "Only pair-rowid keeps a pick from being there twice: pair-rowid 1.1 times its file."
    )


def test_a_smallest_schema_that_keeps_picks_from_being_there_twice_is_praised() -> None:
    (text,) = said(*keys_report(("id-rowid", "pair-norowid")).runs)["schema"]
    assert text == (
        "With uuid7, pair-norowid was the quickest (4.80 s) and the smallest (15.8 MB). "
        "It keeps a pick from being there twice."
    )


def test_one_schema_is_compared_with_nothing() -> None:
    assert "schema" not in said(*keys_report(("no-key",)).runs)


def test_ids_made_inside_sqlite_are_compared_with_those_of_python() -> None:
    runs = [
        run("id-rowid", id_type, took, made_by=maker)
        for id_type, maker, took in [
            ("ulid", "python", 5.0),
            ("ulid", "sqlite", 6.0),
            ("uuid7", "python", 5.0),
            ("uuid7", "sqlite", 5.0),
            ("int", "python", 1.0),
            ("int", "sqlite", 9.0),
        ]
    ]
    (text,) = said(*runs)["made-inside"]
    assert text == (
        "With ids made inside SQLite, by a function of Python, it took 1.1 times as long (1.0 to 1.2)."
    )


def test_wrong_data_is_told_and_nothing_is_concluded_from_it() -> None:
    found = said(run("no-key", "uuid4"), run("no-key", "ulid", verdict=WRONG))
    assert found["data-wrong"] == [
        "FAILED at no-key, ulid, 4 processes: picks, 1 of 5 wrong (user 1's pick of item 2 is gone)."
    ]
    assert "id-type" not in found


def test_loads_of_different_sizes_are_not_compared() -> None:
    runs = (run("no-key", "uuid4"), run("no-key", "ulid", users=2000, picks=200))
    assert len(group_runs(runs)) == 2


def test_without_space_only_times_are_told() -> None:
    found = said(
        *(run("no-key", id_type, space=None) for id_type in ("int", "uuid4")), run("id-rowid", "uuid4")
    )
    assert found["id-type"] == [
        "no-key: take int where one database gives all ids (0.61 of uuid4's time), "
        "else uuid4: no other was quicker by more than 33%."
    ]


@pytest.mark.parametrize("name", SPACE)
@pytest.mark.parametrize(
    "space",
    [
        Space(0, 4096, 0, 0, ()),
        Space(0, 4096, 1, 0, (TreeSpace("other", "other", False, 0, 0, 0, 0, 1, 0, 0),)),
        Space(0, 0, 0, 0, (TreeSpace("picks", "picks", False, 0, 0, 0, 0, 0, 0, 0),)),
        None,
    ],
    ids=["nothing", "no picks", "no pages", "not measured"],
)
def test_a_space_that_contradicts_itself_has_no_figure(space: Space | None, name: str) -> None:
    assert not space_figure(space, name)


def test_the_figures_of_the_space_are_those_of_the_table_of_picks() -> None:
    trial = run("no-key", "uuid4").trials[0]
    table, *indices = PAGES["no-key"][1]
    whole = table + sum(indices) + 200
    assert space_figure(trial.space, "file") == whole * 4096
    assert space_figure(trial.space, "table's share") == pytest.approx(table / whole)
    assert space_figure(trial.space, "indices' share") == pytest.approx(sum(indices) / whole)
