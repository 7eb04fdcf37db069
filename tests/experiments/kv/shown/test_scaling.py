"""Tests of what is said of the totals: the best point, where they stop rising, the layouts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise
from sqlstress.analysis.group import group_runs
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Case
from sqlstress.show.phrases import phrase
from sqlstress.statistics.compare import Passes
from tests.analysis.hand_made import EXAMPLE, curve, findings, passes, run, trial

WRONG = Verdict((Check("last write", "failed", 10, 1),))


def measured(files: int, *totals: float, noise: float = 0.02, count: int = 5) -> list[Run]:
    """Return runs around these TPS at 1, 2, 3 … processes."""
    return [passes(files, processes, tps, noise, count) for processes, tps in enumerate(totals, 1)]


def test_of_single_trials_only_the_highest_is_told_and_what_it_is_worth() -> None:
    told = findings(*curve(1, 1000, 900), *curve(20, 1100, 12_345))
    assert told["highest"] == (
        "Too few trials to tell which is best; the highest was 12,300 transactions a second, with "
        "2 processes on 20 files. Measure with --repeat 5."
    )
    assert not told.keys() & {"plateau", "still-rising", "scaling-unclear", "layouts"}


def test_what_stands_out_of_the_noise_is_the_best() -> None:
    told = findings(*measured(1, 1000, 900), *measured(20, 1100, 12_345))
    assert told["best"].startswith("Best: 12,")
    assert told["best"].endswith("transactions a second, with 2 processes on 20 files.")


def test_those_that_hardly_differ_are_about_equal() -> None:
    told = findings(*measured(1, 500, 1000, 1003, noise=0.005))
    assert told["best"].endswith("with 2 and 3 processes on 1 file, which are about equal.")


def test_those_that_noise_hides_cannot_be_told_apart() -> None:
    told = findings(*measured(1, 100, 1000, 1100, noise=0.2))
    assert told["best"].endswith("with 2 and 3 processes on 1 file, which can't be told apart.")


def test_those_that_cannot_be_told_apart_reached_from_the_least_to_the_most_of_them() -> None:
    runs = measured(1, 100, 1000, 1500, noise=0.4)
    low, high = sorted(run.median_tps() or 0.0 for run in runs[1:])
    found = re.match(r"Best: ([\d,]+) to ([\d,]+) transactions", findings(*runs)["best"])
    assert found
    said = [float(each.replace(",", "")) for each in found.groups()]
    assert said == pytest.approx([low, high], rel=0.01)


def test_who_is_less_than_any_other_is_none_of_the_best_though_noise_hides_the_highest() -> None:
    runs = [passes(1, 1, 1000, 0.02), passes(1, 2, 1150, 0.02), passes(1, 3, 1150, 0.2)]
    told = findings(*runs)["best"]
    assert told.endswith("with 2 and 3 processes on 1 file, which can't be told apart.")


def test_one_point_alone_has_no_best_and_no_plateau() -> None:
    assert not findings(*measured(1, 1000)).keys() & {"best", "plateau", "still-rising", "layouts"}


@pytest.mark.parametrize("doubtful", [{"verdict": WRONG}, {"error": "worker 1 died"}, {"tps": float("inf")}])
def test_a_figure_that_cannot_be_believed_is_never_the_best(doubtful: dict[str, object]) -> None:
    best = replace(trial(99_000), **doubtful)  # type: ignore[arg-type]
    told = findings(*measured(1, 1000, 500), run(1, 3, *[best] * 5))
    assert told["best"].endswith("with 1 process on 1 file.")


def test_pairs_are_called_pairs() -> None:
    runs = [replace(one, case=replace(one.case, workload="classic")) for one in curve(1, 1000, 900)]
    assert "1,000 pairs a second" in findings(*runs)["highest"]


@pytest.mark.parametrize(
    ("totals", "code", "expected"),
    [
        ((500, 1000, 1000, 1000), "plateau", "On 1 file more than 2 processes gained less than 10%."),
        (
            (500, 1000, 1000, 500),
            "plateau",
            "On 1 file more than 2 processes gained less than 10%, and 4 processes reached only 0.5 times "
            "(0.49 to 0.51) the best.",
        ),
        (
            (500, 1000, 1030, 1030),
            "plateau",
            "On 1 file more than 2 processes gained less than 10%; whether more than 2 gained anything",
        ),
        (
            (500, 700, 900, 1200),
            "still-rising",
            "On 1 file the total still rose at the most that was measured, 4 processes: "
            "try more with --concurrency.",
        ),
        (
            (500, 700),
            "still-rising",
            "On 1 file the total still rose at the most that was measured, 2 processes",
        ),
    ],
)
def test_where_the_total_stops_rising(totals: Sequence[float], code: str, expected: str) -> None:
    told = findings(*measured(1, *totals, noise=0.005))
    assert told[code].startswith(expected.partition("; whether")[0][:60])
    assert len(told.keys() & {"plateau", "still-rising", "scaling-unclear"}) == 1


def test_what_lies_between_is_said_to_be_unknown() -> None:
    told = findings(*measured(1, 100, 990, 1000, 1000, noise=0.01))
    assert told["plateau"] == "On 1 file more than 2 processes gained less than 10%."
    told = findings(*measured(1, 100, 940, 1000, 1000, noise=0.04))
    assert told["plateau"] == (
        "On 1 file more than 3 processes gained less than 10%; whether more than 2 gained anything can't be "
        "told."
    )


def test_what_noise_leaves_possible_is_said() -> None:
    told = findings(*measured(1, 1000, 1000, 1000, noise=0.06))
    assert re.fullmatch(
        r"On 1 file more than 1 process gained at most \d\d%, if anything: 5 passes are too noisy\. "
        r"About \d+ would tell 10% \(--repeat \d+\)\.",
        told["scaling-unclear"],
    )


def test_noise_that_hides_everything_says_how_many_passes_would_tell() -> None:
    told = findings(*measured(1, 100, 1000, 1100, noise=0.2))
    assert told["scaling-unclear"].startswith(
        "On 1 file more than 1 process gained something; whether it pays to have more than 2 processes can't "
        "be told: 5 passes are too noisy. About "
    )
    assert "would tell 10% (--repeat " in told["scaling-unclear"]


def test_noise_that_no_patience_helps_against_says_so() -> None:
    told = findings(*measured(1, 1000, 1100, noise=2.0))
    assert told["scaling-unclear"].endswith("and so would 1,000 be: measure where less else is running.")


def test_every_layout_is_told_by_itself() -> None:
    runs = (*measured(1, 500, 1000), *measured(20, 1000, 1000, noise=0.005))
    told = [phrase(one) for one in advise(replace(EXAMPLE, runs=tuple(runs)))]
    assert sum(text.startswith("On 1 file the total still rose") for text in told) == 1
    assert sum(text.startswith("On 20 files more than 1 process gained less") for text in told) == 1


def test_what_is_so_of_several_layouts_is_said_once() -> None:
    runs = [one for files in (1, 2, 5) for one in measured(files, 500, 1000, noise=0.005)]
    told = [phrase(one) for one in advise(replace(EXAMPLE, runs=tuple(runs))) if one.code == "still-rising"]
    assert [text.partition(" the total")[0] for text in told] == ["On 1, 2 and 5 files"]


def test_many_layouts_take_no_longer_than_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    reckon = Passes.needed

    def counted(passes: Passes[int], share: float) -> int:
        asked.append(share)
        return reckon(passes, share)

    monkeypatch.setattr(Passes, "needed", counted)
    advise(replace(EXAMPLE, runs=tuple(one for files in range(1, 9) for one in measured(files, 9, 9.1))))
    assert len(asked) <= 1


@pytest.mark.parametrize(
    ("tps", "noise", "expected"),
    [
        (
            1900,
            0.01,
            r"Compared with 1 file: 20 files gave 1\.9 times \(1\.8 to 2\.0\) as much at 2 processes\.",
        ),
        (500, 0.01, r"Compared with 1 file: 20 files gave 0\.5\d? times \(.*\) as much at 2 processes\."),
        (1000, 0.005, r"Compared with 1 file: 20 files gave about as much at 2 processes\."),
        (
            1200,
            0.3,
            r"Compared with 1 file: what 20 files gave at 2 processes can't be told from it \(.* times\)\.",
        ),
    ],
)
def test_layouts_are_compared_at_the_largest_common_concurrency(
    tps: float, noise: float, expected: str
) -> None:
    runs = (*measured(1, 1000, 1000, 9000, noise=noise), *measured(20, 500, tps, noise=noise))
    told = [phrase(one) for one in advise(replace(EXAMPLE, runs=runs)) if one.code == "layouts"]
    (text,) = told
    assert re.fullmatch(expected, text), text


@pytest.mark.parametrize("others", [(), (passes(20, 7, 1000),)])
def test_layouts_without_a_common_concurrency_are_not_compared(others: tuple[Run, ...]) -> None:
    assert "layouts" not in findings(*measured(1, 1000, 1000), *others)


def test_runs_of_other_settings_are_another_group_which_shares_the_error_rate() -> None:
    runs = (*curve(1, 1000, 900), *(run(1, n, case=Case(duration_s=9.0)) for n in (1, 2)), *curve(20, 1000))
    groups = group_runs(runs)
    assert [len(one.runs) for one in groups] == [3, 2]
    assert {one.groups for one in groups} == {2}
    assert [finding.code for finding in advise(replace(EXAMPLE, runs=runs))].count("highest") == 2


def test_more_groups_are_told_with_more_reserve() -> None:
    (one,) = group_runs(measured(1, 1000, 1100))
    alone, among = (replace(one, groups=groups).tested(one.runs) for groups in (1, 20))
    assert alone and among
    few, many = (tested.ratio(*one.runs) for tested in (alone, among))
    assert few and many
    assert many.high > few.high
