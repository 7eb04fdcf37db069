"""A method that has failed at a smaller scale is not tried at a larger one, and no other is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sqlstress.experiment import face_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from tests.experiments.methods.cells import cell

CASE = cell("insert", "1b1", 1000)


def ran(case: Case, outcome: str = "timeout") -> Run:
    trial = Trial(0, 1.0, 0, 0, 0.0, 0.0, None, None, 0, 0, 0, 0, outcome=outcome)
    return Run(case, (trial,))


def at(scale: int, **fields: Any) -> Case:
    return replace(CASE, spec=replace(CASE.spec, scale=scale, **fields))


def needless(case: Case, runs: Sequence[Run]) -> str | None:
    return face_of(case).is_needless(case, runs)


@pytest.mark.parametrize(("outcome", "reason"), [("timeout", "timed out"), ("limit", "met a limit")])
def test_after_a_failure_at_a_smaller_scale_a_cell_is_needless(outcome: str, reason: str) -> None:
    runs = [ran(at(10), "done"), ran(at(100), outcome)]
    assert needless(CASE, runs) == f"1b1 {reason} at 100 already"
    assert needless(at(100), runs) is None


@pytest.mark.parametrize(
    "other",
    [
        at(2000),
        at(100, name="JSON"),
        at(100, transaction=True),
        at(100, phase="query"),
        replace(at(100), driver="apsw"),
        replace(at(100), concurrency=2),
        replace(at(100), settings=replace(CASE.settings, journal_mode="wal")),
        Case(),
    ],
    ids=lambda case: case.label,
)
def test_the_failure_of_another_method_says_nothing(other: Case) -> None:
    assert needless(CASE, [ran(other)]) is None


def test_what_was_done_or_could_not_be_measured_says_nothing() -> None:
    assert needless(CASE, [ran(at(100), "done"), Run(at(10), error="worker 1 was killed")]) is None
    assert needless(CASE, []) is None
