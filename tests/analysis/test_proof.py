"""Tests of what is said of verdicts and failed cases."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.analysis.advice import advise, advise_group
from sqlstress.report import Check, Run, Verdict
from sqlstress.show.phrases import phrase
from tests.analysis.hand_made import EXAMPLE, findings, group, run, trial


def judged(processes: int, *checks: Check) -> Run:
    return run(1, processes, trial(verdict=Verdict(checks)))


def lost(problems: int = 2) -> Check:
    return Check(
        "last write", "failed", 1000, problems, ("key 4 is gone", "key 7 is stale", "key 9 is gone", "more")
    )


def test_good_runs_say_nothing_of_proofs() -> None:
    assert {code for code in findings(run(1, 1), run(1, 2)) if "proof" in code or "data" in code} == set()


def test_wrong_data_comes_first_with_its_first_counter_examples() -> None:
    told = advise_group(group(judged(1, Check("reads", "ok", 5)), judged(4, lost(), Check("reads", "ok", 5))))
    assert told[0].code == "data-wrong"
    assert phrase(told[0]) == (
        "FAILED at 4 processes on 1 file: last write, 2 of 1,000 wrong "
        "(key 4 is gone; key 7 is stale; key 9 is gone)."
    )


def test_every_failed_check_of_a_run_is_told_in_the_same_sentence() -> None:
    text = findings(judged(4, lost(), Check("quick_check", "failed", 0, 1, ("page 3 is torn",))))[
        "data-wrong"
    ]
    assert text.endswith("; quick_check, 1 wrong (page 3 is torn).")


def test_a_check_that_failed_without_a_word_is_told_all_the_same() -> None:
    assert (
        findings(judged(4, Check("reads", "failed")))["data-wrong"]
        == "FAILED at 4 processes on 1 file: reads."
    )


def test_beyond_three_failed_cases_the_rest_is_told_by_place_only() -> None:
    told = [phrase(finding) for finding in advise_group(group(*(judged(n, lost()) for n in range(1, 7))))]
    assert sum("key 4 is gone" in text for text in told) == 3
    assert "FAILED at 4 to 6 processes on 1 file too: the JSON report has the counter-examples." in told


def test_three_failed_cases_are_all_told_in_full() -> None:
    told = [phrase(finding) for finding in advise_group(group(*(judged(n, lost()) for n in range(1, 4))))]
    assert sum("key 4 is gone" in text for text in told) == sum("FAILED" in text for text in told) == 3


def test_an_undecided_check_without_a_note_is_told_all_the_same() -> None:
    told = findings(judged(2, Check("last write", "unknown")))
    assert told["proof-unknown"] == "Undecided at 2 processes on 1 file (last write)."


def test_an_undecided_check_says_why() -> None:
    told = findings(judged(2, Check("last write", "unknown", note="worker 1 died")), judged(4))
    assert told["proof-unknown"] == "Undecided at 2 processes on 1 file (last write): worker 1 died."


def test_partial_coverage_is_told_once_for_all_that_it_limits() -> None:
    half = [Check(name, "ok", 9, note="half of the keys were tracked") for name in ("last write", "reads")]
    told = findings(judged(2, *half), judged(4, *half), judged(8))
    assert told["proof-ok"] == (
        "Proved in part at 2 and 4 processes on 1 file (last write and reads): half of the keys were tracked."
    )


def test_what_was_not_checked_is_left_to_the_table() -> None:
    assert not [
        code for code in findings(judged(2, Check("all", "skipped", note="--verify none"))) if "proof" in code
    ]


def test_a_case_that_could_not_be_measured_gives_its_reason() -> None:
    told = findings(
        run(1, 1), run(1, 2, trial(error="worker 2 died.")), run(20, 2, trial(error="worker 2 died."))
    )
    assert told["case-failed"] == "Not measured at 2 processes on 1 and 20 files: worker 2 died."


def test_a_case_of_which_some_trials_stand_is_not_called_unmeasured() -> None:
    told = findings(run(1, 2, trial(), trial(error="worker 2 died"), error="worker 2 died"))
    assert told["case-incomplete"] == "Not wholly measured at 2 processes on 1 file: worker 2 died."
    assert "case-failed" not in told


def test_a_case_without_a_trial_is_told() -> None:
    empty = replace(run(1, 2), trials=())
    assert (
        findings(run(1, 1), empty)["case-failed"]
        == "Not measured at 2 processes on 1 file: No trial was made."
    )


def test_an_interruption_says_how_much_is_missing() -> None:
    cut = replace(EXAMPLE, runs=EXAMPLE.runs[:3], planned=8, interrupted=True)
    assert [phrase(finding) for finding in advise(cut) if finding.code == "interrupted-cases"] == [
        "Interrupted: 3 of 8 planned cases are reported, with 3 trials."
    ]
    assert not [
        finding for finding in advise(replace(cut, interrupted=False)) if finding.code == "interrupted"
    ]
