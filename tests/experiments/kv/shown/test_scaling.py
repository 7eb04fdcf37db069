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


def test_of_single_trials_only_the_highest_is_told() -> None:
    told = findings(*curve(1, 1000, 900), *curve(20, 1100, 12_345))
    assert "Highest: 12,300 transactions per second with 2 processes on 20 files." in told["highest"]
    assert not told.keys() & {"plateau", "still-rising", "scaling-unclear", "layouts"}


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ((*measured(1, 1000, 900), *measured(20, 1100, 12_345)), r"Best: .* with 2 processes on 20 files\."),
        (
            measured(1, 500, 1000, 1003, noise=0.005),
            r"Best: .* 2 and 3 processes on 1 file \(about equal\)\.",
        ),
        (measured(1, 100, 1000, 1100, noise=0.2), r"No clear best: .* with 2 and 3 processes on 1 file\."),
        # Who is less than any other is none of the best, though noise hides the highest.
        (
            [passes(1, 1, 1000, 0.02), passes(1, 2, 1150, 0.02), passes(1, 3, 1150, 0.2)],
            r"No clear best: .* with 2 and 3 processes on 1 file\.",
        ),
    ],
    ids=["out of the noise", "hardly different", "in the noise", "less than any other"],
)
def test_the_best_are_those_that_none_is_known_to_exceed(runs: Sequence[Run], said: str) -> None:
    assert re.fullmatch(said, findings(*runs)["best"])


def test_those_that_cannot_be_told_apart_reached_from_the_least_to_the_most_of_them() -> None:
    runs = measured(1, 100, 1000, 1500, noise=0.4)
    low, high = sorted(run.median_tps() or 0.0 for run in runs[1:])
    found = re.match(r"No clear best: ([\d,]+) to ([\d,]+) transactions", findings(*runs)["best"])
    assert found
    said = [float(each.replace(",", "")) for each in found.groups()]
    assert said == pytest.approx([low, high], rel=0.01)


def test_one_point_alone_has_no_best_and_no_plateau() -> None:
    assert not findings(*measured(1, 1000)).keys() & {"best", "plateau", "still-rising", "layouts"}


@pytest.mark.parametrize("doubtful", [{"verdict": WRONG}, {"error": "worker 1 died"}, {"tps": float("inf")}])
def test_a_figure_that_cannot_be_believed_is_never_the_best(doubtful: dict[str, object]) -> None:
    best = replace(trial(99_000), **doubtful)  # type: ignore[arg-type]
    told = findings(*measured(1, 1000, 500), run(1, 3, *[best] * 5))
    assert told["best"].endswith("with 1 process on 1 file.")


def test_pairs_are_called_pairs() -> None:
    runs = [replace(one, case=replace(one.case, workload="classic")) for one in curve(1, 1000, 900)]
    assert "1,000 pairs per second" in findings(*runs)["highest"]


@pytest.mark.parametrize(
    ("totals", "noise", "code", "expected"),
    [
        ((500, 1000, 1000, 1000), 0.005, "plateau", "any gain beyond 2 processes is below 10%"),
        (
            (500, 1000, 1000, 500),
            0.005,
            "plateau",
            "and 4 processes reach only 0.50 times the best (0.49 to 0.51)",
        ),
        ((100, 940, 1000, 1000), 0.04, "plateau", "Cannot tell whether throughput rises beyond 2 processes"),
        (
            (500, 700, 900, 1200),
            0.005,
            "still-rising",
            "4 processes, the most measured: try more with --concurrency.",
        ),
        ((500, 700), 0.005, "still-rising", "at 2 processes, the most measured"),
        ((1000, 1000, 1000), 0.06, "scaling-unclear", "any gain beyond 1 process is at most"),
        (
            (100, 1000, 1100),
            0.3,
            "scaling-unclear",
            "cannot tell whether throughput rises beyond 2 processes. 5 passes are too noisy to show a ",
        ),
        ((1000, 1100), 2.0, "scaling-unclear", "and even 100 would be: use a quieter machine."),
    ],
)
def test_where_the_total_stops_rising(
    totals: Sequence[float], noise: float, code: str, expected: str
) -> None:
    told = findings(*measured(1, *totals, noise=noise))
    assert expected in told[code]
    assert len(told.keys() & {"plateau", "still-rising", "scaling-unclear"}) == 1


def test_every_layout_is_told_by_itself_and_what_is_so_of_several_is_said_once() -> None:
    runs = [*measured(1, 500, 1000), *measured(20, 1000, 1000, noise=0.005)]
    told = [phrase(one) for one in advise(replace(EXAMPLE, runs=tuple(runs)))]
    assert sum(text.startswith("On 1 file, throughput still rises") for text in told) == 1
    assert sum(text.startswith("On 20 files, any gain beyond 1 process is below") for text in told) == 1
    runs = [one for files in (1, 2, 5) for one in measured(files, 500, 1000, noise=0.005)]
    told = [phrase(one) for one in advise(replace(EXAMPLE, runs=tuple(runs))) if one.code == "still-rising"]
    assert [text.partition(", throughput")[0] for text in told] == ["On 1, 2 and 5 files"]


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
        (1900, 0.01, r"20 files gave 1\.9 times as much \(1\.8 to 2\.0\) at 2 processes"),
        (500, 0.01, r"20 files gave 0\.5\d? times as much \(.*\) at 2 processes"),
        (1000, 0.005, r"20 files gave about as much at 2 processes"),
        (1200, 0.3, r"cannot tell for 20 files at 2 processes \(.* times\)"),
    ],
)
def test_layouts_are_compared_at_the_largest_common_concurrency(
    tps: float, noise: float, expected: str
) -> None:
    runs = (*measured(1, 1000, 1000, 9000, noise=noise), *measured(20, 500, tps, noise=noise))
    told = [phrase(one) for one in advise(replace(EXAMPLE, runs=runs)) if one.code == "layouts"]
    (text,) = told
    assert re.fullmatch(rf"Compared with 1 file: {expected}\.", text), text


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
