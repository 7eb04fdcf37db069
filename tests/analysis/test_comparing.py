"""What is said of cases that their passes compare: who leads, by how much, and what can't be told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sqlstress.analysis import group as groups
from sqlstress.analysis.answers import doubts, is_told, laggards, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show.phrases import Phrase, phrase
from sqlstress.statistics.compare import Ratio
from tests.analysis.hand_made import group, passes


def measured(*totals: float, noise: float) -> tuple[groups.Tested, Sequence[Run]]:
    runs = [passes(1, processes, tps, noise) for processes, tps in enumerate(totals, 1)]
    found = group(*runs).tested(runs)
    assert found
    return found, runs


def test_one_alone_leads_where_all_others_are_lower_beyond_doubt() -> None:
    found, runs = measured(100, 900, 300, noise=0.01)
    first, last = leaders(found, runs), laggards(found, runs)
    assert (first.runs, first.unclear) == ((runs[1],), False)
    assert (last.runs, last.unclear) == ((runs[0],), False)


def test_those_that_hardly_differ_lead_together() -> None:
    found, runs = measured(100, 1000, 1001, noise=0.003)
    assert set(map(id, leaders(found, runs).runs)) == {id(runs[1]), id(runs[2])}
    lead = leaders(found, runs)
    assert lead.equal and not lead.unclear


def test_those_that_noise_hides_cannot_be_told_apart() -> None:
    found, runs = measured(1000, 1100, 1200, noise=0.5)
    for lead in (leaders(found, runs), laggards(found, runs)):
        assert len(lead.runs) == 3
        assert lead.unclear and not lead.equal


@pytest.mark.parametrize(
    ("ratio", "told"),
    [
        (Ratio(1.9, 1.8, 2.0, 5), "1.9 times (1.8 to 2.0) as fast"),
        (Ratio(0.5, 0.4, 0.6, 5), "0.50 times (0.40 to 0.60) as fast"),
        (Ratio(1.02, 1.01, 1.05, 5), "about as fast"),
        (Ratio(1.2, 0.8, 1.7, 5), None),
        (None, None),
    ],
)
def test_a_ratio_is_told_with_its_interval_or_not_at_all(ratio: Ratio | None, told: str | None) -> None:
    assert is_told(ratio) == (told is not None)
    if ratio and told:
        assert Phrase("{ratio:compared as fast}").filled({"ratio": ratio}) == told


def test_why_something_cannot_be_told_is_said_once_and_only_where_something_cannot() -> None:
    found, _ = measured(1000, 1100, noise=0.1)
    sure, unsure = Finding("a"), Finding("b", lead=Finding("c", unclear=True))
    assert list(doubts(found, [sure], Case())) == []
    (why,) = doubts(found, [sure, unsure, unsure], Case())
    assert phrase(why).startswith("Why something can't be told: 5 passes are too noisy. About ")


def test_of_too_few_passes_it_is_said_what_they_are_worth() -> None:
    took = [Finding("a")]
    (why,) = doubts(None, took, Case(repeat=1))
    assert phrase(why) == "So few trials tell no difference from noise: measure with --repeat 5."
    assert list(doubts(None, [], Case())) == []
    (stopped,) = doubts(None, took, Case(repeat=7))
    assert phrase(stopped) == "So few trials tell no difference from noise: let all 7 passes finish."
