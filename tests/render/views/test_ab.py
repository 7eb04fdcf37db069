"""Tests of how an A/B test is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.report import Arm, Report, SqliteBuild
from sqlstress.show.text import WIDTH, report_text
from tests.ab_report import TEST, ab_report, around

TWO_CELLS = ab_report([around(0.8, 20), around(1.02, 20)])


BUILD = SqliteBuild("sqlite3", "3.14.0", "3.51.3", "", ())
OLD, NEW = (Arm(name, (), f"{name}/bin/python", "CPython 3.14.0", "0.2.0", (BUILD,)) for name in ("A", "B"))


@pytest.mark.parametrize(
    "report",
    [
        ab_report([around(0.9, 30)]),
        ab_report([around(9.0, 10)], replace(TEST, metric="p99", arms=(OLD, NEW))),
        ab_report([[1.0, 1.1]], decided=False),
        ab_report([[]], decided=False),
        replace(TWO_CELLS, interrupted=True, runs=TWO_CELLS.runs[:1]),
        replace(TWO_CELLS, runs=()),
        replace(TWO_CELLS, runs=tuple(replace(run, trials=(), error="no space") for run in TWO_CELLS.runs)),
    ],
    ids=["one cell", "p99", "early", "no pair", "one arm", "nothing", "failed"],
)
def test_any_a_b_test_is_shown_within_80_columns_and_with_its_verdict(report: Report) -> None:
    text = report_text(report)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert any(word in text for word in ("PASS", "FAIL", "INCONCLUSIVE", "Undecided"))


def test_arms_that_are_the_same_are_said_to_be() -> None:
    same = tuple(replace(run, case=TWO_CELLS.runs[0].case) for run in TWO_CELLS.runs)
    assert "A and B are the same: any difference is chance." in report_text(replace(TWO_CELLS, runs=same))


def test_each_python_is_named_with_its_version() -> None:
    report = ab_report([around(1.0, 10)], replace(TEST, arms=(OLD, NEW)))
    assert "B: B/bin/python (CPython 3.14.0, sqlstress 0.2.0)." in report_text(report)
