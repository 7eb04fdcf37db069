"""Findings for any experiment: wrong data, proofs, failures, and limits of the figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise, advise_group
from sqlstress.report import Check, Run, Trial, Verdict
from sqlstress.report.case import Arrivals, Case
from sqlstress.show.blocks import NOT_ALL, verified_cell
from sqlstress.show.endings import endings
from sqlstress.show.github import workflow_commands
from sqlstress.show.junit import report_junit
from sqlstress.show.page.html_file import report_html
from tests.analysis.hand_made import CALM, EXAMPLE, findings, findings_with_codes, group, run, trial
from tests.example_report import assert_golden_texts
from tests.show.variants import with_case

TWO = tuple(replace(CALM.workers[0], worker=number) for number in (1, 2))
READS = Check("reads", "ok", 5)
LOST = Check("last write", "failed", 1000, 2, ("key 4 is gone", "key 7 is stale", "key 9 is gone", "more"))


def run_with_checks(processes: int, *checks: Check) -> Run:
    return run(1, processes, trial(verdict=Verdict(checks)))


def test_wrong_data_comes_first_with_counter_examples() -> None:
    results = advise_group(group(run_with_checks(1, READS), run_with_checks(4, LOST, READS)))
    assert results[0].code == "data-wrong"
    assert results[0].text == (
        "FAILED at 4 processes on 1 bucket: last write, 2 of 1,000 wrong "
        "(key 4 is gone; key 7 is stale; key 9 is gone)."
    )
    torn = Check("quick_check", "failed", 0, 1, ("page 3 is torn",))
    several = findings(run_with_checks(4, LOST, torn))["data-wrong"]
    assert several.endswith("; quick_check, 1 wrong (page 3 is torn).")
    silent = findings(run_with_checks(4, Check("reads", "failed")))["data-wrong"]
    assert silent == "FAILED at 4 processes on 1 bucket: reads."


@pytest.mark.parametrize(("cases", "elsewhere"), [(3, False), (6, True)])
def test_more_than_three_failed_cases_are_only_listed(cases: int, elsewhere: bool) -> None:
    results = [
        finding.text for finding in advise_group(group(*(run_with_checks(n + 1, LOST) for n in range(cases))))
    ]
    assert sum("key 4 is gone" in text for text in results) == 3
    rest = "Also FAILED at 4 to 6 processes on 1 bucket; the JSON report has the counter-examples."
    assert (rest in results) is elsewhere


HALF = [Check(name, "ok", 9, note="half of the keys were tracked") for name in ("last write", "reads")]


NOT_PROVED: dict[str, Sequence[Run]] = {
    "unknown": [run_with_checks(2, Check("last write", "unknown"))],
    "unknown, and why": [
        run_with_checks(2, Check("last write", "unknown", note="worker 1 died")),
        run_with_checks(4),
    ],
    "in part": [run_with_checks(2, *HALF), run_with_checks(4, *HALF), run_with_checks(8)],
    "failed": [run(1, 1), *(run(files, 2, trial(error="worker 2 died.")) for files in (1, 20))],
    "failed in part": [run(1, 2, trial(), trial(error="worker 2 died"), error="worker 2 died")],
    "no trial": [run(1, 1), replace(run(1, 2), trials=())],
    "not asked for": [run_with_checks(2, Check("all", "skipped", note="--verify none"))],
    "well": [run(1, 1)],
}


def test_unproved_and_failed_cases_are_reported_with_a_reason() -> None:
    results = {
        name: findings_with_codes(runs, "proof-", "case-", "data-") for name, runs in NOT_PROVED.items()
    }
    assert_golden_texts("not-proved.txt", results)


def test_interruption_says_how_much_is_missing() -> None:
    cut = replace(EXAMPLE, runs=EXAMPLE.runs[:3], planned=8, interrupted=True)
    assert [finding.text for finding in advise(cut) if finding.code == "interrupted"] == [
        "Interrupted: 3 trials of 3 of 8 planned cases are shown."
    ]
    first_passes = with_case(replace(cut, planned=3), repeat=2)
    assert [finding.text for finding in advise(first_passes) if finding.code.startswith("interrupted")] == [
        "Interrupted after 3 of 6 trials."
    ]
    whole = advise(replace(cut, interrupted=False))
    assert not any(finding.code.startswith("interrupted") for finding in whole)


def steady(*ratios: float | None, case: Case | None = None) -> Run:
    """Return a run of windows with these ratios of their halves."""
    return run(1, 4, *(trial(half_ratio=ratio) for ratio in ratios), case=case)


STEADY: dict[str, Sequence[Run]] = {
    "slower": [steady(0.77)],
    "much faster": [steady(142.0)],
    "the most of two cases": [steady(1.2), replace(steady(0.6), case=Case(concurrency=8))],
    "the median of the passes": [steady(1.4, 1.2, 1.3)],
    "passes that do not agree on it are noise": [steady(1.4, 0.7, 1.3)],
    "not known": [steady(None)],
    "a little slower": [steady(0.91)],
    "a little faster": [steady(1.09)],
    "at a rate chance makes halves differ": [steady(0.5, case=Case(arrivals=Arrivals(20)))],
}


def test_windows_with_different_halves_are_not_steady() -> None:
    assert_golden_texts(
        "steady.txt", {name: findings_with_codes(runs, "not-steady") for name, runs in STEADY.items()}
    )


def harness(shares: tuple[float, float], ns: float | None) -> list[Run]:
    """Return runs of one and of two processes, which spent these shares of time on the harness."""
    busy = tuple(replace(worker, harness_share=share) for worker, share in zip(TWO, shares, strict=True))
    slow = trial(20_000, workers=busy)
    return [run(1, 1, trial(50_000), harness_ns=ns), run(1, 2, slow, harness_ns=ns and 1100.0)]


HARNESS: dict[str, Sequence[Run]] = {
    "by what an operation of it takes": harness((0.0, 0.0), 1000.0),
    "by what the processes measured, where that is more": harness((0.05, 0.07), 1000.0),
    "no more than all": harness((0.0, 0.0), 86_000.0),
    "not known": harness((0.0, 0.0), None),
    "of a store that does nothing": [run(1, 1, case=Case(driver="dry"), harness_ns=1000.0)],
}


def test_harness_cost_is_reported_for_its_greatest_share() -> None:
    assert_golden_texts(
        "harness-cost.txt", {name: findings_with_codes(runs, "harness") for name, runs in HARNESS.items()}
    )


def proving(*shares: float) -> Trial:
    workers = (replace(TWO[0], worker=number, proof_share=share) for number, share in enumerate(shares, 1))
    return trial(workers=tuple(workers))


def test_proof_over_five_percent_of_the_window_is_reported() -> None:
    results = findings(run(1, 1, proving(0.02)), run(1, 2, proving(0.05, 0.09)))
    assert results["proof-cost"] == (
        "Verification took up to 7% of the window (at 2 processes on 1 bucket). Use --verify none to measure "
        "without it."
    )
    assert "proof-cost" not in findings(run(1, 2, proving(0.03, 0.07)))


# Failed operations: the share that is too much, and the outputs that report it.


LOCKED = "the database was locked for longer than --busy-timeout"
OUT_OF_DATE = "other transactions had changed what they had read (BUSY_SNAPSHOT)"


def failing(failed: int, done: int = 1000, max_failed: float = 0.01) -> Run:
    return run(1, 4, trial(failed=failed, transactions=done), case=Case(max_failed=max_failed))


@pytest.mark.parametrize(
    ("case_run", "share"),
    [
        (failing(0), 0.0),
        (failing(1000), 0.5),
        (failing(5, 0), 1.0),
        (failing(1, 99), 0.01),
        # Invalid trials do not count here either.
        (run(1, 2, trial(failed=900, error="died"), trial(failed=9, outcome="limit"), trial(failed=0)), 0.0),
        (replace(failing(0), longer=trial(failed=1000, transactions=0)), 0.5),
        (replace(failing(0), longer=trial(failed=1000, transactions=0, error="died")), 0.0),
    ],
)
def test_failed_share_is_relative_to_all_ended_operations(case_run: Run, share: float) -> None:
    assert case_run.failed_share() == pytest.approx(share)


@pytest.mark.parametrize(
    ("failed", "max_failed", "too_many"), [(10, 0.01, False), (11, 0.01, True), (900, 1, False)]
)
def test_too_many_failures_are_no_success_in_all_outputs(
    failed: int, max_failed: float, too_many: bool
) -> None:
    report = replace(EXAMPLE, runs=(failing(failed, 1000, max_failed),), planned=1)
    codes = [ending.code for ending in endings(report)]
    assert codes == [1] * too_many
    assert (verified_cell(report.runs[0]) == NOT_ALL) is too_many
    assert ("given-up" in report_junit(report)) is too_many
    assert any("Too many operations failed" in line for line in workflow_commands(report)) is too_many
    tile = re.search(r'class="tile (\w+)"><strong>[\d.]+% failed', report_html(report))
    assert (tile is not None) is too_many
    assert not tile or tile[1] == "failed"


@pytest.mark.parametrize(
    ("busy", "out_of_date", "reason"),
    [(5, 0, LOCKED), (0, 5, OUT_OF_DATE), (5, 5, f"{LOCKED}, or {OUT_OF_DATE}")],
)
def test_worst_case_is_named_with_the_databases_errors(busy: int, out_of_date: int, reason: str) -> None:
    refused = trial(failed=4000, transactions=1000, busy=busy, busy_snapshot=out_of_date)
    died = trial(failed=50, busy=1, busy_snapshot=1, error="worker 1 died")
    report = replace(EXAMPLE, runs=(failing(20), run(20, 8, refused, died)), planned=2)
    assert endings(report)[0].text == (
        f"Error: 80% of the operations failed at 8 processes on 20 buckets: {reason}. At most 1% may fail "
        "(--max-failed)."
    )
