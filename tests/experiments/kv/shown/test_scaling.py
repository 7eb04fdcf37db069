"""Tests of the findings on totals: the best point, the end of the rise, the layouts."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise
from sqlstress.analysis.group import group_runs
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.compare import Passes
from tests.analysis.hand_made import EXAMPLE, curve, findings, passes, run, trial
from tests.example_report import assert_golden_texts

WRONG = Verdict((Check("last write", "failed", 10, 1),))


def measured(files: int, *totals: float, noise: float = 0.02, count: int = 5) -> list[Run]:
    """Return runs around these TPS at 1, 2, 3 … processes."""
    return [passes(files, processes, tps, noise, count) for processes, tps in enumerate(totals, 1)]


SCALED: dict[str, Sequence[Run]] = {
    "single trials": [*curve(1, 1000, 900), *curve(20, 1100, 12_345)],
    "out of the noise": [*measured(1, 1000, 900), *measured(20, 1100, 12_345)],
    "hardly different": measured(1, 500, 1000, 1003, noise=0.005),
    "in the noise": measured(1, 100, 1000, 1100, noise=0.2),
    # A point that is below any other point is not among the best, though noise hides the highest.
    "less than any other": [passes(1, 1, 1000, 0.02), passes(1, 2, 1150, 0.02), passes(1, 3, 1150, 0.2)],
    "one point alone": measured(1, 1000),
    "pairs": [replace(base, case=replace(base.case, workload="classic")) for base in curve(1, 1000, 900)],
    "a plateau": measured(1, 500, 1000, 1000, 1000, noise=0.005),
    "a fall": measured(1, 500, 1000, 1000, 500, noise=0.005),
    "a plateau, perhaps": measured(1, 100, 940, 1000, 1000, noise=0.04),
    "a rise": measured(1, 500, 700, 900, 1200, noise=0.005),
    "a rise of two": measured(1, 500, 700, noise=0.005),
    "no gain, perhaps": measured(1, 1000, 1000, 1000, noise=0.06),
    "a rise, perhaps": measured(1, 100, 1000, 1100, noise=0.3),
    "nothing": measured(1, 1000, 1100, noise=2.0),
    **{
        f"20 buckets beside 1: {name}": [
            *measured(1, 1000, 1000, 9000, noise=noise),
            *measured(20, 500, tps, noise=noise),
        ]
        for name, tps, noise in (
            ("more", 1900, 0.01), ("less", 500, 0.01), ("as much", 1000, 0.005), ("noise", 1200, 0.3)
        )
    },
    "no number of processes in common": [*measured(1, 1000, 1000), passes(20, 7, 1000)],
    "a layout each": [*measured(1, 500, 1000), *measured(20, 1000, 1000, noise=0.005)],
    "several layouts alike": [run for files in (1, 2, 5) for run in measured(files, 500, 1000, noise=0.005)],
}  # fmt: skip
CODES = ("highest", "best", "plateau", "still-rising", "scaling-unclear", "layouts")


def test_findings_on_totals_equal_the_golden_file() -> None:
    found = {
        name: [
            finding.text for finding in advise(replace(EXAMPLE, runs=tuple(runs))) if finding.code in CODES
        ]
        for name, runs in SCALED.items()
    }
    assert_golden_texts("scaling.txt", found)


def test_equal_best_cases_show_a_range() -> None:
    runs = measured(1, 100, 1000, 1500, noise=0.4)
    low, high = sorted(run.median_tps() or 0.0 for run in runs[1:])
    found = re.match(r"No clear best: ([\d,]+) to ([\d,]+) transactions", findings(*runs)["best"])
    assert found
    said = [float(each.replace(",", "")) for each in found.groups()]
    assert said == pytest.approx([low, high], rel=0.01)


@pytest.mark.parametrize("doubtful", [{"verdict": WRONG}, {"error": "worker 1 died"}, {"tps": float("inf")}])
def test_doubtful_figure_is_never_the_best(doubtful: dict[str, object]) -> None:
    best = replace(trial(99_000), **doubtful)  # type: ignore[arg-type]
    told = findings(*measured(1, 1000, 500), run(1, 3, *[best] * 5))
    assert told["best"].endswith("with 1 process.")


def test_many_layouts_need_no_additional_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    reckon = Passes.passes_needed

    def count_needed(passes: Passes[int], share: float) -> int:
        asked.append(share)
        return reckon(passes, share)

    monkeypatch.setattr(Passes, "passes_needed", count_needed)
    advise(replace(EXAMPLE, runs=tuple(run for files in range(1, 9) for run in measured(files, 9, 9.1))))
    assert len(asked) <= 1


def test_runs_of_other_settings_form_a_group_that_shares_the_error_rate() -> None:
    runs = (*curve(1, 1000, 900), *(run(1, n, case=Case(duration_s=9.0)) for n in (1, 2)), *curve(20, 1000))
    groups = group_runs(runs)
    assert [len(group.runs) for group in groups] == [3, 2]
    assert {group.groups for group in groups} == {2}
    assert [finding.code for finding in advise(replace(EXAMPLE, runs=runs))].count("highest") == 2


def test_intervals_are_wider_with_more_groups() -> None:
    (group,) = group_runs(measured(1, 1000, 1100))
    alone, among = (replace(group, groups=groups).pairwise_tests(group.runs) for groups in (1, 20))
    assert alone and among
    few, many = (tested.ratio(*group.runs) for tested in (alone, among))
    assert few and many
    assert many.high > few.high
