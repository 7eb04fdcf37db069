"""What others did to a measurement: when it is warned of, and which rows it met."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sqlstress.analysis.group import group_runs
from sqlstress.analysis.scaling import disturbances, disturbed, taken
from sqlstress.experiment import face_of
from sqlstress.report import Environment
from tests.analysis.hand_made import EXAMPLE, group, run, trial
from tests.example_methods import methods_report

CALM = replace(EXAMPLE.environment, sync_after=EXAMPLE.environment.sync)


def said(*runs: object, environment: Environment = CALM) -> list[str]:
    return list(disturbances(group(*runs), environment))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("foreign", "stolen", "expected"),
    [(None, None, 0.0), (0.3, 0.1, 0.4), (0.9, 0.9, 1.0), (math.inf, 0.1, 0.1), (math.nan, None, 0.0)],
)
def test_what_others_took_is_a_share_whatever_a_file_says(
    foreign: float | None, stolen: float | None, expected: float
) -> None:
    assert taken(trial(foreign_share=foreign, stolen_share=stolen)) == pytest.approx(expected)


def test_a_row_is_marked_where_half_of_its_passes_were_met() -> None:
    met, calm = trial(foreign_share=0.4), trial(foreign_share=0.04)
    assert disturbed(run(1, 2, met, met, calm, calm))
    assert not disturbed(run(1, 2, met, calm, calm))
    assert not disturbed(run(1, 2, trial()))
    assert not disturbed(run(1, 2, replace(met, error="worker 1 died"), calm))


def test_a_foreign_load_is_told_with_the_most_that_it_took_and_where() -> None:
    runs = (run(1, 2, trial(foreign_share=0.2)), run(1, 4, trial(foreign_share=0.62)), run(1, 8, trial()))
    assert said(*runs) == [
        "Other programs took up to 62% of the processors at 2 and 4 processes on 1 file: measure again where "
        "less else is running, or read these figures as those of a shared machine."
    ]


def test_a_load_that_met_every_case_is_told_without_a_list() -> None:
    (text,) = said(*(run(1, count, trial(foreign_share=0.3)) for count in (1, 2, 4)))
    assert text.startswith("Other programs took up to 30% of the processors throughout: measure again")


def test_of_one_pass_among_several_more_is_needed_to_be_worth_a_word() -> None:
    calm = trial(foreign_share=0.02)
    assert said(run(1, 2, trial(foreign_share=0.2), calm, calm)) == []
    assert len(said(run(1, 2, trial(foreign_share=0.3), calm, calm))) == 1


def test_a_hypervisor_is_told_from_other_programs() -> None:
    (text,) = said(run(1, 2, trial(foreign_share=0.01, stolen_share=0.3)))
    assert text.startswith("Other guests of the hypervisor took up to 31% of the processors")


def test_what_the_system_does_for_us_is_not_worth_a_word() -> None:
    assert said(run(1, 2, trial(foreign_share=0.05))) == []


def test_heat_is_told() -> None:
    assert said(run(1, 2, trial(throttled=3)), run(1, 4, trial(throttled=0))) == [
        "Processors were slowed down for heat at 2 processes on 1 file: let them cool, then go on."
    ]


@pytest.mark.parametrize(("factor", "word"), [(2.5, "slow"), (0.4, "fast")])
def test_a_disk_that_changed_is_told(factor: float, word: str) -> None:
    before = EXAMPLE.environment.sync
    assert before
    after = replace(before, overwrite_p50_ns=int(before.overwrite_p50_ns * factor))
    (text,) = said(run(1, 2), environment=replace(EXAMPLE.environment, sync_after=after))
    assert text.endswith(f"the disk became 2.5 times as {word} meanwhile.")


@pytest.mark.parametrize("factor", [0.6, 1.0, 1.9])
def test_a_disk_that_hardly_changed_is_not(factor: float) -> None:
    before = EXAMPLE.environment.sync
    assert before
    after = replace(before, overwrite_p50_ns=int(before.overwrite_p50_ns * factor))
    assert said(run(1, 2), environment=replace(EXAMPLE.environment, sync_after=after)) == []


def test_names_are_told_as_they_are_written() -> None:
    report = methods_report()
    tsc = report.runs[1]
    met = replace(tsc, trials=(replace(tsc.trials[0], foreign_share=0.5),))
    texts = [
        text
        for one in group_runs((report.runs[0], met, *report.runs[2:]))
        for text in disturbances(one, CALM)
    ]
    assert any(face_of(met.case).words.work_of(met.case) in text for text in texts), texts
