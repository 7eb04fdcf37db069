"""Findings on methods: the fastest methods, their cost, and the limits of SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.classics.methods_show import (
    FAILED,
    LIMIT,
    TIMEOUT,
    WRONG,
    MethodsCells,
    best,
)
from sqlstress.report import Check, Run, Verdict
from tests.example_methods import methods_report, run
from tests.several import facts, findings, sentences, several

WRONG_DATA = Verdict((Check("samples", "failed", 5, 1, ("row 3 should not be there",)),))


def cells(*runs: Run) -> MethodsCells:
    (group,) = group_runs(runs)
    return MethodsCells(group)


def insert(tricks: str, rate: float | str, scale: int = 100, **fields: Any) -> Run:
    return run("insert", tricks, scale, rate, **fields)


def lead(known: dict[str, Mapping[str, Any]], phase: int = 0, which: str = "fastest") -> Mapping[str, Any]:
    """Return the facts of the fastest methods of a phase."""
    leading: Mapping[str, Any] = getattr(known["methods-fastest"]["phases"][phase], which)._asdict()
    return leading


def test_example_names_the_fastest_methods_and_the_cost_of_others() -> None:
    known = facts(*methods_report().runs, noise=0.01)
    assert known.keys() == {"methods-fastest", "transaction", "wal", "method-limit"}
    assert [lead(known, phase)["methods"] for phase in range(3)] == [("JSON",), ("SPC",), ("SPC",)]
    assert known["methods-fastest"]["phases"][0].others is None
    assert [lead(known, phase, "others")["methods"] for phase in (1, 2)] == [("JSON",), ("JSON",)]
    assert lead(known)["ratio"].estimate == pytest.approx(375_267 / 181.8)
    gains = known["transaction"]["gains"]
    assert [gain.ratio.estimate for gain in gains] == pytest.approx([9515 / 181.8, 3845.6 / 138.7])
    refused = [each.facts["instead"] for each in findings(*methods_report().runs)["method-limit"]]
    assert refused == ["BLK/n or JSON", "VALUES or JSON"]


def test_methods_that_noise_hides_are_not_ranked() -> None:
    runs = [insert("1b1", 100.0), insert("1b1 + WAL", 110.0), insert("1b1 + TSC", 9e3), insert("JSON", 9.5e3)]
    known = facts(*runs, noise=0.2)
    assert (lead(known)["methods"], lead(known)["unclear"]) == (("1b1 + TSC", "JSON"), True)
    assert known["wal"]["unclear"] == ("inserting",)
    assert known["cannot-tell"]["noise"]


def test_methods_that_hardly_differ_are_about_equal() -> None:
    runs = [insert("1b1", 100.0), insert("1b1 + WAL", 101.0), insert("1b1 + TSC", 100.5)]
    known = facts(*runs, noise=0.004)
    assert (len(lead(known)["methods"]), lead(known)["equal"], lead(known)["unclear"]) == (3, True, False)
    assert sentences(*runs, noise=0.004)["wal"].endswith("inserting about as fast.")
    assert "transaction" not in known


def test_series_loses_only_if_it_loses_at_all_scales() -> None:
    runs = [
        *(insert("BLK", rate, scale) for scale, rate in ((100, 1000.0), (10_000, 9000.0))),
        *(insert("JSON", rate, scale) for scale, rate in ((100, 100.0), (10_000, 9500.0))),
    ]
    known = lead(facts(*runs, noise=0.1))
    assert (known["methods"], known["rate"], known["unclear"]) == (("BLK", "JSON"), 9500.0, True)


def test_cell_with_fewer_passes_does_not_affect_conclusions() -> None:
    runs = [several(insert(tricks, rate)) for tricks, rate in (("1b1", 100.0), ("JSON", 900.0))]
    short = several(insert("BLK", 5000.0))
    assert lead(facts(*runs, replace(short, trials=short.trials[:2])))["methods"] == ("JSON",)


def test_no_advice_is_given_without_a_comparison_or_a_gain() -> None:
    assert facts(insert("JSON", 1000.0), noise=0.01).keys() == {"methods-fastest"}
    assert facts(insert("1b1", "timeout")) == {}
    base, slightly = insert("1b1", 5000.0), insert("1b1 + TSC", 5100.0)
    assert "transaction" not in facts(base, slightly, noise=0.003)
    assert "transaction" not in facts(base, slightly, noise=0.3)
    assert "transaction" in facts(base, insert("1b1 + TSC", 9100.0), noise=0.01)


def test_methods_are_compared_at_their_largest_common_scale() -> None:
    runs = [
        *(insert("1b1", rate, scale) for scale, rate in ((100, 50.0), (1000, "timeout"))),
        *(insert("1b1 + TSC", rate, scale) for scale, rate in ((100, 100.0), (1000, 9000.0))),
    ]
    (gain,) = facts(*runs, noise=0.01)["transaction"]["gains"]
    assert gain.ratio.estimate == pytest.approx(2.0)


def test_limit_is_reported_once_for_all_its_drivers_and_journal_modes() -> None:
    series = (("BLK", "peewee"), ("BLK + WAL", "peewee"), ("BLK", "sqlite3"))
    known = findings(*(run("query", tricks, 100, "limit", driver=driver) for tricks, driver in series))
    (limit,) = known["method-limit"]
    assert limit.facts["drivers"] == ("peewee", "sqlite3")


def test_skipped_cell_has_the_outcome_of_its_smaller_scale() -> None:
    known = cells(*(run("query", "BLK", *each) for each in ((80, 500.0), (100, "limit"), (4000, "skipped"))))
    series = known.series("query", "BLK")
    assert [cell.outcome for cell in series] == ["done", LIMIT, LIMIT]
    assert best(series) is series[0]
    other = cells(insert("1b1", "timeout", 10), insert("1b1", "skipped", 100))
    assert [cell.outcome for cell in other.all] == [TIMEOUT, TIMEOUT]
    assert [cell.outcome for cell in cells(insert("1b1", "skipped")).all] == [FAILED]


TRIAL = insert("1b1", 1000.0, 5).trials[0]


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"error": "worker 1 was killed", "trials": ()}, FAILED),
        ({"trials": (replace(TRIAL, verdict=WRONG_DATA),)}, WRONG),
        ({"trials": (replace(TRIAL, error="late"),)}, FAILED),
        ({"trials": (replace(TRIAL, rows_per_s=float("nan")),)}, FAILED),
        ({"trials": (replace(TRIAL, rows_per_s=0.0),)}, FAILED),
        ({"trials": (replace(TRIAL, outcome="of another version"),)}, FAILED),
        # One trial of several that timed out makes the cell a time-out.
        ({"trials": (TRIAL, insert("1b1", "timeout").trials[0], TRIAL)}, TIMEOUT),
    ],
    ids=["killed", "wrong", "invalid", "nan", "zero", "unknown", "late"],
)
def test_invalid_figures_count_as_failures(change: dict[str, Any], outcome: str) -> None:
    changed = replace(insert("1b1", 1000.0), **change)
    (cell,) = cells(changed).all
    assert (cell.outcome, cell.rows_per_s) == (outcome, 0.0)
    assert "methods-fastest" not in facts(changed)
