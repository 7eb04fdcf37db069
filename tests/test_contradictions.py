"""The benchmark that holds the conclusions of runs against each other: what it calls a contradiction."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.contradictions import cannot_tell, claims, contradict, show, summary
from tests.analysis.hand_made import EXAMPLE, passes


def scaling(until: int, enough: int | None) -> dict[str, int | None]:
    return {"gains until": until, "enough": enough, "most": 8}


@pytest.mark.parametrize(
    ("about", "one", "other", "expected"),
    [
        ("best", [[1, 2]], [[1, 2], [1, 3]], False),
        ("best", [[1, 2]], [[1, 3], [20, 2]], True),
        ("scaling on 1", scaling(2, 4), scaling(3, 3), False),
        ("scaling on 1", scaling(2, 4), scaling(5, 6), True),
        ("scaling on 1", scaling(5, None), scaling(0, 4), True),
        ("scaling on 1", scaling(5, None), scaling(0, None), False),
        ("20 files beside 1", [1.2, 1.5], [0.6, 0.8], True),
        ("20 files beside 1", [1.2, 1.5], [0.95, 1.05], True),
        ("20 files beside 1", [1.2, 1.5], [1.6, 1.9], False),
        ("20 files beside 1", [1.2, 1.5], [0.5, 3.0], False),
    ],
)
def test_what_cannot_both_be_true_is_a_contradiction(
    about: str, one: Any, other: Any, expected: bool
) -> None:
    assert contradict(about, one, other) is contradict(about, other, one) is expected


@pytest.mark.parametrize(
    ("about", "claim", "expected"),
    [
        ("best", [[1, 2]], False),
        ("best", [[1, 2], [1, 3]], True),
        ("scaling on 1", scaling(0, 2), False),
        ("scaling on 1", scaling(7, None), False),
        ("scaling on 1", scaling(3, None), False),
        ("scaling on 1", scaling(0, None), True),
        ("20 files beside 1", [0.95, 1.05], False),
        ("20 files beside 1", [0.5, 1.5], True),
    ],
)
def test_a_conclusion_that_nothing_can_be_told_is_known(about: str, claim: Any, expected: bool) -> None:
    assert cannot_tell(about, claim) is expected


def test_the_conclusions_of_a_report_are_what_it_prints() -> None:
    calm = [passes(1, count, tps, 0.005) for count, tps in enumerate((500, 1000, 1000), 1)]
    many = [passes(20, count, tps, 0.005) for count, tps in enumerate((500, 1000, 2000), 1)]
    found = claims(replace(EXAMPLE, runs=(*calm, *many)))
    low, high = found.pop("20 files beside 1")
    assert 1.9 < low < 2 < high < 2.1 or low < high < 2.1
    assert found == {
        "best": [[20, 3]],
        "scaling on 1": {"gains until": 1, "enough": 2, "most": 3},
        "scaling on 20": {"gains until": 2, "enough": None, "most": 3},
    }


def test_every_two_runs_are_compared_in_every_conclusion(tmp_path: Path) -> None:
    runs = [{"best": [[1, 2]]}, {"best": [[1, 2], [1, 3]]}, {"best": [[1, 4]]}]
    assert summary(runs) == {"best": {"runs": 3, "pairs": 3, "contradictory": 2, "unclear": 1}}
    series = {
        "arguments": ["-c", "1-4"],
        "load": 0,
        "runs": [{"claims": one, "foreign": 0.02} for one in runs],
    }
    file = tmp_path / "series.json"
    file.write_text(json.dumps(series), encoding="utf-8")
    assert "| best | 3 | 3 | 2 | 1 |" in show(file)
    assert "| together | | 3 | 2 (66.7%) | |" in show(file)
