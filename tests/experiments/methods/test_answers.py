"""An answer to a query must have every pair that was asked for, once, with the value that was stored."""

from __future__ import annotations

import pytest

from sqlstress.engine.protocols import Findings
from sqlstress.experiments.methods.tables import value
from sqlstress.experiments.methods.worker import check_answer, objections
from sqlstress.targets.sqlite.drivers import Row

SEED = 3
WANTED = [(1, 2), (4, 9), (2, 3)]
RIGHT: list[Row] = [(a, b, value(a, b, SEED)) for a, b in WANTED]


@pytest.mark.parametrize("answer", [RIGHT, RIGHT[::-1]])
def test_the_right_rows_are_accepted_in_any_order(answer: list[Row]) -> None:
    assert list(objections(answer, WANTED, SEED)) == []


@pytest.mark.parametrize(
    ("answer", "because"),
    [
        (RIGHT[1:], ["lacks the result (1, 2, "]),
        ([*RIGHT, RIGHT[0]], ["has the result (1, 2, "]),
        ([*RIGHT, (5, 6, 1.0)], ["has the result (5, 6, 1.0)"]),
        ([*RIGHT[:2], (2, 3, -1.0)], ["lacks the result (2, 3, ", "has the result (2, 3, -1.0)"]),
        ([], ["lacks"] * 3),
    ],
)
def test_every_wrong_row_is_named(answer: list[Row], because: list[str]) -> None:
    found = list(objections(answer, WANTED, SEED))
    assert len(found) == len(because)
    for text, part in zip(found, because, strict=True):
        assert part in text


def test_what_is_wrong_is_counted_beside_what_was_looked_at() -> None:
    findings = Findings()
    check_answer(RIGHT, WANTED, SEED, findings)
    check_answer([], WANTED * 2, SEED, findings)
    assert (findings.reads_checked, findings.bad_reads, len(findings.bad_read_examples)) == (9, 3, 3)
