"""The figures of a comparison that may be shown, and the sentences on their meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqlstress.analysis.comparison import ComparedTable, comparison_findings
from sqlstress.experiments.classics import STATEMENTS
from sqlstress.experiments.classics.spec import Cycling, Method
from sqlstress.report import Check, Report, Run, Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_MS
from tests.ab_report import around
from tests.analysis.comparison.sides import report, settings_read_back, several, side_by_side, sweep
from tests.analysis.hand_made import run, trial
from tests.example_report import assert_golden_texts
from tests.several import with_trials

EFFECTIVE = settings_read_back()
NORMAL = settings_read_back(synchronous="normal")


def measured(*totals: float, files: int = 1, effective: dict[str, str] = EFFECTIVE) -> list[Run]:
    return sweep(*totals, files=files, effective=effective)


def ratios(compared: ComparedTable, place: int = 1) -> list[float | None]:
    values = [compared.ratio(row, place) for row in range(len(compared.table.keys))]
    return [None if ratio is None else round(ratio, 9) for ratio in values]


def shapes(compared: ComparedTable, place: int) -> list[float | None]:
    return [compared.shape(row, place) for row in range(len(compared.table.keys))]


def conclusion_texts(*reports: Report, anyway: bool = False) -> list[str]:
    return [finding.text for finding in comparison_findings(side_by_side(*reports, anyway=anyway))]


def test_ratio_is_relative_to_the_first_report() -> None:
    first, second, third = (report(*measured(*totals)) for totals in ((100, 200), (50, 400), (25, 800)))
    assert ratios(side_by_side(first, second, third)) == [0.5, 2.0]
    assert ratios(side_by_side(first, second, third), 2) == [0.25, 4.0]
    assert ratios(side_by_side(first, second), 0) == [None, None]


def test_meaningless_ratio_needs_anyway_but_the_shape_does_not() -> None:
    full, normal = report(*measured(100, 150)), report(*measured(500, 250, effective=NORMAL))
    compared = side_by_side(full, normal)
    assert ratios(compared) == [None, None]
    assert ratios(side_by_side(full, normal, anyway=True)) == [5.0, round(250 / 150, 9)]
    assert shapes(compared, 0) == [1.0, 1.5]
    assert shapes(compared, 1) == [1.0, 0.5]


def test_shape_is_relative_to_one_process_on_the_same_layout() -> None:
    both = report(*measured(100, 150), *measured(50, 200, files=20))
    assert shapes(side_by_side(both, both), 0) == [1.0, 1.5, 1.0, 4.0]
    without = report(*measured(100, 150)[1:])
    assert shapes(side_by_side(without, without), 0) == [None]


def test_wrong_or_unmeasured_run_has_no_rate() -> None:
    wrong = with_trials(measured(900)[0], verdict=Verdict((Check("last write", "failed"),)))
    died = with_trials(wrong, error="worker 2 was killed")
    empty = replace(wrong, trials=())
    for run_of_two in (wrong, died, empty):
        compared = side_by_side(report(*measured(100)), report(run_of_two), anyway=True)
        assert compared.rate(0, 0) == 100
        assert (compared.rate(0, 1), compared.ratio(0, 1), compared.trial(0, 1)) == (None, None, None)
        assert list(comparison_findings(compared)) == []


FULL, FASTER = report(*measured(100, 200)), report(*measured(500, 800, effective=NORMAL))
FLAT, STEEP, NOISY = (
    report(*several([around(low, 8, 0.02), around(high, 8, spread)], effective=EFFECTIVE))
    for low, high, spread in ((100, 110, 0.02), (10, 30, 0.02), (10, 30, 2.0))
)
WITHOUT_ONE = report(*measured(100, 150)[1:])
ONE = report(*measured(100))
PAIRS = report(*sweep(50, case=Case(workload="classic"), effective=EFFECTIVE))
CONCLUDED: dict[str, list[str]] = {
    "two layouts": conclusion_texts(
        report(*measured(100, 200), *measured(100, 400, files=20)),
        report(*measured(80, 100), *measured(100, 600, files=20)),
    ),
    "another durability": conclusion_texts(FULL, FASTER),
    "another durability, anyway": conclusion_texts(FULL, FASTER, anyway=True),
    "other units": conclusion_texts(ONE, PAIRS),
    "one trial each": conclusion_texts(report(*measured(100, 95, 110)), report(*measured(10, 20, 30))),
    "slower": conclusion_texts(FLAT, STEEP),
    "equal": conclusion_texts(STEEP, STEEP),
    "one of two others is slower": conclusion_texts(FLAT, STEEP, FLAT),
    "noisy": conclusion_texts(STEEP, NOISY),
    "no case of one process": conclusion_texts(WITHOUT_ONE, WITHOUT_ONE),
    "one case": conclusion_texts(ONE, ONE),
}


def test_conclusions_have_their_reasons() -> None:
    assert_golden_texts("comparison-conclusions.txt", CONCLUDED)


def fixed(case: Case, **fields: Any) -> Run:
    """Return a run of an experiment with a fixed amount of work."""
    return run(1, 1, trial(1.0, **{"effective": EFFECTIVE, **fields}), case=case)


def test_methods_are_compared_by_rows_per_second() -> None:
    def methods(*rates: float) -> Report:
        cases = [
            Case(workload="methods", spec=Method("insert", name, True, 10, 1.0)) for name in ("BLK", "JSON")
        ]
        return report(*(fixed(case, rows_per_s=rate) for rate, case in zip(rates, cases, strict=False)))

    compared = side_by_side(methods(100, 200), methods(50, 400))
    assert ratios(compared) == [0.5, 2.0] and shapes(compared, 0) == [None, None]
    assert conclusion_texts(methods(100, 200), methods(50, 400)) == [
        "B showed 0.50 to 2.0 times A's rows per second, over 2 cases. That may be chance: use "
        "--repeat 5 for both."
    ]
    assert conclusion_texts(methods(100), methods(50)) == [
        "B showed 0.50 times A's rows per second at insert 10 by BLK + WAL + TSC, sqlite3, 1 process. "
        "That may be chance: use --repeat 4 for both."
    ]


def test_cycles_are_compared_by_the_time_of_their_statements() -> None:
    def cycles(ms: int, seconds: float) -> Report:
        series = Series(STATEMENTS, "ns", (ms * NS_PER_MS,) * 100, worker=1)
        return report(fixed(Case(workload="cycles", spec=Cycling()), series=(series,), seconds=seconds))

    compared = side_by_side(cycles(1, 3.0), cycles(2, 0.3))
    assert compared.rate(0, 0) == pytest.approx(1000) and ratios(compared) == [0.5]
    assert conclusion_texts(cycles(1, 3.0), cycles(2, 0.3)) == [
        "B showed 0.50 times A's cycles per second at wal, 1 process. That may be chance: use "
        "--repeat 4 for both."
    ]
    unknown = report(fixed(Case(workload="cycles", spec=Cycling()), seconds=2.0))
    assert side_by_side(unknown, unknown).rate(0, 0) == 50
