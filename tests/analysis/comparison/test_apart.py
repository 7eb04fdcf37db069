"""Reports without a case in common: which options would have to be the same."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.analysis.differences import options_apart
from sqlstress.report import Report
from tests.example_keys import keys_report
from tests.example_report import example_report

KEYS, EXAMPLE = keys_report(), example_report()


def of_users(count: int) -> Report:
    """Return a report on keys, of a load of so many users."""
    runs = [
        replace(run, case=replace(run.case, spec=replace(run.case.spec, users=count))) for run in KEYS.runs
    ]
    return replace(KEYS, runs=tuple(runs))


def test_reports_without_a_case_in_common_are_told_what_to_measure_alike() -> None:
    assert options_apart([of_users(300), of_users(1000)]) == ["--users"]
    assert options_apart([KEYS, EXAMPLE]) == ["command"]
    assert (
        options_apart([EXAMPLE, EXAMPLE])
        == options_apart([EXAMPLE, replace(EXAMPLE, runs=())])
        == ["--concurrency"]
    )
