"""Which target leads where: only what the passes tell, and only of commits that are worth the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.answers import leads, sides_of
from sqlstress.analysis.group import Group, group_runs, joined
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Arrivals, Case
from sqlstress.show.phrases import phrase
from sqlstress.target import DRIVERS, LAST_LOST, SYNCED, Known
from tests.analysis.hand_made import run, trial

NOISE = (0.98, 1.01, 1.0, 1.02, 0.99)
ROUGH = (0.5, 1.9, 1.0, 1.4, 0.7)
DRIFT = (1.0, 2.0, 4.0, 8.0, 16.0)
"""What meets all cases of a pass alike."""
ANOTHER = "another"
"""A driver of a target that is known by the registry alone."""


@pytest.fixture(autouse=True)
def another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DRIVERS, ANOTHER, Known("elsewhere", "", "of a test", keyvalue=True))


def measured(
    driver: str, tps: float, processes: int = 2, noise: Sequence[float] = NOISE, worth: str = SYNCED
) -> Run:
    """Return a run of a driver, a trial for each pass."""
    trials = (
        trial(tps * one, index=index, durability=f"{worth}: as it is set") for index, one in enumerate(noise)
    )
    return run(1, processes, *trials, case=Case(driver=driver))


def whole(*runs: Run) -> Group:
    """Return the one table of these runs."""
    (found,) = joined(group_runs(runs))
    return found


def said(*runs: Run) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for finding in advise_group(whole(*runs)):
        found.setdefault(finding.code, []).append(phrase(finding))
    return found


@pytest.mark.parametrize(("first", "second"), [("sqlite3", "lmdb"), ("lmdb", "sqlite3")])
def test_the_faster_one_leads_whichever_comes_first(first: str, second: str) -> None:
    both = {"sqlite3": (1000, NOISE), "lmdb": (3000, NOISE[::-1])}
    runs = [measured(driver, both[driver][0], noise=both[driver][1]) for driver in (first, second)]
    assert said(*runs)["leads"] == [
        "With every commit synced: lmdb leads with 2 processes on 1 file (2.9 to 3.1 times sqlite)."
    ]


def test_who_leads_may_be_another_one_with_more_processes() -> None:
    at = (1, 2, 4, 8)
    sqlite = [measured("sqlite3", tps, count) for tps, count in zip((900, 1000, 1000, 3000), at, strict=True)]
    other = [
        measured("lmdb", tps, count, NOISE[::-1])
        for tps, count in zip((2000, 2000, 1001, 1000), at, strict=True)
    ]
    assert said(*sqlite, *other)["leads"] == [
        "With every commit synced: lmdb leads with 1 and 2 processes on 1 file (2.0 to 2.3 times sqlite); "
        "sqlite and lmdb are about equal with 4 processes on 1 file; "
        "sqlite leads with 8 processes on 1 file (2.9 to 3.1 times lmdb)."
    ]


def test_what_drifts_over_the_passes_is_no_noise() -> None:
    runs = measured("sqlite3", 1000, noise=DRIFT), measured("lmdb", 2000, noise=DRIFT)
    assert "lmdb leads with 2 processes on 1 file (2.0 to 2.0 times sqlite)" in said(*runs)["leads"][0]


def test_what_noise_hides_cannot_be_told_and_how_many_passes_would_help_is_said() -> None:
    runs = measured("sqlite3", 1000, noise=ROUGH), measured("lmdb", 1300, noise=ROUGH[::-1])
    (text,) = said(*runs)["leads"]
    assert text.startswith(
        "With every commit synced: which of sqlite and lmdb leads with 2 processes on 1 file can't be told. "
        "5 passes are too noisy"
    )


def test_a_single_trial_tells_nothing() -> None:
    runs = measured("sqlite3", 1000, noise=(1.0,)), measured("lmdb", 9000, noise=(1.0,))
    assert said(*runs)["leads"] == [
        "Which of sqlite and lmdb leads can't be told. So few trials tell no difference from noise: "
        "measure with --repeat 5."
    ]


@pytest.mark.parametrize("worth", [LAST_LOST, ""])
def test_commits_that_are_not_worth_the_same_are_not_compared(worth: str) -> None:
    runs = measured("sqlite3", 1000), measured("lmdb", 9000, worth=worth)
    found = said(*runs)
    assert "leads" not in found and "answer" not in found
    assert found["not-comparable"] == [
        f"Not comparable, since a commit is not worth the same: sqlite: every commit synced; "
        f"lmdb: {worth or 'not known'}. Where --synchronous gives them the same, measure so."
    ]


def test_of_three_those_are_compared_that_can_be() -> None:
    runs = (
        measured("sqlite3", 1000),
        measured("lmdb", 9000, worth=LAST_LOST),
        measured(ANOTHER, 500, noise=NOISE[::-1]),
    )
    found = said(*runs)
    assert found["leads"] == [
        "With every commit synced: sqlite leads with 2 processes on 1 file (2.0 to 2.0 times elsewhere)."
    ]
    assert "sqlite and elsewhere: every commit synced; lmdb: a power cut can" in found["not-comparable"][0]


def test_two_of_three_can_lead_together() -> None:
    runs = measured("sqlite3", 1000), measured("lmdb", 3000), measured(ANOTHER, 3001, noise=NOISE[::-1])
    assert said(*runs)["leads"] == [
        "With every commit synced: lmdb and elsewhere are about equal and lead with 2 processes on 1 file."
    ]


def test_wrong_data_leads_nowhere() -> None:
    wrong = measured("lmdb", 9000)
    lost = Verdict((Check("last write", "failed", 1, 1, ("key 7 is gone",)),))
    wrong = replace(wrong, trials=tuple(replace(one, verdict=lost) for one in wrong.trials))
    assert leads(whole(measured("sqlite3", 1000), wrong)) == []


def test_at_a_rate_nobody_leads() -> None:
    due = Arrivals(rate=100)
    runs = [
        replace(one, case=replace(one.case, arrivals=due))
        for one in (measured("sqlite3", 1), measured("lmdb", 2))
    ]
    assert leads(whole(*runs)) == []


def test_drivers_of_one_target_are_no_sides_and_answer_as_before() -> None:
    runs = measured("sqlite3", 1000), measured("apsw", 2000)
    assert sides_of(whole(*runs)) == ()
    assert said(*runs)["answer"][0].startswith("driver apsw: 2.0 times sqlite3")


@given(
    st.lists(st.floats(0.7, 1.4), min_size=5, max_size=5),
    st.lists(st.floats(0.7, 1.4), min_size=5, max_size=5),
)
def test_two_histories_that_are_exchanged_exchange_their_leader(one: list[float], other: list[float]) -> None:
    (found,) = leads(whole(measured("sqlite3", 1000, noise=one), measured("lmdb", 1000, noise=other)))
    (mirrored,) = leads(whole(measured("sqlite3", 1000, noise=other), measured("lmdb", 1000, noise=one)))
    exchange = {"sqlite": "lmdb", "lmdb": "sqlite"}
    assert found.verdict == mirrored.verdict
    assert {exchange[name] for name in found.ahead} == set(mirrored.ahead)


@pytest.mark.thorough
def test_without_a_difference_somebody_leads_as_rarely_as_is_promised() -> None:
    draw, wrong, of = Random(3), 0, 400
    for _ in range(of):
        both = [
            measured(driver, 1000, count, [exp(draw.gauss(0, 0.1)) for _ in range(5)])
            for driver in ("sqlite3", "lmdb")
            for count in (1, 2, 4)
        ]
        wrong += any(one.verdict == "leads" for one in leads(whole(*both)))
    assert wrong <= 0.05 * of
