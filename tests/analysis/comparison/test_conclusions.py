"""Tests of the figures that may be shown, and of the sentences that say what they mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqlstress.analysis.comparison import Compared, conclude
from sqlstress.experiments.classics import STATEMENTS
from sqlstress.experiments.classics.cycles import Cycling
from sqlstress.experiments.classics.methods import Method
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


def ratios(compared: Compared, place: int = 1) -> list[float | None]:
    found = [compared.ratio(row, place) for row in range(len(compared.table.keys))]
    return [None if ratio is None else round(ratio, 9) for ratio in found]


def shapes(compared: Compared, place: int) -> list[float | None]:
    return [compared.shape(row, place) for row in range(len(compared.table.keys))]


def told(*reports: Report, anyway: bool = False) -> list[str]:
    return [finding.text for finding in conclude(side_by_side(*reports, anyway=anyway))]


def test_a_ratio_is_that_to_the_first_report() -> None:
    one, two, three = (report(*measured(*totals)) for totals in ((100, 200), (50, 400), (25, 800)))
    assert ratios(side_by_side(one, two, three)) == [0.5, 2.0]
    assert ratios(side_by_side(one, two, three), 2) == [0.25, 4.0]
    assert ratios(side_by_side(one, two), 0) == [None, None]


def test_a_ratio_that_means_nothing_is_shown_only_when_it_is_asked_for_and_the_shape_is_always() -> None:
    full, normal = report(*measured(100, 150)), report(*measured(500, 250, effective=NORMAL))
    compared = side_by_side(full, normal)
    assert ratios(compared) == [None, None]
    assert ratios(side_by_side(full, normal, anyway=True)) == [5.0, round(250 / 150, 9)]
    assert shapes(compared, 0) == [1.0, 1.5]
    assert shapes(compared, 1) == [1.0, 0.5]


def test_the_shape_of_a_layout_starts_from_one_process_on_the_same_layout() -> None:
    both = report(*measured(100, 150), *measured(50, 200, files=20))
    assert shapes(side_by_side(both, both), 0) == [1.0, 1.5, 1.0, 4.0]
    without = report(*measured(100, 150)[1:])
    assert shapes(side_by_side(without, without), 0) == [None]


def test_wrong_data_has_no_rate_and_neither_has_what_was_not_measured() -> None:
    wrong = with_trials(measured(900)[0], verdict=Verdict((Check("last write", "failed"),)))
    died = with_trials(wrong, error="worker 2 was killed")
    none = replace(wrong, trials=())
    for run_of_two in (wrong, died, none):
        compared = side_by_side(report(*measured(100)), report(run_of_two), anyway=True)
        assert compared.rate(0, 0) == 100
        assert (compared.rate(0, 1), compared.ratio(0, 1), compared.trial(0, 1)) == (None, None, None)
        assert list(conclude(compared)) == []


FULL, FASTER = report(*measured(100, 200)), report(*measured(500, 800, effective=NORMAL))
FLAT, STEEP, NOISY = (
    report(*several([around(low, 8, 0.02), around(high, 8, spread)], effective=EFFECTIVE))
    for low, high, spread in ((100, 110, 0.02), (10, 30, 0.02), (10, 30, 2.0))
)
WITHOUT_ONE = report(*measured(100, 150)[1:])
ONE = report(*measured(100))
PAIRS = report(*sweep(50, case=Case(workload="classic"), effective=EFFECTIVE))
CONCLUDED: dict[str, list[str]] = {
    "two layouts": told(
        report(*measured(100, 200), *measured(100, 400, files=20)),
        report(*measured(80, 100), *measured(100, 600, files=20)),
    ),
    "another durability": told(FULL, FASTER),
    "another durability, anyway": told(FULL, FASTER, anyway=True),
    "other units": told(ONE, PAIRS),
    "one trial each": told(report(*measured(100, 95, 110)), report(*measured(10, 20, 30))),
    "another shape": told(FLAT, STEEP),
    "the same shape": told(STEEP, STEEP),
    "one shape of three is another": told(FLAT, STEEP, FLAT),
    "a noisy shape": told(STEEP, NOISY),
    "no case of one process": told(WITHOUT_ONE, WITHOUT_ONE),
    "one case": told(ONE, ONE),
}


def test_what_is_concluded_is_said_with_its_reason() -> None:
    assert_golden_texts("comparison-conclusions.txt", CONCLUDED)


def fixed(case: Case, **fields: Any) -> Run:
    """Return a run of an experiment with a fixed amount of work."""
    return run(1, 1, trial(1.0, **{"effective": EFFECTIVE, **fields}), case=case)


def test_methods_are_compared_by_their_rows_a_second() -> None:
    def methods(*rates: float) -> Report:
        cases = [
            Case(workload="methods", spec=Method("insert", name, True, 10, 1.0)) for name in ("BLK", "JSON")
        ]
        return report(*(fixed(case, rows_per_s=rate) for rate, case in zip(rates, cases, strict=False)))

    compared = side_by_side(methods(100, 200), methods(50, 400))
    assert ratios(compared) == [0.5, 2.0] and shapes(compared, 0) == [None, None]
    assert told(methods(100, 200), methods(50, 400)) == [
        "B showed 0.50 to 2.0 times A's rows per second, over 2 cases. That may be chance: use "
        "--repeat 5 for both."
    ]
    assert told(methods(100), methods(50)) == [
        "B showed 0.50 times A's rows per second at insert 10 by BLK + WAL + TSC, sqlite3, 1 process. "
        "That may be chance: use --repeat 4 for both."
    ]


def test_cycles_are_compared_by_their_sum_and_not_by_the_time_in_which_the_wal_was_looked_at() -> None:
    def cycles(ms: int, seconds: float) -> Report:
        series = Series(STATEMENTS, "ns", (ms * NS_PER_MS,) * 100, worker=1)
        return report(fixed(Case(workload="cycles", spec=Cycling()), series=(series,), seconds=seconds))

    compared = side_by_side(cycles(1, 3.0), cycles(2, 0.3))
    assert compared.rate(0, 0) == pytest.approx(1000) and ratios(compared) == [0.5]
    assert told(cycles(1, 3.0), cycles(2, 0.3)) == [
        "B showed 0.50 times A's cycles per second at wal, 1 process. That may be chance: use "
        "--repeat 4 for both."
    ]
    unknown = report(fixed(Case(workload="cycles", spec=Cycling()), seconds=2.0))
    assert side_by_side(unknown, unknown).rate(0, 0) == 50
