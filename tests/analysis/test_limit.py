"""Verdicts of windows on a promise, and the conclusion from their majority."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sqlstress.analysis.finding import texts
from sqlstress.analysis.highest_rate import (
    FEW,
    HARNESS,
    answer_of,
    conclusion,
    faults_of,
    is_complete,
    margin,
    promise_clause,
    skip_reason,
)
from sqlstress.report import Check, Promise, Trial, Verdict
from sqlstress.show.blocks import Table
from sqlstress.show.endings import endings, exit_code
from sqlstress.show.study_view import limit_blocks
from sqlstress.statistics.search import MAX_MARGIN, SearchAnswer
from tests.drawing import examples
from tests.example_report import assert_golden_texts
from tests.limit_report import FAST, PROMISE, SEARCH, TRIED, limit_report
from tests.rate_report import late, rate_trial
from tests.several import with_trials

KEPT = rate_trial(1_500, FAST)


@pytest.mark.parametrize(
    ("window", "promise", "reasons"),
    [
        (KEPT, PROMISE, ()),
        (KEPT, Promise(p99_s=0.0001), ("p99",)),
        (KEPT, Promise(p50_s=0.00001, p99_s=0.5), ("p50",)),
        (KEPT, Promise(p999_s=0.00001), ("p99.9",)),
        (KEPT, Promise(max_s=0.0028), ("max",)),
        (KEPT, Promise(max_s=0.003), ()),
        (replace(KEPT, failed=1), PROMISE, ("failures",)),
        (rate_trial(1_500, 1_000.0), Promise(p99_s=3600.0), ("saturated",)),
        (replace(KEPT, arrived=None), PROMISE, ("nothing due",)),
    ],
)
def test_window_breaks_promises_by_latency_failures_or_saturation(
    window: Trial, promise: Promise, reasons: tuple[str, ...]
) -> None:
    assert faults_of(window, promise) == reasons


@pytest.mark.parametrize(
    ("window", "promise", "reason"),
    [
        (KEPT, PROMISE, ""),
        (KEPT, Promise(p999_s=0.05), FEW),
        (KEPT, Promise(p99_s=0.05, p999_s=0.05), FEW),
        (KEPT, Promise(max_s=0.05), ""),
        (replace(KEPT, failed=1), Promise(p999_s=0.05), ""),
        (rate_trial(499, FAST), PROMISE, FEW),
        (rate_trial(500, FAST), PROMISE, ""),
        (late(KEPT, 0.1), PROMISE, ""),
        (late(KEPT, 0.1), Promise(p99_s=0.0005), HARNESS),
        (late(KEPT, 0.1), Promise(p99_s=0.0005, max_s=0.0005), HARNESS),
        (late(KEPT, 0.0001), Promise(p99_s=0.0005), ""),
        (late(rate_trial(1_500, 1_000.0), 0.1), PROMISE, ""),
        (late(replace(KEPT, failed=1), 0.1), Promise(p99_s=0.0005), ""),
        (replace(KEPT, arrived=None), PROMISE, ""),
    ],
)
def test_window_with_few_operations_or_late_harness_is_not_judged(
    window: Trial, promise: Promise, reason: str
) -> None:
    assert skip_reason(window, promise) == reason


def test_margin_is_the_log_ratio_of_latency_to_promise() -> None:
    ns = KEPT.arrived.all_kinds.p99_ns if KEPT.arrived and KEPT.arrived.all_kinds else None
    assert ns
    for bound_s in (ns / 2e9, ns / 0.5e9):
        expected = math.log(ns / bound_s / 1e9)
        assert margin(KEPT, Promise(p99_s=bound_s)) == pytest.approx(expected, abs=0.01)
    assert margin(KEPT, Promise(p50_s=60.0, p99_s=ns / 2e9)) == pytest.approx(math.log(2), abs=0.01)
    assert (
        margin(replace(KEPT, failed=1), PROMISE) == margin(replace(KEPT, arrived=None), PROMISE) == MAX_MARGIN
    )


def conclusion_text(tried: Mapping[int, Sequence[bool]], ended: str | None = None) -> str:
    search = replace(SEARCH, ended=ended)
    return " ".join(texts(conclusion(limit_report(tried, search), search)))


YES, NO = [True] * 8, [False] * 8


LOW = replace(SEARCH, promise=Promise(max_s=0.0001))
CONCLUDED: dict[str, Mapping[int, Sequence[bool]]] = {
    "both ends": {1_500: YES, 1_600: NO},
    "no lower end": {1_000: [False], 1_500: YES, 1_600: NO},
    "no upper end": {1_500: YES},
    "too few": {1_500: [True], 1_800: [False, False]},
    "a contradiction": {1_500: [False], 1_800: [True]},
    "none judged": {120: YES},
    "none": {},
}


def late_windows() -> str:
    search = replace(SEARCH, promise=Promise(p99_s=0.0005))
    report = limit_report({1_500: YES}, search)
    disturbed = replace(report.runs[1], trials=tuple(late(trial, 0.1) for trial in report.runs[1].trials))
    return " ".join(texts(conclusion(replace(report, runs=(report.runs[0], disturbed)), search)))


def test_conclusion_has_the_majority_and_number_of_windows() -> None:
    texts_by_name = {name: conclusion_text(tried) for name, tried in CONCLUDED.items()}
    texts_by_name["not even one a second"] = " ".join(texts(conclusion(limit_report({1: NO}, LOW), LOW)))
    texts_by_name["a harness that was late"] = late_windows()
    assert_golden_texts("limit-conclusions.txt", texts_by_name)


RATES = (1_000, 1_200, 1_300, 1_500, 1_600, 1_800, 2_000, 2_400)


@st.composite
def tables(draw: st.DrawFn) -> dict[int, list[bool]]:
    """Draw windows that keep the promise up to a limit, with some exceptions."""
    limit, flips = draw(st.sampled_from(RATES)), st.sampled_from([False, False, False, True])
    counts = draw(st.lists(st.integers(0, 8), min_size=len(RATES), max_size=len(RATES)))
    rows = {
        rate: [(rate <= limit) != draw(flips) for _ in range(count)]
        for rate, count in zip(RATES, counts, strict=True)
    }
    return {rate: windows for rate, windows in rows.items() if windows}


@pytest.mark.thorough
@given(tables())
@example(dict(TRIED))
@example({1_300: [True, False, True], 1_500: YES, 1_600: NO, 1_800: [False, False, True]})
@settings(max_examples=examples(0.5))
def test_table_rows_never_contradict_the_answer(drawn: Mapping[int, Sequence[bool]]) -> None:
    assume(drawn)
    report = limit_report(drawn)
    answer, text = answer_of(report, SEARCH), conclusion_text(drawn)
    for rate, phrase in ((answer.holds, "Holds"), (answer.breaks, "Does not hold")):
        assert (f"{phrase} {rate:,}/s" if rate else f"{phrase} ") in text or rate is None
    if answer.about:
        assert (answer.holds or 0) <= answer.about <= (answer.breaks or answer.about)
    table = next(block for block in limit_blocks(report, SEARCH) if isinstance(block, Table))
    place = {column.name: number for number, column in enumerate(table.columns)}
    for row, (rate, windows) in zip(table.rows, sorted(drawn.items()), strict=True):
        verdict, p99_ms = row[place["verdict"]], float(row[place["p99 ms"]].replace(",", ""))
        kept, count = map(int, row[place["windows"]].split(" of "))
        assert (kept, count) == (sum(windows), len(windows))
        if answer.holds is not None and rate <= answer.holds:
            assert verdict == "holds" and 2 * kept >= count and p99_ms <= 2
        elif answer.breaks is not None and rate >= answer.breaks:
            assert verdict == "does not" and 2 * kept < count and p99_ms > 2
        else:
            assert verdict == "open"


@pytest.mark.parametrize("tried", [{1_500: YES}, {1_500: NO}, {1_500: [True], 1_800: [False]}])
def test_incomplete_answer_has_a_reason_and_exits_3_if_strict(
    tried: Mapping[int, Sequence[bool]],
) -> None:
    assert "Ended early: 300 s were over (--max-time)." in conclusion_text(
        tried, "300 s were over (--max-time)"
    )
    report = limit_report(tried)
    assert re.search("Cannot tell which rate|No rate .* is known to", conclusion_text(tried))
    assert exit_code(endings(report)) == 0
    assert exit_code(endings(report, strict=True)) == 3


def test_complete_answer_exits_0_and_wrong_data_1() -> None:
    report = limit_report()
    assert answer_of(report, SEARCH) == SearchAnswer(1_440, 1_800, 1_610)
    assert exit_code(endings(report, strict=True)) == 0
    assert is_complete(SearchAnswer(None, 1)) and not is_complete(SearchAnswer(None, 2))
    wrong = Verdict((Check("last write", "failed", 10, 1, ("key 1 is gone",)),))
    lost = with_trials(report.runs[1], verdict=wrong)
    assert exit_code(endings(replace(report, runs=(report.runs[0], lost)))) == 1


def test_promise_is_written_as_it_was_given() -> None:
    assert promise_clause(Promise(0.001, 0.01, 0.02, 1.0)) == (
        "p50 within 1ms, p99 within 10ms, p99.9 within 20ms and max within 1s"
    )


def test_report_may_have_a_rate_twice() -> None:
    report = limit_report({1_500: [True], 1_800: [False]})
    others = (replace(run, case=replace(run.case, seed=run.case.seed + 1)) for run in report.runs)
    doubled = replace(report, runs=(*report.runs, *others))
    assert "Cannot tell" in " ".join(texts(conclusion(doubled, SEARCH)))
