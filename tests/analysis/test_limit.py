"""What windows say of a promise, and what is concluded: only what all of them agree on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from sqlstress.analysis.highest_rate import answered, broken, conclusion, is_whole, promised
from sqlstress.report import Check, Promise, Trial, Verdict
from sqlstress.show.endings import endings, exit_code
from sqlstress.statistics.search import Answer
from tests.limit_report import FAST, PROMISE, SEARCH, limit_report
from tests.rate_report import rate_trial

KEPT = rate_trial(1_500, FAST)


@pytest.mark.parametrize(
    ("window", "promise", "said"),
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
def test_a_window_breaks_what_its_latencies_exceed_and_any_promise_if_it_fails_or_falls_behind(
    window: Trial, promise: Promise, said: tuple[str, ...]
) -> None:
    assert broken(window, promise) == said


def said(tried: Mapping[int, Sequence[bool]], ended: str | None = None) -> str:
    search = replace(SEARCH, ended=ended)
    return conclusion(limit_report(tried, search), search)


YES, NO = [True] * 6, [False] * 6


@pytest.mark.parametrize(
    ("tried", "expected"),
    [
        (
            {1_500: YES, 1_600: NO},
            "Holds 1,500/s: p99 within 2ms in all 6 windows. Does not hold 1,600/s: in none of 6 windows.",
        ),
        (
            {1_500: YES, 1_600: [True, False], 1_800: NO},
            "Holds 1,500/s: p99 within 2ms in all 6 windows. Does not hold 1,800/s: in none of 6 "
            "windows. Between them, cannot tell: at 1,600/s 1 of 2 windows kept it.",
        ),
        (
            {1_000: [True, False], 1_500: YES, 1_600: NO},
            "Holds 1,500/s: p99 within 2ms in all 6 windows. Does not hold 1,600/s: in none of 6 "
            "windows. Below it, at 1,000/s 1 of 2 windows kept it.",
        ),
        (
            {1: NO},
            "Does not hold 1/s: p99 within 2ms in none of 6 windows. Less than one operation per "
            "second was not tried.",
        ),
        (
            {1_500: [True], 1_800: [False, False]},
            "Cannot tell which rate holds p99 within 2ms between 1,500/s and 1,800/s: at 1,500/s 1 of 1 "
            "window kept it and at 1,800/s 0 of 2 windows kept it.",
        ),
        (
            {1_500: [True, False], 1_800: [False]},
            "Cannot tell which rate holds p99 within 2ms: 2 rates from 1,500/s to 1,800/s tried, but none "
            "is decided.",
        ),
        ({}, "Cannot tell which rate holds p99 within 2ms: no window was measured."),
    ],
)
def test_the_conclusion_says_what_all_windows_agree_on(
    tried: Mapping[int, Sequence[bool]], expected: str
) -> None:
    assert said(tried) == expected


@pytest.mark.parametrize("tried", [{1_500: YES}, {1_500: NO}, {1_500: [True], 1_800: [False]}])
def test_an_answer_that_is_not_whole_says_why_and_exits_3_if_one_is_strict(
    tried: Mapping[int, Sequence[bool]],
) -> None:
    assert said(tried, "300 s were over (--max-time)").endswith(
        "It ended early: 300 s were over (--max-time)."
    )
    report = limit_report(tried)
    assert "cannot tell" in said(tried).lower()
    assert exit_code(endings(report)) == 0
    assert exit_code(endings(report, strict=True)) == 3


def test_a_whole_answer_exits_0_and_wrong_data_1() -> None:
    report = limit_report()
    assert answered(report, SEARCH) == Answer(1_500, 1_800)
    assert exit_code(endings(report, strict=True)) == 0
    assert is_whole(Answer(None, 1)) and not is_whole(Answer(None, 2))
    wrong = Verdict((Check("last write", "failed", 10, 1, ("key 1 is gone",)),))
    trial = replace(report.runs[1].trials[0], verdict=wrong)
    report = replace(report, runs=(report.runs[0], replace(report.runs[1], trials=(trial,))))
    assert exit_code(endings(report)) == 1


def test_a_promise_is_written_as_it_was_given() -> None:
    assert promised(Promise(0.001, 0.01, 0.02, 1.0)) == (
        "p50 within 1ms, p99 within 10ms, p99.9 within 20ms and max within 1s"
    )


def test_a_report_may_have_a_rate_twice() -> None:
    report = limit_report({1_500: [True], 1_800: [False]})
    others = (replace(run, case=replace(run.case, seed=run.case.seed + 1)) for run in report.runs)
    doubled = replace(report, runs=(*report.runs, *others))
    assert "Cannot tell" in conclusion(doubled, SEARCH)


def test_windows_that_show_little_of_a_percentile_say_so() -> None:
    few = (
        "A window of 240 operations says little about p99.9, which is one in 1,000: use a longer --duration."
    )
    for promise, rate, told in (
        (Promise(p999_s=0.05), 120, few),
        (Promise(p99_s=0.05, p999_s=0.05), 120, few),
        (Promise(p99_s=0.05), 120, ""),
        (Promise(p999_s=0.05), 1_500, ""),
        (Promise(max_s=0.05), 120, ""),
    ):
        search = replace(SEARCH, promise=promise)
        text = conclusion(limit_report({rate: YES}, search), search)
        assert (
            text.startswith(f"Holds {rate:,}/s")
            and text.endswith(told)
            and ("says little" in text) == bool(told)
        )
