"""What is said of methods: which to take, what they cost, and what SQLite refuses."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.group import group_runs
from sqlstress.experiments.methods.cells import FAILED, LIMIT, TIMEOUT, WRONG, Cells, Series
from sqlstress.report import Check, Run, Verdict
from sqlstress.show.phrases import phrase
from tests.example_methods import methods_report, run
from tests.several import several

WRONG_DATA = Verdict((Check("samples", "failed", 5, 1, ("row 3 should not be there",)),))


def said(*runs: Run) -> dict[str, list[str]]:
    """Return what is said of these runs, which are one group, by code."""
    (group,) = group_runs(runs)
    found: dict[str, list[str]] = {}
    for finding in advise_group(group):
        found.setdefault(finding.code, []).append(phrase(finding))
    return found


def cells(*runs: Run) -> Cells:
    (group,) = group_runs(runs)
    return Cells(group)


def over_passes(*runs: Run, noise: float = 0.01) -> dict[str, list[str]]:
    """Return what is said of these runs over five passes."""
    return said(*(several(one, noise) for one in runs))


LIMITS = [
    "LIMIT allocating 101,025 rows by BLK (peewee): 303,075 parameters in one statement; this SQLite "
    "takes 250,000. BLK/n + TSC took 101,025 rows, at 63,600 a second.",
    "LIMIT querying 100 rows by BLK (peewee): parser stack overflow; 86 pairs at most. VALUES took "
    "4,000 rows, at 38,400 a second.",
]


def test_the_example_says_which_method_to_take_and_what_the_others_cost() -> None:
    assert over_passes(*methods_report().runs) == {
        "methods-fastest": [
            "Fastest through peewee: inserting by JSON (375,000 rows/s, 2,100 times (2,000 to 2,200) as fast "
            "as 1b1); allocating by SPC (878,000 rows/s, 6,300 times (6,000 to 6,700) as fast as 1b1), or "
            "else JSON (316,000 rows/s, 2,300 times (2,200 to 2,400) as fast as 1b1); querying by SPC "
            "(226,000 rows/s, 47 times (45 to 49) as fast as 1b1), or else JSON (88,400 rows/s, 18 times "
            "(18 to 19) as fast as 1b1)."
        ],
        "transaction": [
            "Put writes into one transaction: beside a commit for each row it made inserting 52 times (51 to "
            "54) as fast and allocating 28 times (26 to 29) as fast."
        ],
        "wal": [
            "WAL: with a commit for each row it made inserting 1.8 times (1.7 to 1.9) as fast and allocating "
            "3.5 times (3.3 to 3.6) as fast; in one transaction it made inserting 1.5 times (1.5 to 1.6) as "
            "fast."
        ],
        "method-limit": LIMITS,
        "row-values": [
            "Take VALUES, not ROW: pairs compared as row values took 2.2 times (2.1 to 2.4) as long through "
            "peewee and 4.9 times (4.6 to 5.1) as long through sqlite3. Some versions of SQLite read the "
            "whole table for them; EXPLAIN QUERY PLAN tells."
        ],
        "binding": [
            "What Peewee costs beside sqlite3 below it: most querying by 1b1 (181 µs a row, 8.1 times (7.7 "
            "to 8.5) as long); less than 10% inserting by JSON."
        ],
    }


def test_of_single_trials_only_the_highest_is_told_and_what_it_is_worth() -> None:
    assert said(*methods_report().runs) == {
        "methods-highest": [
            "Highest through peewee: inserting by JSON (375,000 rows/s); allocating by SPC (878,000 rows/s); "
            "querying by SPC (226,000 rows/s)."
        ],
        "cannot-tell": ["So few trials tell no difference from noise: measure with --repeat 5."],
        "method-limit": LIMITS,
    }


def test_methods_that_noise_hides_are_not_ranked() -> None:
    found = over_passes(
        run("insert", "1b1", 100, 100.0),
        run("insert", "1b1 + WAL", 100, 110.0),
        run("insert", "1b1 + TSC", 100, 9000.0),
        run("insert", "JSON", 100, 9500.0),
        noise=0.2,
    )
    assert re.fullmatch(
        r"Fastest through sqlite3: inserting by 1b1 \+ TSC and JSON \(about 9,500 rows/s, 95 times \(.*\) as "
        r"fast as 1b1\), which can't be told apart\.",
        found["methods-fastest"][0],
    )
    assert found["wal"] == ["WAL: with a commit for each row it can't be told for inserting."]
    assert found["cannot-tell"][0].startswith("Why something can't be told: 5 passes are too noisy")


def test_methods_that_hardly_differ_are_about_equal() -> None:
    found = over_passes(
        run("insert", "1b1", 100, 100.0),
        run("insert", "1b1 + WAL", 100, 101.0),
        run("insert", "1b1 + TSC", 100, 100.5),
        noise=0.004,
    )
    assert found["methods-fastest"][0].endswith(
        "1b1 + TSC (about 101 rows/s, about as fast as 1b1), which are about equal."
    )
    assert found["wal"] == ["WAL: with a commit for each row it made inserting about as fast."]
    assert "transaction" not in found


def test_a_series_is_beaten_only_where_all_of_its_scales_are() -> None:
    found = over_passes(
        run("insert", "BLK", 100, 1000.0),
        run("insert", "BLK", 10_000, 9000.0),
        run("insert", "JSON", 100, 100.0),
        run("insert", "JSON", 10_000, 9500.0),
        noise=0.1,
    )
    assert "BLK and JSON (about 9,500 rows/s), which can't be told apart" in found["methods-fastest"][0]


def test_a_cell_with_fewer_passes_than_the_others_takes_no_conclusion_from_them() -> None:
    runs = [several(run("insert", tricks, 100, rate)) for tricks, rate in (("1b1", 100.0), ("JSON", 900.0))]
    short = several(run("insert", "BLK", 100, 5000.0))
    found = said(*runs, replace(short, trials=short.trials[:2]))
    assert found["methods-fastest"][0].startswith("Fastest through sqlite3: inserting by JSON (900 rows/s")


def test_nothing_is_advised_from_what_was_not_compared() -> None:
    assert set(over_passes(run("insert", "JSON", 100))) == {"methods-fastest"}
    assert set(said(run("insert", "1b1", 100, "timeout"))) == set()


def test_transactions_that_gain_nothing_are_not_advised() -> None:
    base = run("insert", "1b1", 100, 5000.0)
    assert "transaction" not in over_passes(base, run("insert", "1b1 + TSC", 100, 5100.0), noise=0.003)
    (text,) = over_passes(base, run("insert", "1b1 + TSC", 100, 5100.0), noise=0.3)["transaction-unclear"]
    assert text == "Whether one transaction is faster than a commit for each row can't be told."
    (text,) = over_passes(base, run("insert", "1b1 + TSC", 100, 9100.0))["transaction"]
    assert text.startswith("Put writes into one transaction")


def test_methods_are_compared_at_the_largest_scale_that_both_have_done() -> None:
    found = over_passes(
        run("insert", "1b1", 100, 50.0),
        run("insert", "1b1", 1000, "timeout"),
        run("insert", "1b1 + TSC", 100, 100.0),
        run("insert", "1b1 + TSC", 1000, 9000.0),
    )
    assert "it made inserting 2.0 times (" in found["transaction"][0]


def test_row_values_are_warned_of_only_where_they_are_far_slower_beyond_doubt() -> None:
    values = run("query", "VALUES", 100, 1000.0)
    assert "row-values" not in over_passes(values, run("query", "ROW", 100, 700.0))
    assert "row-values" not in over_passes(values, run("query", "ROW", 100, 400.0), noise=0.1)
    (text,) = over_passes(values, run("query", "ROW", 100, 200.0))["row-values"]
    assert re.search(r"took 5\.0 times \(4\.\d to 5\.\d\) as long through sqlite3", text)


def test_a_limit_is_told_once_for_all_drivers_and_journals_that_met_it() -> None:
    found = said(
        run("query", "BLK", 100, "limit", driver="peewee"),
        run("query", "BLK + WAL", 100, "limit", driver="peewee"),
        run("query", "BLK", 100, "limit", driver="sqlite3"),
    )
    (text,) = found["method-limit"]
    assert "(peewee and sqlite3)" in text
    assert text.endswith("86 pairs at most.")


def both(tricks: str, peewee: float, sqlite3: float) -> list[Run]:
    """Return a method through Peewee and below it."""
    return [
        run("insert", tricks, 100, rate, driver=driver)
        for driver, rate in (("peewee", peewee), ("sqlite3", sqlite3))
    ]


def test_what_each_commit_waits_for_is_not_taken_for_the_cost_of_a_binding() -> None:
    assert "binding" not in over_passes(*both("1b1", 50.0, 100.0))
    (text,) = over_passes(*both("JSON", 100_000.0, 200_000.0), *both("BLK", 10_000.0, 20_000.0))["binding"]
    assert re.fullmatch(
        r"What Peewee costs beside sqlite3 below it: most inserting by BLK \(50 µs a row, 2\.0 times \(1\.\d "
        r"to 2\.\d\) as long\)\.",
        text,
    )


def test_what_costs_as_much_for_each_row_as_the_dearest_is_named_beside_it() -> None:
    (text,) = over_passes(*both("JSON", 9_800.0, 20_000.0), *both("BLK", 10_000.0, 20_000.0), noise=0.05)[
        "binding"
    ]
    assert text.index("inserting by JSON (52 µs") < text.index("inserting by BLK (50 µs")


def test_a_binding_of_which_noise_hides_the_cost_is_said_to_be_unknown() -> None:
    (text,) = over_passes(*both("BLK", 9_000.0, 10_000.0), noise=0.2)["binding"]
    assert text == "What Peewee costs beside sqlite3 below it: of 1 way it can't be told."


def test_more_processes_are_set_beside_the_fewest() -> None:
    found = over_passes(
        run("insert", "1b1", 100, 100.0),
        run("insert", "JSON", 100, 1000.0),
        run("insert", "BLK", 100, 1000.0),
        run("insert", "1b1", 100, 40.0, concurrency=4),
        run("insert", "JSON", 100, 1700.0, concurrency=4),
        run("insert", "BLK", 100, 1000.0, concurrency=4),
        noise=0.004,
    )
    assert found["contention"] == [
        "Through sqlite3, 4 processes at once, rows a second beside those of 1 process: fewer inserting by "
        "1b1 (0.40 times, 0.39 to 0.41); more inserting by JSON (1.7 times, 1.7 to 1.7); about as many "
        "inserting by BLK."
    ]


def test_what_noise_hides_of_more_processes_is_counted() -> None:
    runs = [run("insert", "JSON", 100, 1000.0), run("insert", "JSON", 100, 1100.0, concurrency=4)]
    (text,) = over_passes(*runs, noise=0.2)["contention"]
    assert text.endswith("beside those of 1 process: of 1 way it can't be told.")


def test_processes_share_rows_and_are_compared_by_those_and_not_by_transactions() -> None:
    alone, four = (run("insert", "JSON", 100, 1000.0, concurrency=count) for count in (1, 4))
    shared = replace(four, trials=(replace(four.trials[0], tps=4 * four.trials[0].tps),))
    (text,) = over_passes(alone, shared, noise=0.004)["contention"]
    assert text.endswith("about as many inserting by JSON.")


def test_processes_are_compared_where_the_fewest_have_come_farthest() -> None:
    runs = [
        run("insert", "JSON", 100, 1000.0),
        run("insert", "JSON", 1000, 2000.0),
        run("insert", "JSON", 100, 3000.0, concurrency=4),
        run("insert", "JSON", 1000, "timeout", concurrency=4),
    ]
    assert "contention" not in over_passes(*runs)
    found = over_passes(*runs[:3], run("insert", "JSON", 1000, 3000.0, concurrency=4))
    assert "more inserting by JSON (1.5 times" in found["contention"][0]


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
    assert "methods-fastest" not in said(changed)


def test_one_trial_of_several_that_timed_out_makes_the_cell_a_time_out() -> None:
    done, late = run("insert", "1b1", 100, 5000.0).trials[0], run("insert", "1b1", 100, "timeout").trials[0]
    several = replace(run("insert", "1b1", 100), trials=(done, late, done))
    assert [cell.outcome for cell in cells(several).all] == [TIMEOUT]
