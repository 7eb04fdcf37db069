"""Matching of tables of reports, and of their cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis import differences
from sqlstress.analysis.comparison import compare
from sqlstress.analysis.differences import DifferencesTable, differing_options, match
from sqlstress.errors import UsageError
from sqlstress.experiments.classics.spec import Cycling, Method, Picks
from sqlstress.experiments.kv.spec import Load
from sqlstress.report import Report
from sqlstress.report.case import Case, Settings
from tests.analysis.comparison.sides import report, sweep
from tests.analysis.hand_made import run, trial


def one_table(*reports: Report) -> DifferencesTable:
    (table,) = match(reports)
    return table


def totals(table: DifferencesTable) -> list[list[float | None]]:
    """Return the TPS of each row, a figure for each report."""
    return [
        [run_at.median_tps() if (run_at := part.runs[row]) else None for part in table.parts]
        for row in range(len(table.keys))
    ]


def test_cases_are_matched_by_layout_and_concurrency_in_any_order() -> None:
    first_report = report(run(20, 2, trial(4)), run(1, 1, trial(1)), run(1, 2, trial(2)))
    second_report = report(run(1, 2, trial(20)), run(20, 2, trial(40)), run(1, 1, trial(10)))
    table = one_table(first_report, second_report)
    assert table.keys == ((0, 1, 1), (0, 1, 2), (0, 20, 2))
    assert totals(table) == [[1, 10], [2, 20], [4, 40]]
    assert [table.row_name(row) for row in (0, 2)] == ["1 process on 1 bucket", "2 processes on 20 buckets"]


def test_case_needs_two_reports_to_be_shown() -> None:
    assert totals(one_table(report(*sweep(1, 2, 3)), report(run(1, 2, trial(20))))) == [[2, 20]]
    table = one_table(report(*sweep(1)), report(*sweep(10, 20)), report(*sweep(100, 200)))
    assert totals(table) == [[1, 10, 100], [None, 20, 200]]


def test_reports_of_a_single_layout_are_matched_by_concurrency() -> None:
    table = one_table(report(*sweep(1, 2, files=1)), report(*sweep(10, 20, files=20)))
    assert totals(table) == [[1, 10], [2, 20]]
    assert not table.by_layout and table.row_name(1) == "2 processes"
    both = report(*sweep(1, files=1), *sweep(2, files=20))
    assert totals(one_table(both, report(*sweep(10, files=20)))) == [[2, 10]]


def test_unknown_number_of_processes_matches_any() -> None:
    case = Case(workload="keys", spec=Picks("no-key", "ulid"))
    ours, second_report = (report(run(1, count, trial(count), case=case)) for count in (4, 1))
    unknown = report(run(1, 0, trial(9), case=case))
    assert totals(one_table(unknown, ours)) == [[9, 4]]
    assert one_table(unknown, ours).row_name(0) == "no-key, ulid"
    assert list(match([ours, second_report])) == []


def test_time_limit_of_the_work_does_not_matter_for_matching() -> None:
    cases = [Case(workload="cycles", spec=Cycling(timeout_s=limit)) for limit in (None, 60.0)]
    assert totals(one_table(*(report(*sweep(1, case=case)) for case in cases))) == [[1, 1]]
    methods = [Case(workload="methods", spec=Method("query", "1b1", True, 10, limit)) for limit in (1.0, 2.0)]
    assert totals(one_table(*(report(*sweep(1, case=case)) for case in methods))) == [[1, 1]]


def test_equal_load_is_matched_before_a_different_one() -> None:
    small, large = (Case(workload="keys", spec=Picks("no-key", "ulid", users=n)) for n in (10, 20))
    second_report = Case(workload="keys", spec=Picks("id-rowid", "int", users=20))
    first_report = report(*sweep(1, case=second_report), *sweep(2, case=large))
    assert totals(one_table(first_report, report(*sweep(10, case=small), *sweep(20, case=large)))) == [
        [2, 20]
    ]


def test_reports_with_nothing_in_common_have_no_table() -> None:
    cycles = run(1, 1, case=Case(workload="cycles", spec=Cycling()))
    assert list(match([report(run(1, 1)), report(run(1, 2))])) == []
    assert list(match([report(run(1, 1)), report(cycles)])) == []
    assert list(match([report(), report(run(1, 1))])) == []
    # A case that only later reports have in common makes no table either.
    assert list(match([report(run(1, 1)), report(run(1, 2)), report(run(1, 2))])) == []


def test_tables_with_the_fewest_differences_are_matched() -> None:
    full, normal = Case(), Case(settings=Settings(synchronous="normal"))
    batches = Case(settings=Settings(synchronous="normal"), spec=Load(batch=10))
    first_report = report(*sweep(1, case=full), *sweep(2, case=normal), *sweep(3, case=batches))
    second_report = report(*sweep(30, case=batches), *sweep(20, case=normal), *sweep(10, case=full))
    assert [totals(table) for table in match([first_report, second_report])] == [
        [[1, 10]],
        [[2, 20]],
        [[3, 30]],
    ]


@pytest.mark.parametrize(
    ("two_fields", "one_field"),
    [
        (Case(driver="apsw", seed=99), Case(driver="peewee")),
        (
            Case(settings=Settings(synchronous="normal", page_size=8192)),
            Case(settings=Settings(synchronous="off")),
        ),
    ],
    ids=["case", "settings"],
)
def test_table_with_one_difference_is_preferred_to_two(two_fields: Case, one_field: Case) -> None:
    second_report = report(*sweep(10, case=two_fields), *sweep(20, case=one_field))
    assert totals(one_table(report(*sweep(1)), second_report)) == [[1, 20]]


def test_only_table_of_a_report_matches_the_most_similar_one() -> None:
    full, normal = Case(), Case(settings=Settings(synchronous="normal"))
    several = report(*sweep(1, case=full), *sweep(2, case=normal))
    apsw = report(*sweep(20, case=replace(normal, driver="apsw")))
    assert totals(one_table(several, apsw)) == [[2, 20]]
    assert totals(one_table(apsw, several)) == [[20, 2]]


def test_repeated_case_counts_once_and_the_seed_is_ignored() -> None:
    twice = report(run(1, 1, trial(1)), run(1, 1, trial(2)))
    assert totals(one_table(twice, report(*sweep(10, case=Case(seed=99))))) == [[1, 10]]


def test_fixed_work_is_matched_by_all_its_options() -> None:
    def cycles(rows: int) -> Report:
        return report(run(1, 1, case=Case(workload="cycles", spec=Cycling(rows=rows))))

    assert len(one_table(cycles(5), cycles(5)).keys) == 1
    assert list(match([cycles(5), cycles(6)])) == []


def test_comparison_counts_the_shown_cases_of_each_report() -> None:
    comparison = compare([("a", report(*sweep(1, 2, 3))), ("b", report(*sweep(10, 20)))])
    assert comparison.case_counts() == (2, 2)
    assert comparison.names == ("a", "b")


def test_number_of_matched_tables_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(differences, "MAX_TABLE_PAIRS", 36)
    runs = [run(1, 1, trial(1), case=Case(spec=Load(key_space=keys))) for keys in range(1, 8)]
    assert len(list(match([report(*runs[:6]), report(*runs[:6])]))) == 6
    with pytest.raises(UsageError, match="have 6 and 7 tables, which is too many to match"):
        list(match([report(*runs[:6]), report(*runs)]))


def test_unmatched_reports_name_the_options_that_differ() -> None:
    few, many = (
        report(run(1, 1, case=Case("keys", spec=Picks("no-key", "ulid", users=users)))) for users in (3, 9)
    )
    other_work = report(*sweep(1))
    assert differing_options([few, many]) == ["--users"]
    assert differing_options([few, other_work]) == ["command"]
    assert (
        differing_options([other_work, other_work])
        == differing_options([other_work, report()])
        == ["--concurrency"]
    )
