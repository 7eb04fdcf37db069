"""Answers from the passes of cases: the leader, the better value, and unclear results."""

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
from sqlstress.analysis.answers import answer, inconclusive_findings, leaders, leads, sides_of
from sqlstress.analysis.finding import Finding, texts
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Arrivals, Case, Settings
from sqlstress.target import DRIVERS, LAST_LOST, SYNCED, DriverInfo
from tests.analysis.hand_made import NOISE, group, one_table, passes, run_at_each_pass
from tests.example_report import assert_golden_texts
from tests.several import with_trials

ROUGH = (1.1, 0.9, 1.0, 1.15, 0.87)
WILD = (0.5, 1.9, 1.0, 1.4, 0.7)
DRIFT = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Drift: factors of passes, which all cases share."""


def wrong(base: Run) -> Run:
    lost = Verdict((Check("last write", "failed", 10, 1, ("key 7 is gone",)),))
    return with_trials(base, verdict=lost)


def runs_and_tests(*totals: float, noise: float) -> tuple[groups.PairwiseTests, Sequence[Run]]:
    runs = [passes(1, processes, tps, noise) for processes, tps in enumerate(totals, 1)]
    tests = group(*runs).pairwise_tests(runs)
    assert tests
    return tests, runs


def test_significantly_faster_run_leads_alone() -> None:
    tests, runs = runs_and_tests(100, 900, 300, noise=0.01)
    lead = leaders(tests, runs)
    assert (lead.runs, lead.unclear) == ((runs[1],), False)


def test_nearly_equal_runs_lead_together() -> None:
    tests, runs = runs_and_tests(100, 1000, 1001, noise=0.003)
    lead = leaders(tests, runs)
    assert set(map(id, lead.runs)) == {id(runs[1]), id(runs[2])}
    assert lead.equal and not lead.unclear


def test_noisy_runs_have_an_unclear_leader() -> None:
    tests, runs = runs_and_tests(1000, 1100, 1200, noise=0.5)
    lead = leaders(tests, runs)
    assert len(lead.runs) == 3 and lead.unclear and not lead.equal


class Lead(NamedTuple):
    """A part of a finding."""

    unclear: bool


def test_reason_for_unclear_findings_appears_once() -> None:
    tests, _ = runs_and_tests(1000, 1100, noise=0.1)

    def sentence(**facts: object) -> str:
        return str(facts)

    sure, unsure = Finding(sentence), Finding(sentence, leads=(Lead(unclear=True),))
    assert (
        list(inconclusive_findings(tests, [sure], Case()))
        == list(inconclusive_findings(None, [], Case()))
        == []
    )
    (reason,) = inconclusive_findings(tests, [sure, unsure, unsure], Case())
    assert reason.text.startswith('Reason for "cannot tell": 5 passes cannot show a ')
    for repeat, help_ in ((2, "use --repeat 3 or more."), (3, "let all 3 passes finish.")):
        (few,) = inconclusive_findings(None, [sure], Case(repeat=repeat))
        assert few.text == f"Too few trials to tell a difference from noise: {help_}"


# Values: the better value of an option.


def level(synchronous: str, tps: float, noise: Sequence[float] = NOISE, processes: int = 2) -> Run:
    """Return a run at a level of synchronous."""
    return run_at_each_pass(Case(settings=Settings(synchronous=synchronous)), tps, processes, noise)


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


def test_values_are_compared_with_the_first_by_pass() -> None:
    texts_by_name = {name: texts(answer(one_table(*runs))) for name, runs in ANSWERED.items()}
    assert_golden_texts("answers.txt", texts_by_name)


@pytest.mark.parametrize("others", [(), ("normal", "off")])
def test_error_probability_is_shared_by_all_groups(others: tuple[str, ...]) -> None:
    table = one_table(level("full", 1000), *(level(other, 2000) for other in others))
    assert table.groups == (1 if not others else 4)


# Sides: the leading target by place, only among commits of equal durability.


ANOTHER = "another"
"""A driver whose target exists only in the registry."""


@pytest.fixture(autouse=True)
def another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DRIVERS, ANOTHER, DriverInfo("elsewhere", "", "of a test", keyvalue=True))


def driven(
    driver: str, tps: float, processes: int = 2, noise: Sequence[float] = NOISE, worth: str = SYNCED
) -> Run:
    """Return a run of a driver."""
    return run_at_each_pass(Case(driver=driver), tps, processes, noise, durability=f"{worth}: as it is set")


def texts_by_code(*runs: Run) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for finding in advise_group(one_table(*runs)):
        result.setdefault(finding.code, []).append(finding.text)
    return result


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


def test_leader_by_place_follows_from_the_passes() -> None:
    assert_golden_texts(
        "leaders.txt", {name: texts_by_code(*runs)["leads"] for name, runs in LEADING.items()}
    )


@pytest.mark.parametrize("worth", [LAST_LOST, ""])
def test_commits_of_different_durability_are_not_compared(worth: str) -> None:
    results = texts_by_code(driven("sqlite3", 1000), driven("lmdb", 9000, worth=worth))
    assert "leads" not in results and "answer" not in results
    assert results["not-comparable"] == [
        f"Not comparable: commits differ in durability (sqlite: every commit synced; lmdb: "
        f"{worth or 'not known'}). Choose a --synchronous that gives all the same durability."
    ]


def test_comparable_targets_of_three_are_compared() -> None:
    lazy = driven("lmdb", 9000, worth=LAST_LOST)
    results = texts_by_code(driven("sqlite3", 1000), lazy, driven(ANOTHER, 500, noise=NOISE[::-1]))
    (leads,) = results["leads"]
    assert "sqlite leads with 2 processes on 1 bucket (2.0 to 2.0 times elsewhere)." in leads
    assert "sqlite and elsewhere: every commit synced; lmdb: a power cut can" in results["not-comparable"][0]


def test_no_target_leads_with_wrong_data_or_at_a_rate() -> None:
    assert leads(one_table(driven("sqlite3", 1000), wrong(driven("lmdb", 9000)))) == []
    runs = [driven("sqlite3", 1), driven("lmdb", 2)]
    due = [
        replace(single_run, case=replace(single_run.case, arrivals=Arrivals(rate=100))) for single_run in runs
    ]
    assert leads(one_table(*due)) == []


def test_drivers_of_the_same_target_are_answered_by_value() -> None:
    runs = driven("sqlite3", 1000), driven("apsw", 2000)
    assert sides_of(one_table(*runs)) == ()
    assert texts_by_code(*runs)["answer"][0].startswith("driver: apsw reached 2.0 times sqlite3")


@given(
    st.lists(st.floats(0.7, 1.4), min_size=5, max_size=5),
    st.lists(st.floats(0.7, 1.4), min_size=5, max_size=5),
)
def test_exchanged_figures_exchange_the_leader(first_noise: list[float], second_noise: list[float]) -> None:
    (lead,) = leads(
        one_table(driven("sqlite3", 1000, noise=first_noise), driven("lmdb", 1000, noise=second_noise))
    )
    (mirrored,) = leads(
        one_table(driven("sqlite3", 1000, noise=second_noise), driven("lmdb", 1000, noise=first_noise))
    )
    exchange = {"sqlite": "lmdb", "lmdb": "sqlite"}
    assert lead.verdict == mirrored.verdict
    assert {exchange[name] for name in lead.ahead} == set(mirrored.ahead)


@pytest.mark.thorough
def test_equal_targets_rarely_have_a_leader() -> None:
    draw, count, trials = Random(3), 0, 400
    for _ in range(trials):
        both = [
            driven(driver, 1000, processes, [exp(draw.gauss(0, 0.1)) for _ in range(5)])
            for driver in ("sqlite3", "lmdb")
            for processes in (1, 2, 4)
        ]
        count += any(lead.verdict == "leads" for lead in leads(one_table(*both)))
    assert count <= 0.05 * trials
