"""Figures and conclusion of an A/B test from its pairs, and the differences of its arms."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.analysis.ab import NAMES, arm_differences, conclusion, differences, estimate, figure
from sqlstress.analysis.wording import signed
from sqlstress.experiments.sql.spec import Scripted, Scripts
from sqlstress.report import AbTest, Arm, Latency, Report, Run, SqliteBuild
from sqlstress.report.case import Case, Settings
from sqlstress.show.blocks import MISSING, Table
from sqlstress.show.study_view import ab_blocks
from sqlstress.user_work.options import Data
from tests.ab_report import CASE, TEST, TRIAL, ab_report, around, trial
from tests.drawing import examples
from tests.example_report import assert_golden_texts
from tests.rate_report import rate_trial

P99 = replace(TEST, metric="p99")


def test_figure_is_the_tps_or_p99_of_all_operations() -> None:
    assert figure(TRIAL, "tps") == TRIAL.tps
    p99_ns = figure(TRIAL, "p99")
    get, replaces = TRIAL.latency["get"].p99_ns, TRIAL.latency["replace"].p99_ns
    assert p99_ns and get and replaces and get < p99_ns <= replaces
    # The figure is of operations, not of their statements.
    statements = {**TRIAL.latency, "UPDATE": Latency.from_buckets({0: 1_000_000}, 1)}
    assert figure(replace(TRIAL, latency=statements), "p99") == p99_ns


def test_p99_at_a_rate_counts_from_due_times() -> None:
    due = rate_trial(2_900, 3_000)
    assert due.arrived and due.arrived.all_kinds
    assert figure(due, "p99") == due.arrived.all_kinds.p99_ns
    assert figure(replace(due, arrived=None), "p99") != figure(due, "p99")


@pytest.mark.parametrize("tps", [0.0, -5.0, float("inf"), float("nan")])
def test_figure_needs_a_finite_positive_tps(tps: float) -> None:
    assert figure(replace(TRIAL, tps=tps), "tps") is None
    assert figure(replace(TRIAL, tps=tps, latency={}), "p99") is None


def test_difference_is_negative_if_b_is_worse_by_either_metric() -> None:
    slower = ab_report([[0.5] * 10])
    for test in (TEST, P99):
        ((first, *rest),) = differences(slower, test)
        assert first < 0
        assert rest == [first] * 9
        assert (estimate([first], test.metric, 0.01).ratio < 1) == (test is TEST)


def test_only_pairs_that_every_cell_has_count() -> None:
    report = ab_report([around(1, 10), around(1, 10)])
    broken = replace(
        report.runs[3], trials=(replace(report.runs[3].trials[0], error="late"), *report.runs[3].trials[2:])
    )
    cells = differences(replace(report, runs=(*report.runs[:3], broken)), TEST)
    assert [len(cell) for cell in cells] == [8, 8]
    alone = ab_report([[1.0] * 2], decided=False)
    lone = replace(alone.runs[1], trials=(trial(5),))
    assert differences(replace(alone, runs=(alone.runs[0], lone)), TEST) == [[]]


def stopped(cell: list[float], test: AbTest = TEST) -> Report:
    return ab_report([cell], test, decided=False)


LIMITED = replace(TEST, max_time_s=60.0)
CONCLUDED = {
    "about the same": ab_report([around(0.99, 10)]),
    "faster": ab_report([around(1.1, 10)]),
    "slower by less than is allowed": ab_report([around(0.95, 10)]),
    "slower by p99": ab_report([around(0.6, 10)], P99),
    "faster by p99": ab_report([around(1.5, 10)], P99),
    "the same": ab_report([[1.0] * 10]),
    "two cells": ab_report([around(0.99, 20), around(1.02, 20)]),
    "slower by more": ab_report([around(0.8, 10)]),
    "one of two cells slower": ab_report([around(0.8, 20), around(1.3, 20)]),
    "a drop that may be allowed": ab_report([around(0.87, 30, 0.1)]),
    "no rise shown": ab_report([around(1.0, 14, 0.5)], P99),
    "a noisy machine": ab_report([around(1.05, 14, 1.2)]),
    "more pairs would help": ab_report([around(1.0, 100, 0.8)]),
    "far more pairs than are offered": ab_report([around(1.0, 100, 2.0)]),
    "more time would help": ab_report([around(1.0, 30, 0.3)], LIMITED),
    "more would help": ab_report([around(1.0, 30, 0.3)]),
    "at the limit": ab_report([around(0.9, 30)]),
    "near the limit": ab_report([around(0.912, 30, 0.1)]),
    "too few pairs": ab_report([around(1.0, 5)]),
    "stopped": stopped([1.0] * 3),
    "stopped at once": stopped([]),
    "wrong data": stopped(around(1.0, 10), replace(TEST, verdict="fail", reason="the data of B is wrong")),
}


def conclusion_text(report: Report) -> str:
    assert report.ab
    return conclusion(report, report.ab).text


def test_conclusion_has_result_possible_change_and_advice() -> None:
    texts = {name: conclusion_text(report) for name, report in CONCLUDED.items()}
    assert_golden_texts("ab-conclusions.txt", texts)


@given(st.floats(0.7, 1.4), st.integers(6, 30), st.floats(0.005, 0.5), st.sampled_from([TEST, P99]))
@settings(max_examples=examples(0.5))
def test_table_and_conclusion_have_the_same_interval(
    ratio: float, pairs: int, spread: float, test: AbTest
) -> None:
    report = ab_report([around(ratio, pairs, spread)], test)
    text = conclusion_text(report)
    assert report.ab
    table = next(block for block in ab_blocks(report, report.ab) if isinstance(block, Table))
    (row,) = table.rows
    _, change, low, high = row[-4:]
    interval = "" if low == MISSING else f"{low} to {high}, "
    assert f"{NAMES[test.metric]} {change} ({interval}{pairs} pairs)" in text
    on_both_sides = low == MISSING or (low.startswith("-") and high.startswith("+"))
    assert "annot tell whether B is faster" in text or not on_both_sides


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.0, "0%"), (1.0312, "+3.1%"), (0.76, "-24%"), (1.00001, "0%"), (6.3, "6.3 times")]
)
def test_ratio_is_written_as_a_change(ratio: float, text: str) -> None:
    assert signed(ratio) == text


APSW = replace(CASE, driver="apsw")
OLD = SqliteBuild("sqlite3", "3.12", "3.40.1", "2022-12-28 df5c253c", ("THREADSAFE=1",))
NEW = SqliteBuild(
    "apsw", "3.54.1.0", "3.54.1", "2026-10-01 0a1b2c3d", ("ENABLE_SETLK_TIMEOUT", "THREADSAFE=1")
)
PYTHONS = (
    Arm("A", (), "a/bin/python", "CPython 3.14.0", "0.2.0", (OLD, NEW)),
    Arm("B", (), "b/bin/python", "CPython 3.14.0", "0.2.0", (OLD, replace(NEW, version="3.53.0"))),
)
BARE = Arm("A", (), "old/python", "CPython 3.11.7", "0.1.0", (replace(OLD, compile_options=()),))


def case_of_scripts(*scripts: Scripted, digest: str) -> Case:
    return Case("sql", spec=Scripts(scripts, Data(setup="s.sql", setup_digest=digest)))


SCRIPTS = Scripted("old.sql", "SELECT 1;"), Scripted("new.sql", "SELECT 2;", 3)


ARMS = Arm("A"), Arm("B")
ONE_LIBRARY = replace(NEW, version=OLD.version, compile_options=OLD.compile_options)
DIFFERENT: dict[str, tuple[tuple[Arm, Arm], tuple[Case, Case], tuple[SqliteBuild, ...]]] = {
    "alike": (ARMS, (CASE, CASE), ()),
    "cases": (
        (BARE, Arm("B")),
        (CASE, replace(APSW, settings=Settings(synchronous=None, pragmas=(("a", "1"),)))),
        (),
    ),
    "drivers": (ARMS, (CASE, APSW), (OLD, NEW)),
    "check-ins": (ARMS, (CASE, APSW), (OLD, ONE_LIBRARY)),
    "one library": (PYTHONS, (CASE, CASE), ()),
    "each its library": (PYTHONS, (APSW, APSW), ()),
    "scripts": (ARMS, (case_of_scripts(SCRIPTS[0], digest="a"), case_of_scripts(*SCRIPTS, digest="b")), ()),
}


def test_arm_differences_are_those_of_cases_and_pythons() -> None:
    differences_by_name = {}
    for name, (arms, cases, builds) in DIFFERENT.items():
        report = stopped([1.0])
        report = replace(report, environment=replace(report.environment, builds=builds))
        differences_by_name[name] = arm_differences(report, replace(TEST, arms=arms), *map(Run, cases))
    assert_golden_texts("ab-differences.txt", differences_by_name)
