"""What the pairs of an A/B test say, as figures and as a sentence, and what its arms differ in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.analysis.ab import NAMES, arm_differences, conclusion, differences, estimate, figure
from sqlstress.analysis.wording import signed
from sqlstress.experiments.sql.experiment import Scripted, Scripts
from sqlstress.report import AbTest, Arm, Latency, Report, SqliteBuild
from sqlstress.report.case import Case, Settings
from sqlstress.show.blocks import MISSING, Table
from sqlstress.show.phrases import phrase
from sqlstress.show.study_view import ab_blocks
from sqlstress.user_work.options import Data
from tests.ab_report import CASE, TEST, TRIAL, ab_report, around, trial
from tests.drawing import examples
from tests.rate_report import rate_trial

P99 = replace(TEST, metric="p99")


def test_a_figure_is_the_tps_or_the_p99_of_all_operations_together() -> None:
    assert figure(TRIAL, "tps") == TRIAL.tps
    found = figure(TRIAL, "p99")
    get, replaces = TRIAL.latency["get"].p99_ns, TRIAL.latency["replace"].p99_ns
    assert found and get and replaces and get < found <= replaces
    # Of operations, not of the statements within them.
    statements = {**TRIAL.latency, "UPDATE": Latency.from_buckets({0: 1_000_000}, 1)}
    assert figure(replace(TRIAL, latency=statements), "p99") == found


def test_the_p99_at_a_rate_counts_from_when_operations_were_due() -> None:
    due = rate_trial(2_900, 3_000)
    assert due.arrived and due.arrived.whole
    assert figure(due, "p99") == due.arrived.whole.p99_ns
    assert figure(replace(due, arrived=None), "p99") != figure(due, "p99")


@pytest.mark.parametrize("tps", [0.0, -5.0, float("inf"), float("nan")])
def test_what_has_no_logarithm_is_no_figure(tps: float) -> None:
    assert figure(replace(TRIAL, tps=tps), "tps") is None
    assert figure(replace(TRIAL, tps=tps, latency={}), "p99") is None


def test_a_difference_is_below_zero_where_b_is_worse_by_either_metric() -> None:
    slower = ab_report([[0.5] * 10])
    for test in (TEST, P99):
        ((one, *others),) = differences(slower, test)
        assert one < 0
        assert others == [one] * 9
        assert (estimate([one], test.metric, 0.01).ratio < 1) == (test is TEST)


def test_only_pairs_that_every_cell_has_count() -> None:
    report = ab_report([around(1, 10), around(1, 10)])
    broken = replace(
        report.runs[3], trials=(replace(report.runs[3].trials[0], error="late"), *report.runs[3].trials[2:])
    )
    found = differences(replace(report, runs=(*report.runs[:3], broken)), TEST)
    assert [len(cell) for cell in found] == [8, 8]
    alone = ab_report([[1.0] * 2], decided=False)
    lone = replace(alone.runs[1], trials=(trial(5),))
    assert differences(replace(alone, runs=(alone.runs[0], lone)), TEST) == [[]]


def test_an_estimate_has_no_interval_before_there_are_six_pairs() -> None:
    assert estimate([0.1] * 5, "tps", 0.01).low is None
    assert estimate([0.1] * 6, "tps", 0.01).low == pytest.approx(1.105, 1e-3)


def of_old(cells: list[list[float]], verdict: str) -> Report:
    """Return a report as it was when the estimate decided."""
    report = ab_report(cells)
    assert report.ab
    (look,) = report.ab.looks
    old = replace(look, worst=None, seconds=None, verdict=verdict)
    test = replace(report.ab, looks=(old,), verdict=verdict, order="turns", max_pairs=None, max_time_s=None)
    return replace(report, ab=test)


def stopped(cell: list[float], test: AbTest = TEST) -> Report:
    return ab_report([cell], test, decided=False)


NEAR = "The change is near the limit, where no number of pairs can decide: use another --max-drop."
LIMITED = replace(TEST, max_time_s=60.0)


@pytest.mark.parametrize(
    ("report", "begin", "end"),
    [
        (
            ab_report([around(0.99, 10)]),
            "PASS: no drop of more than 10%. Cannot tell whether B is faster: TPS -1.0% (-3.0% to +1.0%, 10 "
            "pairs). A smaller --max-drop measures longer.",
            "",
        ),
        (
            ab_report([around(1.1, 10)]),
            "PASS: no drop of more than 10%. B is faster: TPS +10% (+7.8% to +12%, 10 pairs).",
            "",
        ),
        (
            ab_report([around(0.95, 10)]),
            "PASS: no drop of more than 10%. B is slower: TPS -5.0% (-6.9% to -3.1%, 10 pairs).",
            "",
        ),
        (ab_report([around(0.6, 10)], P99), "FAIL: B is slower: p99 +72% (+69% to +75%, 10 pairs).", ""),
        (
            ab_report([around(1.5, 10)], P99),
            "PASS: no rise of more than 10%. B is faster: p99 -31% (-33% to -30%, 10 pairs).",
            "",
        ),
        (
            ab_report([[1.0] * 10]),
            "PASS: no drop of more than 10%. Cannot tell whether B is faster: TPS 0% (0% to 0%, 10 pairs). "
            "A smaller --max-drop measures longer.",
            "",
        ),
        (
            ab_report([around(0.99, 20), around(1.02, 20)]),
            "PASS: no drop of more than 10% in the mean of 2 cells. Cannot tell whether B is faster: TPS ",
            "",
        ),
        (
            ab_report([around(0.8, 10)]),
            "FAIL: B is slower: TPS -20% (-22% to -18%, 10 pairs). At most 10% is allowed: ",
            "find out why before you use B.",
        ),
        (
            ab_report([around(0.8, 20), around(1.3, 20)]),
            "FAIL: at 2 processes on 1 file B is slower: TPS -20% (-22% to -18%, 20 pairs). ",
            "At most 10% is allowed: find out why before you use B.",
        ),
        (
            ab_report([around(0.87, 30, 0.1)]),
            "INCONCLUSIVE: a drop of at least 9.3% shown, up to 17% possible by the verdict's "
            "interval, 10% is allowed.",
            "",
        ),
        (ab_report([around(1.0, 14, 0.5)], P99), "INCONCLUSIVE: no rise shown, up to ", ""),
        (
            ab_report([around(1.05, 14, 1.2)]),
            "INCONCLUSIVE: no drop shown, up to 54% possible by the verdict's interval, 10% is allowed. "
            "Cannot tell whether B is faster: TPS +5.0% (-45% to 2.0 times, 14 pairs). The machine is too "
            "noisy: half of the ",
            ". Use longer slices (--duration 4s) or a quieter machine.",
        ),
        (
            ab_report([around(1.0, 100, 0.8)]),
            "INCONCLUSIVE: ",
            "If B equals A, about 240 pairs would show it (--max-pairs 240 --max-time 25m). Use longer "
            "slices (--duration 4s) or a quieter machine.",
        ),
        (
            ab_report([around(1.0, 100, 2.0)]),
            "INCONCLUSIVE: ",
            "about 1,500 pairs would show it. Use longer slices (--duration 6s) or a quieter machine.",
        ),
        (
            ab_report([around(1.0, 30, 0.3)], LIMITED),
            "INCONCLUSIVE: ",
            "About 42 pairs would decide it if this result persists (--max-time 5m).",
        ),
        (ab_report([around(1.0, 30, 0.3)]), "INCONCLUSIVE: ", " would decide it if this result persists."),
        (ab_report([around(0.9, 30)]), "INCONCLUSIVE: ", NEAR),
        (ab_report([around(0.912, 30, 0.1)]), "INCONCLUSIVE: ", NEAR),
        (
            ab_report([around(1.0, 5)]),
            "INCONCLUSIVE: not enough was measured to show anything, 10% is allowed.",
            "Too few pairs for a verdict: use a longer --max-time, for 10 pairs or more.",
        ),
        (stopped([1.0] * 3), "Undecided: so far TPS 0% (3 pairs). ", "That is too little for a conclusion."),
        (stopped([]), "Undecided: no pair was measured.", ""),
        (
            stopped(around(1.0, 10), replace(TEST, verdict="fail", reason="the data of B is wrong")),
            "FAIL: the data of B is wrong. Find out why before you use any figure.",
            "",
        ),
        # Once, the estimate alone decided.
        (
            of_old([around(1.086, 10, 1.2)], "pass"),
            "PASS, but only by its estimate: no drop shown, up to 67% possible. Cannot tell whether B is fa",
            "",
        ),
        (of_old([around(1.0, 10)], "pass"), "PASS: no drop of more than 10%. Cannot tell whether B ", ""),
        (
            of_old([around(0.88, 20, 0.1), around(1.0, 20)], "fail"),
            "FAIL: at 2 processes on 1 file B is slower: TPS -12% (-",
            "",
        ),
    ],
)
def test_the_conclusion_says_what_is_shown_what_is_possible_and_what_would_help(
    report: Report, begin: str, end: str
) -> None:
    assert report.ab
    said = phrase(conclusion(report, report.ab))
    assert said.startswith(begin) and said.endswith(end)


@given(st.floats(0.7, 1.4), st.integers(6, 30), st.floats(0.005, 0.5), st.sampled_from([TEST, P99]))
@settings(max_examples=examples(0.5))
def test_the_table_and_the_sentence_have_the_same_interval(
    ratio: float, pairs: int, spread: float, test: AbTest
) -> None:
    report = ab_report([around(ratio, pairs, spread)], test)
    assert report.ab
    text = phrase(conclusion(report, report.ab))
    table = next(block for block in ab_blocks(report, report.ab) if isinstance(block, Table))
    (row,) = table.rows
    _, change, low, high = row[-4:]
    interval = "" if low == MISSING else f"{low} to {high}, "
    assert f"{NAMES[test.metric]} {change} ({interval}{pairs} pairs)" in text
    on_both_sides = low == MISSING or (low.startswith("-") and high.startswith("+"))
    assert "annot tell whether B is faster" in text or not on_both_sides


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.0, "0%"), (1.0312, "+3.1%"), (0.76, "-24%"), (1.00001, "0%"), (6.3, "6.3 times")],
)
def test_a_ratio_is_written_as_a_change(ratio: float, text: str) -> None:
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


def of_scripts(*scripts: Scripted, digest: str) -> Case:
    return Case("sql", spec=Scripts(scripts, Data(setup="s.sql", setup_digest=digest)))


SCRIPTS = Scripted("old.sql", "SELECT 1;"), Scripted("new.sql", "SELECT 2;", 3)


@pytest.mark.parametrize(
    ("arms", "cases", "builds", "expected"),
    [
        ((Arm("A"), Arm("B")), (CASE, CASE), (), []),
        (
            (BARE, Arm("B")),
            (CASE, replace(APSW, settings=Settings(synchronous=None, pragmas=(("a", "1"),)))),
            (),
            [
                "driver: sqlite3 and apsw",
                "synchronous: full and not set",
                "pragmas: not set and ['a', '1']",
                "Python: CPython 3.11.7 and not set",
                "sqlstress: 0.1.0 and not set",
                "SQLite: 3.40.1 and not set",
            ],
        ),
        (
            (Arm("A"), Arm("B")),
            (CASE, APSW),
            (OLD, NEW),
            [
                "driver: sqlite3 and apsw",
                "SQLite: 3.40.1 and 3.54.1",
                "SQLite's options: none of these and ENABLE_SETLK_TIMEOUT",
            ],
        ),
        (
            (Arm("A"), Arm("B")),
            (CASE, APSW),
            (OLD, replace(NEW, version=OLD.version, compile_options=OLD.compile_options)),
            [
                "driver: sqlite3 and apsw",
                "SQLite: 3.40.1 (2022-12-28 df5c253c) and 3.40.1 (2026-10-01 0a1b2c3d)",
            ],
        ),
        (PYTHONS, (CASE, CASE), (), []),
        (PYTHONS, (APSW, APSW), (), ["SQLite: 3.54.1 and 3.53.0"]),
        (
            (Arm("A"), Arm("B")),
            (of_scripts(SCRIPTS[0], digest="a"), of_scripts(*SCRIPTS, digest="b")),
            (),
            ["scripts: old.sql and old.sql; new.sql@3"],
        ),
    ],
    ids=["alike", "cases", "drivers", "check-ins", "one library", "each its library", "scripts"],
)
def test_the_arms_differ_in_what_their_cases_and_their_pythons_differ_in(
    arms: tuple[Arm, Arm], cases: tuple[Case, Case], builds: tuple[SqliteBuild, ...], expected: list[str]
) -> None:
    report = stopped([1.0])
    report = replace(report, environment=replace(report.environment, builds=builds))
    assert list(arm_differences(report, replace(TEST, arms=arms), *cases)) == expected
