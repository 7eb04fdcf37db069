"""What is said of methods: which to take, what they cost, and what SQLite refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.group import group_runs
from sqlstress.experiments.methods.shown.cells import FAILED, LIMIT, TIMEOUT, WRONG, Cells, Series
from sqlstress.report import Check, Run, Verdict
from tests.example_methods import methods_report, run

WRONG_DATA = Verdict((Check("samples", "failed", 5, 1, ("row 3 should not be there",)),))


def said(*runs: Run) -> dict[str, list[str]]:
    """Return what is said of these runs, which are one group, by code."""
    (group,) = group_runs(runs)
    found: dict[str, list[str]] = {}
    for finding in advise_group(group):
        found.setdefault(finding.code, []).append(finding.text)
    return found


def cells(*runs: Run) -> Cells:
    (group,) = group_runs(runs)
    return Cells(group)


def test_the_example_says_which_method_to_take_and_what_the_others_cost() -> None:
    assert said(*methods_report().runs) == {
        "fastest": [
            "Fastest through peewee: inserting by JSON (375,000 rows/s, 2,100 times 1b1); allocating by SPC "
            "(878,000 rows/s, 6,300 times 1b1) or else JSON (316,000 rows/s, 2,300 times 1b1); querying by "
            "SPC (226,000 rows/s, 47 times 1b1) or else JSON (88,400 rows/s, 18 times 1b1)."
        ],
        "transaction": [
            "Put writes into one transaction: it made inserting 52 times and allocating 28 times as fast as "
            "committing each row."
        ],
        "wal": [
            "With a commit for each row WAL made inserting 1.8 times and allocating 3.5 times as fast; "
            "in one transaction inserting 1.5 times."
        ],
        "limit": [
            "LIMIT allocating 101,025 rows by BLK (peewee): 303,075 parameters in one statement; this SQLite "
            "takes 250,000. BLK/n + TSC took 101,025 rows, at 63,600 a second.",
            "LIMIT querying 100 rows by BLK (peewee): parser stack overflow; 86 pairs at most. VALUES took "
            "4,000 rows, at 38,400 a second.",
        ],
        "row-values": [
            "Take VALUES, not ROW: pairs compared as row values took 2.2 times as long through peewee and "
            "4.9 times as long through sqlite3. Some versions of SQLite read the whole table for them; "
            "EXPLAIN QUERY PLAN tells."
        ],
        "binding": [
            "Peewee costs most querying by 1b1 (181 µs a row more than sqlite3 below it), and least "
            "inserting by JSON (no more than sqlite3 below it)."
        ],
    }


def test_nothing_is_advised_from_what_was_not_compared() -> None:
    assert set(said(run("insert", "JSON", 100))) == {"fastest"}
    assert set(said(run("insert", "1b1", 100, "timeout"))) == set()


def test_transactions_that_gain_nothing_are_not_advised() -> None:
    base = run("insert", "1b1", 100, 5000.0)
    assert "transaction" not in said(base, run("insert", "1b1 + TSC", 100, 5100.0))
    assert "transaction" in said(base, run("insert", "1b1 + TSC", 100, 9100.0))


def test_methods_are_compared_at_the_largest_scale_that_both_have_done() -> None:
    found = said(
        run("insert", "1b1", 100, 50.0),
        run("insert", "1b1", 1000, "timeout"),
        run("insert", "1b1 + TSC", 100, 100.0),
        run("insert", "1b1 + TSC", 1000, 9000.0),
    )
    assert "2.0 times as fast" in found["transaction"][0]


def test_row_values_are_warned_of_only_where_they_are_far_slower() -> None:
    values = run("query", "VALUES", 100, 1000.0)
    assert "row-values" not in said(values, run("query", "ROW", 100, 700.0))
    assert (
        "5.0 times as long through sqlite3" in said(values, run("query", "ROW", 100, 200.0))["row-values"][0]
    )


def test_a_limit_is_told_once_for_all_drivers_and_journals_that_met_it() -> None:
    found = said(
        run("query", "BLK", 100, "limit", driver="peewee"),
        run("query", "BLK + WAL", 100, "limit", driver="peewee"),
        run("query", "BLK", 100, "limit", driver="sqlite3"),
    )
    (text,) = found["limit"]
    assert "(peewee and sqlite3)" in text
    assert text.endswith("86 pairs at most.")


def test_what_each_commit_waits_for_is_not_taken_for_the_cost_of_a_binding() -> None:
    found = said(
        run("insert", "1b1", 100, 50.0, driver="peewee"),
        run("insert", "1b1", 100, 100.0, driver="sqlite3"),
        run("insert", "JSON", 100, 100_000.0, driver="peewee"),
        run("insert", "JSON", 100, 200_000.0, driver="sqlite3"),
    )
    assert "binding" not in found
    more = run("insert", "BLK", 100, 10_000.0, driver="peewee"), run("insert", "BLK", 100, 20_000.0)
    assert said(
        run("insert", "JSON", 100, 100_000.0, driver="peewee"), run("insert", "JSON", 100, 200_000.0), *more
    )["binding"] == [
        "Peewee costs most inserting by BLK (50 µs a row more than sqlite3 below it), and least inserting by "
        "JSON (5.0 µs a row more than sqlite3 below it)."
    ]


def test_more_processes_are_set_beside_the_fewest() -> None:
    found = said(
        run("insert", "1b1", 100, 100.0),
        run("insert", "JSON", 100, 1000.0),
        run("insert", "1b1", 100, 40.0, concurrency=4),
        run("insert", "JSON", 100, 1700.0, concurrency=4),
    )
    assert found["contention"] == [
        "Through sqlite3, 4 processes at once came to 0.40 times (inserting by 1b1) to 1.7 times "
        "(inserting by JSON) the rows a second of 1 process."
    ]


def test_processes_are_compared_where_the_fewest_have_come_farthest() -> None:
    runs = [
        run("insert", "JSON", 100, 1000.0),
        run("insert", "JSON", 1000, 2000.0),
        run("insert", "JSON", 100, 3000.0, concurrency=4),
        run("insert", "JSON", 1000, "timeout", concurrency=4),
    ]
    assert "contention" not in said(*runs)
    assert (
        "1.5 times (inserting by JSON)"
        in said(*runs[:3], run("insert", "JSON", 1000, 3000.0, concurrency=4))["contention"][0]
    )


def test_a_cell_that_was_not_tried_ended_as_its_method_did_before() -> None:
    series = Series(1, "sqlite3", "query", "BLK")
    found = cells(
        run("query", "BLK", 80, 500.0),
        run("query", "BLK", 100, "limit"),
        run("query", "BLK", 4000, "skipped"),
    )
    assert [cell.outcome for cell in found.of(series)] == ["done", LIMIT, LIMIT]
    assert found.best(series) is found.at(series, 80)
    other = cells(run("insert", "1b1", 10, "timeout"), run("insert", "1b1", 100, "skipped"))
    assert [cell.outcome for cell in other.all] == [TIMEOUT, TIMEOUT]
    assert [cell.outcome for cell in cells(run("insert", "1b1", 100, "skipped")).all] == [FAILED]


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"error": "worker 1 was killed", "trials": ()}, FAILED),
        ({"trials": ()}, FAILED),
        ({"trials": (replace(run("insert", "1b1", 5).trials[0], verdict=WRONG_DATA),)}, WRONG),
        ({"trials": (replace(run("insert", "1b1", 5).trials[0], error="late"),)}, FAILED),
        ({"trials": (replace(run("insert", "1b1", 5).trials[0], rows_per_s=float("nan")),)}, FAILED),
        ({"trials": (replace(run("insert", "1b1", 5).trials[0], rows_per_s=0.0),)}, FAILED),
        ({"trials": (replace(run("insert", "1b1", 5).trials[0], outcome="of another version"),)}, FAILED),
    ],
    ids=["killed", "without trials", "wrong", "invalid", "nan", "zero", "unknown"],
)
def test_a_figure_that_cannot_be_believed_is_none(change: dict[str, object], outcome: str) -> None:
    changed = replace(run("insert", "1b1", 100), **change)  # type: ignore[arg-type]
    (cell,) = cells(changed).all
    assert (cell.outcome, cell.rows_per_s) == (outcome, 0.0)
    assert "fastest" not in said(changed)


def test_one_trial_of_several_that_timed_out_makes_the_cell_a_time_out() -> None:
    done, late = run("insert", "1b1", 100, 5000.0).trials[0], run("insert", "1b1", 100, "timeout").trials[0]
    several = replace(run("insert", "1b1", 100), trials=(done, late, done))
    assert [cell.outcome for cell in cells(several).all] == [TIMEOUT]
