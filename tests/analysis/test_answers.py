"""What the passes of cases say of each other: who leads, which value does better, and what cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis import group as groups
from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.answers import answer, doubts, leaders, leads, sides_of
from sqlstress.analysis.finding import Finding, texts
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Arrivals, Case, Settings
from sqlstress.target import DRIVERS, LAST_LOST, SYNCED, Known
from tests.analysis.hand_made import NOISE, at_each_pass, group, one_table, passes
from tests.example_report import assert_golden_texts
from tests.several import with_trials

ROUGH = (1.1, 0.9, 1.0, 1.15, 0.87)
WILD = (0.5, 1.9, 1.0, 1.4, 0.7)
DRIFT = (1.0, 2.0, 4.0, 8.0, 16.0)
"""What meets all cases of a pass alike."""


def wrong(found: Run) -> Run:
    lost = Verdict((Check("last write", "failed", 10, 1, ("key 7 is gone",)),))
    return with_trials(found, verdict=lost)


def passed(*totals: float, noise: float) -> tuple[groups.Tested, Sequence[Run]]:
    runs = [passes(1, processes, tps, noise) for processes, tps in enumerate(totals, 1)]
    found = group(*runs).tested(runs)
    assert found
    return found, runs


def test_one_alone_leads_where_all_others_are_lower_beyond_doubt() -> None:
    found, runs = passed(100, 900, 300, noise=0.01)
    lead = leaders(found, runs)
    assert (lead.runs, lead.unclear) == ((runs[1],), False)


def test_those_that_hardly_differ_lead_together() -> None:
    found, runs = passed(100, 1000, 1001, noise=0.003)
    lead = leaders(found, runs)
    assert set(map(id, lead.runs)) == {id(runs[1]), id(runs[2])}
    assert lead.equal and not lead.unclear


def test_those_that_noise_hides_cannot_be_told_apart() -> None:
    found, runs = passed(1000, 1100, 1200, noise=0.5)
    lead = leaders(found, runs)
    assert len(lead.runs) == 3 and lead.unclear and not lead.equal


class Lead(NamedTuple):
    """A part of a finding."""

    unclear: bool


def test_why_something_cannot_be_told_is_said_once_and_only_where_something_cannot() -> None:
    found, _ = passed(1000, 1100, noise=0.1)

    def sentence(**facts: object) -> str:
        return str(facts)

    sure, unsure = Finding(sentence), Finding(sentence, leads=(Lead(unclear=True),))
    assert list(doubts(found, [sure], Case())) == list(doubts(None, [], Case())) == []
    (why,) = doubts(found, [sure, unsure, unsure], Case())
    assert why.text.startswith('Reason for "cannot tell": 5 passes cannot show a ')
    for repeat, help_ in ((2, "use --repeat 3 or more."), (3, "let all 3 passes finish.")):
        (few,) = doubts(None, [sure], Case(repeat=repeat))
        assert few.text == f"Too few trials to tell a difference from noise: {help_}"


# Values: which of an option does better.


def level(synchronous: str, tps: float, noise: Sequence[float] = NOISE, processes: int = 2) -> Run:
    """Return a run at a level of synchronous."""
    return at_each_pass(Case(settings=Settings(synchronous=synchronous)), tps, processes, noise)


BOTH = [level("full", 1000, NOISE, count) for count in (1, 4)]


ANSWERED: dict[str, list[Run]] = {
    "more": [level("full", 1000), level("normal", 15_000, ROUGH)],
    "drift": [level("full", 1000, DRIFT), level("normal", 2000, DRIFT)],
    "three": [level("full", 1000), level("normal", 2000, ROUGH), level("off", 400)],
    "equal": [level("full", 1000), level("extra", 1001, NOISE[::-1])],
    "noise": [level("full", 1000, (0.5, 1, 1.6, 0.7, 1.2)), level("extra", 1200, (1, 1.5, 0.5, 1, 1))],
    "one trial": [level("full", 1000, (1.0,)), level("normal", 15_000, (1.0,))],
    "by place": [*BOTH, level("normal", 16_000, NOISE[::-1], 1), level("normal", 4000, NOISE[::-1], 4)],
    "alike at all places": [*BOTH, *(level("normal", 2000, NOISE[::-1], count) for count in (1, 4))],
    "wrong": [level("full", 1000), wrong(level("normal", 2000))],
    "failed": [level("full", 1000), replace(level("normal", 2000), trials=(), error="no space.")],
}


def test_a_value_is_set_against_the_first_one_pass_by_pass() -> None:
    found = {name: texts(answer(one_table(*runs))) for name, runs in ANSWERED.items()}
    assert_golden_texts("answers.txt", found)


@pytest.mark.parametrize("others", [(), ("normal", "off")])
def test_the_probability_of_an_error_is_shared_with_all_that_the_report_says(others: tuple[str, ...]) -> None:
    found = one_table(level("full", 1000), *(level(other, 2000) for other in others))
    assert found.groups == (1 if not others else 4)


# Sides: which target leads where, and only of commits that are worth the same.


ANOTHER = "another"
"""A driver of a target that is known by the registry alone."""


@pytest.fixture(autouse=True)
def another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DRIVERS, ANOTHER, Known("elsewhere", "", "of a test", keyvalue=True))


def driven(
    driver: str, tps: float, processes: int = 2, noise: Sequence[float] = NOISE, worth: str = SYNCED
) -> Run:
    """Return a run of a driver."""
    return at_each_pass(Case(driver=driver), tps, processes, noise, durability=f"{worth}: as it is set")


def said(*runs: Run) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for finding in advise_group(one_table(*runs)):
        found.setdefault(finding.code, []).append(finding.text)
    return found


def swept(driver: str, *totals: float, noise: Sequence[float] = NOISE) -> list[Run]:
    """Return runs of a driver with these TPS at 1, 2, 4 and 8 processes."""
    return [driven(driver, tps, count, noise) for count, tps in zip((1, 2, 4, 8), totals, strict=True)]


LEADING: dict[str, list[Run]] = {
    "the second": [driven("sqlite3", 1000), driven("lmdb", 3000, noise=NOISE[::-1])],
    "by place": [
        *swept("sqlite3", 900, 1000, 1000, 3000),
        *swept("lmdb", 2000, 2000, 1001, 1000, noise=NOISE[::-1]),
    ],
    "drift": [driven("sqlite3", 1000, noise=DRIFT), driven("lmdb", 2000, noise=DRIFT)],
    "noise": [driven("sqlite3", 1000, noise=WILD), driven("lmdb", 1300, noise=WILD[::-1])],
    "one trial": [driven("sqlite3", 1000, noise=(1.0,)), driven("lmdb", 9000, noise=(1.0,))],
    "two of three": [driven("sqlite3", 1000), driven("lmdb", 3000), driven(ANOTHER, 3001, noise=NOISE[::-1])],
}


def test_who_leads_where_is_what_the_passes_tell() -> None:
    assert_golden_texts("leaders.txt", {name: said(*runs)["leads"] for name, runs in LEADING.items()})


@pytest.mark.parametrize("worth", [LAST_LOST, ""])
def test_commits_that_are_not_worth_the_same_are_not_compared(worth: str) -> None:
    found = said(driven("sqlite3", 1000), driven("lmdb", 9000, worth=worth))
    assert "leads" not in found and "answer" not in found
    assert found["not-comparable"] == [
        f"Not comparable: commits differ in durability (sqlite: every commit synced; lmdb: "
        f"{worth or 'not known'}). Choose a --synchronous that gives all the same durability."
    ]


def test_of_three_those_are_compared_that_can_be() -> None:
    lazy = driven("lmdb", 9000, worth=LAST_LOST)
    found = said(driven("sqlite3", 1000), lazy, driven(ANOTHER, 500, noise=NOISE[::-1]))
    (leads,) = found["leads"]
    assert "sqlite leads with 2 processes on 1 bucket (2.0 to 2.0 times elsewhere)." in leads
    assert "sqlite and elsewhere: every commit synced; lmdb: a power cut can" in found["not-comparable"][0]


def test_wrong_data_leads_nowhere_and_at_a_rate_nobody_does() -> None:
    assert leads(one_table(driven("sqlite3", 1000), wrong(driven("lmdb", 9000)))) == []
    runs = [driven("sqlite3", 1), driven("lmdb", 2)]
    due = [replace(found, case=replace(found.case, arrivals=Arrivals(rate=100))) for found in runs]
    assert leads(one_table(*due)) == []


def test_drivers_of_one_target_are_no_sides_and_answer_as_before() -> None:
    runs = driven("sqlite3", 1000), driven("apsw", 2000)
    assert sides_of(one_table(*runs)) == ()
    assert said(*runs)["answer"][0].startswith("driver: apsw reached 2.0 times sqlite3")


@given(
    st.lists(st.floats(0.7, 1.4), min_size=5, max_size=5),
    st.lists(st.floats(0.7, 1.4), min_size=5, max_size=5),
)
def test_two_histories_that_are_exchanged_exchange_their_leader(one: list[float], other: list[float]) -> None:
    (found,) = leads(one_table(driven("sqlite3", 1000, noise=one), driven("lmdb", 1000, noise=other)))
    (mirrored,) = leads(one_table(driven("sqlite3", 1000, noise=other), driven("lmdb", 1000, noise=one)))
    exchange = {"sqlite": "lmdb", "lmdb": "sqlite"}
    assert found.verdict == mirrored.verdict
    assert {exchange[name] for name in found.ahead} == set(mirrored.ahead)


@pytest.mark.thorough
def test_without_a_difference_somebody_leads_as_rarely_as_is_promised() -> None:
    draw, count, of = Random(3), 0, 400
    for _ in range(of):
        both = [
            driven(driver, 1000, processes, [exp(draw.gauss(0, 0.1)) for _ in range(5)])
            for driver in ("sqlite3", "lmdb")
            for processes in (1, 2, 4)
        ]
        count += any(lead.verdict == "leads" for lead in leads(one_table(*both)))
    assert count <= 0.05 * of
