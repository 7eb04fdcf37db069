"""What a plan answers: which value does better, by how much, and whether that is more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.answers import answer
from sqlstress.analysis.group import Group, group_runs, joined
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Case
from sqlstress.show.phrases import phrase
from tests.analysis.hand_made import run, trial

NOISE = (0.98, 1.01, 1.0, 1.02, 0.99)
ROUGH = (1.1, 0.9, 1.0, 1.15, 0.87)
DRIFT = (1.0, 2.0, 4.0, 8.0, 16.0)
"""What meets all cases of a pass alike."""


def measured(level: str, tps: float, noise: Sequence[float] = NOISE, processes: int = 2) -> Run:
    """Return a run at a level of synchronous, a trial for each pass."""
    case = replace(Case(), settings=replace(Case().settings, synchronous=level))
    trials = (trial(tps * one, index=index) for index, one in enumerate(noise))
    return run(1, processes, *trials, case=case)


def whole(*runs: Run) -> Group:
    """Return the one table of these runs."""
    (found,) = joined(group_runs(runs))
    return found


def told(*runs: Run) -> str:
    return " ".join(phrase(finding) for finding in answer(whole(*runs)))


def test_the_first_sentence_says_how_many_times_and_how_sure_that_is() -> None:
    runs = measured("full", 1000), measured("normal", 15_000, ROUGH)
    assert told(*runs) == "synchronous normal: 15 times full (12 to 19). Measured in transactions a second."
    assert advise_group(whole(*runs))[0].code == "answer"


def test_what_drifts_over_the_passes_is_no_noise() -> None:
    up = measured("full", 1000, DRIFT), measured("normal", 2000, DRIFT)
    assert told(*up) == "synchronous normal: 2.0 times full (2.0 to 2.0). Measured in transactions a second."


def test_several_values_are_each_set_against_the_first() -> None:
    text = told(measured("full", 1000), measured("normal", 2000, ROUGH), measured("off", 400))
    assert text.startswith("synchronous normal: 2.0 times full (1.")
    assert "); off: 0.40 times full (0.3" in text


def test_what_is_about_equal_is_called_so() -> None:
    text = told(measured("full", 1000), measured("extra", 1001, NOISE[::-1]))
    assert text.startswith("synchronous extra: about equal to full (0.9")


def test_what_noise_hides_cannot_be_told_and_how_long_it_would_take_is_said() -> None:
    text = told(measured("full", 1000, (0.5, 1, 1.6, 0.7, 1.2)), measured("extra", 1200, (1, 1.5, 0.5, 1, 1)))
    assert "synchronous extra: can't be told from full (0." in text
    assert "5 passes are too noisy" in text


def test_a_single_trial_gives_no_interval_and_says_so() -> None:
    text = told(measured("full", 1000, (1.0,)), measured("normal", 15_000, (1.0,)))
    assert text == (
        "synchronous normal: 15 times full. Measured in transactions a second. So few trials tell no "
        "difference from noise: measure with --repeat 5."
    )


def test_over_several_places_it_is_the_mean_and_where_it_differs_is_said() -> None:
    full = [measured("full", 1000, NOISE, count) for count in (1, 4)]
    normal = [measured("normal", tps, NOISE[::-1], count) for tps, count in ((16_000, 1), (4000, 4))]
    assert told(*full, *normal) == (
        "synchronous normal: 8.0 times full (7.8 to 8.2). Measured in transactions a second, as the mean "
        "over 1 and 4 processes on 1 file. normal reached 16 times at 1 process on 1 file but 4.0 times at 4 "
        "processes on 1 file."
    )


def test_where_it_is_the_same_at_all_places_only_the_mean_is_said() -> None:
    runs = [
        measured(level, tps, noise, count)
        for level, tps, noise in (("full", 1000, NOISE), ("normal", 2000, NOISE[::-1]))
        for count in (1, 4)
    ]
    assert "reached" not in told(*runs)


def test_wrong_data_and_what_was_not_measured_are_set_beside_nothing() -> None:
    lost = Verdict((Check("last write", "failed", 10, 1),))
    wrong = measured("normal", 2000)
    wrong = replace(wrong, trials=tuple(replace(one, verdict=lost) for one in wrong.trials))
    assert told(measured("full", 1000), wrong) == ""
    failed = replace(measured("normal", 2000), trials=(), error="no space.")
    assert told(measured("full", 1000), failed) == ""


@pytest.mark.parametrize("others", [(), ("normal", "off")])
def test_the_probability_of_an_error_is_shared_with_all_that_the_report_says(others: tuple[str, ...]) -> None:
    group = whole(measured("full", 1000), *(measured(level, 2000) for level in others))
    assert group.groups == (1 if not others else 4)
