"""The loop that measures pairs until the gate decides, with made-up slices."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.study import SILENT
from sqlstress.report import AbTest, Check, Report, Trial, Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.sequential import looks
from sqlstress.studies.ab import AbStudy, arm_order, draw_first_arm
from sqlstress.studies.slices import SliceBench
from sqlstress.studies.sweep import run_on_bench
from tests.ab_report import CASE, EXAMPLE, TEST, Script, script_of_ratio, trial
from tests.app_report import CASE as APP


class Slices:
    """Returns made-up trials, and records the requested slices."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[tuple[str, int, int]] = []

    def measure(self, arm: int, case: Case, pair: int) -> Trial:
        """Return the script's trial."""
        self.asked.append(("AB"[arm], case.concurrency, pair))
        return self.script(arm, case, pair)


UNLIMITED = replace(TEST, max_time_s=None)


class Clock:
    """A clock that advances by `step_s` at each reading."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.step_s, self.now = step_s, 0.0

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def run(
    script: Script,
    cells: Sequence[Case] = (CASE,),
    test: AbTest = UNLIMITED,
    most: int = 30,
    clock: Clock | None = None,
) -> tuple[Report, Slices, list[Report]]:
    """Run a study; return its report, the slices, and all saved reports."""
    slices, saved = Slices(script), list[Report]()
    bench = SliceBench(replace(EXAMPLE, runs=()), SILENT, slices.measure)
    study = AbStudy((cells, cells), test, looks(most), clock or Clock())
    return run_on_bench(study, bench, saved.append, lambda: 0.0), slices, saved


def verdict(report: Report) -> tuple[str, int]:
    """Return the verdict and the number of pairs."""
    assert report.ab
    return report.ab.verdict, len(report.runs[0].trials)


def test_seed_draws_the_first_arm_of_each_pair() -> None:
    drawn = [arm_order("A", 7, pair)[0] for pair in range(400)]
    assert drawn == [arm_order("A", 7, pair)[0] for pair in range(400)]
    assert drawn != [arm_order("A", 8, pair)[0] for pair in range(400)]
    assert 150 < sum(drawn) < 250
    # It does not depend on the two pairs before, either.
    for lag in (1, 2):
        assert 150 < sum(a == b for a, b in zip(drawn, drawn[lag:], strict=False)) < 250
    assert [arm_order(first, seed, 0) for seed in (1, 2) for first in "AB"] == [(0, 1), (1, 0)] * 2
    assert all(arm_order("B", 7, pair) == arm_order("A", 7, pair)[::-1] for pair in range(50))
    first_arms = [draw_first_arm(seed) for seed in range(200)]
    assert first_arms == [draw_first_arm(seed) for seed in range(200)]
    assert 70 < first_arms.count("A") < 130


@pytest.mark.parametrize(("ratio", "expected"), [(1.0, "pass"), (3.0, "pass"), (0.85, "fail"), (0.3, "fail")])
def test_clear_result_is_decided_at_the_first_look(ratio: float, expected: str) -> None:
    report, _, _ = run(script_of_ratio(ratio))
    assert verdict(report) == (expected, 10)


def test_unclear_result_takes_all_looks_and_keeps_their_times() -> None:
    report, _, _ = run(script_of_ratio(0.9, 0.1), clock=Clock(1.0))
    assert verdict(report) == ("inconclusive", 30)
    assert report.ab
    assert [(look.pairs, look.verdict, look.alpha) for look in report.ab.looks] == [
        (10, "undecided", 0.0025),
        (14, "undecided", 0.0025),
        (20, "undecided", 0.0025),
        (30, "inconclusive", pytest.approx(0.0025)),
    ]
    times = [look.seconds or 0.0 for look in report.ab.looks]
    assert times == sorted(times) and times[0] > 0


def test_time_limit_ends_the_test_with_a_last_look() -> None:
    # The clock is read three times in a pair.
    limited = replace(TEST, max_time_s=58.0)
    report, _, _ = run(script_of_ratio(0.9, 0.1), test=limited, clock=Clock(1.0))
    assert verdict(report) == ("inconclusive", 19)
    assert report.ab
    assert [(look.pairs, look.verdict) for look in report.ab.looks] == [
        (10, "undecided"),
        (14, "undecided"),
        (19, "inconclusive"),
    ]
    assert report.ab.looks[-1].alpha == pytest.approx(0.005)
    early, _, _ = run(script_of_ratio(1.0), test=limited, clock=Clock(10.0))
    assert verdict(early) == ("inconclusive", 1)
    clear, _, _ = run(script_of_ratio(1.0), test=replace(TEST, max_time_s=22.0), clock=Clock(1.0))
    assert verdict(clear) == ("pass", 7)


def test_slices_of_a_cell_are_adjacent_within_a_pair() -> None:
    cells = (CASE, replace(CASE, concurrency=4))
    report, slices, _ = run(script_of_ratio(1.0), cells, replace(TEST, first="B"))
    expected = [
        ("AB"[arm], concurrency, pair)
        for pair in range(10)
        for concurrency in (2, 4)
        for arm in arm_order("B", CASE.seed, pair)
    ]
    assert slices.asked[:40] == expected
    assert slices.asked[0] == ("B", 2, 0)
    # The runs are in the order of cells and arms, regardless of the order of measurement.
    assert [(run.arm, run.case.concurrency) for run in report.runs] == [
        ("A", 2),
        ("B", 2),
        ("A", 4),
        ("B", 4),
    ]
    assert report.planned == 4


def test_wrong_data_fails_at_once_for_any_figures() -> None:
    lost = Verdict((Check("last write", "failed", 10, 1, ("key 5 is gone",)),))

    def script(arm: int, case: Case, pair: int) -> Trial:
        slice_trial = trial(pair)
        return replace(slice_trial, verdict=lost) if (arm, pair) == (1, 2) else slice_trial

    report, slices, _ = run(script)
    assert report.ab
    assert (report.ab.verdict, report.ab.looks) == ("fail", ())
    assert report.ab.reason == "the data of B is wrong"
    assert slices.asked[-1] == ("B", 2, 2)


@pytest.mark.parametrize(
    "changes", [{"error": "worker 1 was killed by SIGKILL"}, {"tps": 0.0}], ids=["invalid", "idle"]
)
def test_invalid_slice_ends_the_test_undecided(changes: dict[str, object]) -> None:
    def script(arm: int, case: Case, pair: int) -> Trial:
        slice_trial = trial(pair)
        return replace(slice_trial, **changes) if (arm, pair) == (0, 3) else slice_trial  # type: ignore[arg-type]

    report, slices, _ = run(script)
    assert report.ab
    assert report.ab.verdict == "undecided"
    assert [bool(run.error) for run in report.runs] == [True, False]
    assert slices.asked[-1] == ("A", 2, 3)


def test_equal_code_in_a_later_pair_leaves_no_trial_and_no_look(tmp_path: Path) -> None:
    files = [tmp_path / folder / "bank.py" for folder in ("old", "new")]
    for file in files:
        file.parent.mkdir()
        file.write_text(str(file))
    cases = [replace(APP, spec=replace(APP.spec, file=str(file.with_name("load.py")))) for file in files]

    def script(arm: int, case: Case, pair: int) -> Trial:
        modules = {"bank": str(files[arm if pair < 12 else 1].resolve())}
        return replace(unclear(arm, case, pair), modules=modules)

    unclear, slices = script_of_ratio(0.9, 0.1), Slices(script)
    study = AbStudy(((cases[0],), (cases[1],)), UNLIMITED, looks(30), Clock())
    bench = SliceBench(replace(EXAMPLE, runs=()), SILENT, slices.measure)
    report = run_on_bench(study, bench, lambda _: None, lambda: 0.0)
    assert [pair for _, _, pair in slices.asked][-1] == 12
    assert report.ab and (report.ab.verdict, report.ab.looks) == ("undecided", ())
    assert [run.trials for run in report.runs] == [(), ()]
    errors = [run.error for run in report.runs if run.error]
    assert len(errors) == 1 and "A and B both import bank from" in errors[0]


def test_failures_above_the_limit_end_the_test_at_a_look_without_a_verdict() -> None:
    unclear = script_of_ratio(0.9, 0.1)

    def script(arm: int, case: Case, pair: int) -> Trial:
        slice_trial = unclear(arm, case, pair)
        return replace(slice_trial, failed=slice_trial.transactions if arm and pair > 10 else 0)

    report, _, saved = run(script)
    assert report.ab and (report.ab.verdict, report.ab.looks) == ("undecided", ())
    assert [len(run.trials) for run in report.runs] == [14, 14]
    assert any(saved_report.ab and saved_report.ab.looks for saved_report in saved)
