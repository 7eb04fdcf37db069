"""A report against its baseline, through the command line: verdicts, refusals, trust in the figures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.report import Check, Report, Run, Verdict, to_json
from tests.ab_report import CASE, EXAMPLE, TEST, TRIAL, around, trial
from tests.cli.conftest import Cli, Said
from tests.example_report import assert_golden, assert_golden_texts
from tests.show.variants import each_trial


def stored(*cells: list[float], **changes: object) -> Report:
    """Return a report with a case for each list, whose numbers are the speeds of its trials relative to the
    example's.
    """
    runs = tuple(
        Run(replace(CASE, concurrency=2 * (place + 1), **changes), tuple(map(trial, range(len(own)), own)))  # type: ignore[arg-type]
        for place, own in enumerate(cells)
    )
    return replace(EXAMPLE, runs=runs, planned=len(runs))


def checked(cli: Cli, baseline: Report, current: Report, *options: str) -> Said:
    """Save both and check them."""
    Path("base.json").write_text(to_json(baseline), encoding="utf-8")
    Path("now.json").write_text(to_json(current), encoding="utf-8")
    return cli("check", "base.json", "now.json", *options)


@pytest.mark.parametrize(
    ("ratio", "options", "code", "word"),
    [
        (1.0, (), 0, "PASS: no drop of more than 10%. TPS changed by 0%, at worst -"),
        (2.5, (), 0, "PASS: no drop of more than 10%. TPS changed by 2.5 times"),
        (0.8, (), 1, "FAIL: TPS changed by -20% (at best -1"),
        (0.8, ("--max-drop", "30%"), 0, "PASS: no drop of more than 30%. TPS changed by -20%, at worst -2"),
        (0.93, (), 0, "INCONCLUSIVE: a drop of at least "),
        (0.93, ("--strict",), 3, "INCONCLUSIVE"),
        (0.5, ("--metric", "p99"), 1, "FAIL: p99 changed by"),
    ],
)
def test_exit_code_follows_from_the_verdict(
    cli: Cli, ratio: float, options: tuple[str, ...], code: int, word: str
) -> None:
    said = checked(cli, stored(around(1.0, 6)), stored(around(ratio, 6)), *options)
    assert said.code == code
    assert word in said.text
    assert len(said.lines) == (code == 1)


@pytest.mark.parametrize("form", ["txt", "md"])
def test_verdict_is_saved_and_alone_on_standard_output(cli: Cli, form: str) -> None:
    reports = stored(around(1.0, 6)), stored(around(0.8, 6))
    said = checked(cli, *reports, "-o", f"copy.{form}", "--details")
    saved = Path(f"copy.{form}").read_text(encoding="utf-8")
    assert (said.out == saved) == (form == "txt")
    assert "FAIL: TPS changed by" in " ".join(saved.split())
    said = checked(cli, *reports, "-o", f"{form}:-")
    assert (said.code, said.out, len(said.lines)) == (1, saved, 1)


@pytest.mark.parametrize(
    ("ratio", "kind", "title"),
    [
        (1.0, None, ""),
        (0.8, "error", "Worse than the baseline"),
        (0.93, "warning", "Cannot tell whether it is worse than the baseline"),
    ],
)
def test_github_verdict_is_annotated_and_added_to_the_step_summary(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, ratio: float, kind: str | None, title: str
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("summary.md").write_text("before\n", encoding="utf-8")
    said = checked(cli, stored(around(1.0, 6)), stored(around(ratio, 6)), "--github")
    annotations = [line for line in said.out.splitlines() if line.startswith("::")]
    assert [line.split("::")[1] for line in annotations] == ([f"{kind} title={title}"] if kind else [])
    begun, summary = Path("summary.md").read_text(encoding="utf-8").split("\n", 1)
    assert begun == "before" and "| case " in summary
    verdict = next(line for line in summary.splitlines() if line.startswith(("PASS", "FAIL", "INCON")))
    assert all(line.endswith(f"::{verdict}".replace("%", "%25")) for line in annotations)


def test_github_annotates_wrong_data_and_missing_cases(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    said = checked(cli, stored(around(1.0, 6)), wrong(stored([1.0])), "--github")
    assert "::error title=Wrong data::FAIL: the data is wrong: " in said.out
    said = checked(cli, stored(around(1, 6), around(1, 6)), stored(around(1, 6)), "--github")
    left_out = "Cases of the baseline that were not measured again: 1."
    shown, annotated = said.out.split("::warning title=Not measured again::")
    assert left_out in shown and left_out in annotated
    assert said.code == 0


EVEN = around(1.0, 8)
CONCLUDED: dict[str, tuple[list[list[float]], list[list[float]]]] = {
    "a drop that may be chance does not fail": ([around(1.0, 6, 0.5)], [around(0.8, 6, 0.5)]),
    "no drop does not pass where one is possible": ([around(1.0, 10, 1.2)], [around(1.3, 10, 1.2)]),
    "a pass names the case of which a drop is most possible": ([EVEN, EVEN], [EVEN, around(0.98, 8)]),
    "one that is not clear keeps all from passing": ([EVEN, EVEN], [around(1.2, 8), around(0.92, 8)]),
    "medians that say the opposite": ([[0.1] * 3 + [1.0] * 4], [[0.95] * 4 + [2.0] * 3]),
    "medians that say about no change": ([[0.99] * 3 + [1.0] * 4], [[0.999] * 4 + [1.005] * 3]),
    "the median of an even number": ([[1, 1, 1, 2, 2, 2]], [[1.0] * 6]),
    "how often a stored baseline is wrong": ([around(1.0, 6)], [around(1.0, 6)]),
}
SAID = f"""INCONCLUSIVE
INCONCLUSIVE: no drop shown, up to 55% possible at 2 processes on 1 bucket; 10% is allowed. TPS
PASS: no drop of more than 10%. TPS changed by -1.0% (geometric mean of the cases), at worst|at 4 processes on
INCONCLUSIVE: a drop of at least |possible at 4 processes on 1 bucket; 10% is allowed. TPS changed by +5.1% (g
INCONCLUSIVE: the estimate is 2.0 times but the medians give -5.0% at 2 processes on 1 bucket; no
PASS: no drop of more than 10%. TPS changed by +0.50%
{TRIAL.tps * 1.5:,.0f}
4 to 9%|23 to 29%|sqlstress ab"""


@pytest.mark.parametrize(("case", "said"), [*zip(CONCLUDED, SAID.splitlines(), strict=True)])
def test_conclusion_claims_no_more_than_the_trials_show(cli: Cli, case: str, said: str) -> None:
    base, now = CONCLUDED[case]
    opposite = "opposite" in case
    found = checked(
        cli, stored(*base), stored(*now), *(("--max-drop", "90%", "--strict") if opposite else ())
    )
    assert found.code == (3 if opposite else 0)
    assert [each for each in said.split("|") if each not in found.text] == []


def test_comparison_with_the_baseline_equals_the_golden_file(cli: Cli) -> None:
    said = checked(cli, stored(around(1.0, 8), around(1.0, 8)), stored(around(0.8, 8), around(1.05, 8)))
    assert_golden("check.txt", said.out)


def test_wrong_data_fails_with_any_figures_and_any_number_of_trials(cli: Cli) -> None:
    said = checked(cli, stored(around(1.0, 6)), wrong(stored([1.0])))
    assert said.code == 1
    assert "FAIL: the data is wrong: key 5 is gone" in said.out


LOST = Verdict((Check("last write", "failed", 10, 1, ("key 5 is gone",)),))


def with_last(report: Report, error: str | None = None, **fields: Any) -> Report:
    """Return a report of one case with its last trial changed; `error` is set in the case, too."""
    (run,) = report.runs
    *others, last = run.trials
    trials = (*others, replace(last, error=error, **fields))
    return replace(report, runs=(replace(run, trials=trials, error=error),))


def wrong(report: Report) -> Report:
    """Return a report whose last trial has wrong data."""
    return with_last(report, verdict=LOST)


def stalled(report: Report) -> Report:
    """Return a report whose last trial completed no operation."""
    return with_last(report, tps=0.0, transactions=0, latency={})


def with_tps(tps: float) -> Report:
    """Return a report of one case whose trials all have the throughput `tps`."""
    return each_trial(lambda trial: replace(trial, tps=tps), stored([1.0] * 6))


def broken(report: Report) -> Report:
    """Return a report whose last trial is invalid."""
    return with_last(report, error="worker 1 hung")


SIX = stored(around(1, 6))
THREE_CASES = stored(*[around(1, 5)] * 3)
REFUSED = {
    "one trial each": (stored([1.0]), stored([1.0])),
    "five trials of three cases": (THREE_CASES, THREE_CASES),
    "other cases": (SIX, stored(around(1, 6), buckets=20)),
    "no case": (SIX, replace(EXAMPLE, runs=())),
    "another load": (SIX, stored(around(1, 6), spec=replace(CASE.spec, read_ratio=0.9))),
    "an A/B test": (SIX, replace(SIX, ab=TEST)),
    "a trial that stood still": (SIX, stalled(SIX)),
    "a trial of the baseline that stood still": (stalled(SIX), SIX),
    "figures too far apart": (with_tps(1e-300), with_tps(1e300)),
    "a baseline of wrong data": (wrong(SIX), SIX),
    "a case that is not complete": (SIX, broken(SIX)),
}


def test_unsuitable_reports_are_refused(cli: Cli) -> None:
    found = {}
    for name, (baseline, current) in REFUSED.items():
        said = checked(cli, baseline, current)
        assert (said.code, said.out) == (2, "")
        (found[name],) = said.lines
    assert_golden_texts("check-refused.txt", found)


def test_check_refuses_different_durability(cli: Cli) -> None:
    lax = stored(around(1.0, 6))
    (run,) = lax.runs
    trials = tuple(trial(index, 1.0, "off") for index in range(6))
    said = checked(cli, lax, replace(lax, runs=(replace(run, trials=trials),)))
    assert (said.code, said.out) == (2, "")
    assert "what a commit waits for differs" in said.err


def failing(report: Report) -> Report:
    """Return the report with a third of the operations failed."""
    return each_trial(lambda trial: replace(trial, failed=trial.transactions // 2), report)


def test_report_with_too_many_failures_does_not_pass(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    base, faster = stored(around(1.0, 6)), failing(stored(around(2.0, 6)))
    said = checked(cli, base, faster, "--github")
    text = "FAIL: 33% of the operations failed at 2 processes on 1 bucket, and at most 1% may (--max-failed)."
    assert (said.code, said.err) == (1, f"Error: {text}\n")
    assert "PASS" not in said.out and "+100%" not in said.out
    assert f"::error title=Too many operations failed::{text.replace('%', '%25')}" in said.out


def test_baseline_with_too_many_failures_is_refused(cli: Cli) -> None:
    said = checked(cli, failing(stored(around(1.0, 6))), stored(around(2.0, 6)))
    assert (said.code, said.out) == (2, "")
    assert "in the baseline, 33% of the operations failed" in said.err and "Measure it again." in said.err
    allowed = stored(around(1.0, 6), max_failed=0.5)
    assert checked(cli, failing(allowed), failing(allowed)).code == 0
