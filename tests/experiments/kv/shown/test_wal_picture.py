"""Tests of the picture of the WALs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.kv.show_wal import WIDTH, bars, picture
from sqlstress.report import Report
from sqlstress.report.case import MAX_BUCKETS, MAX_CONCURRENCY
from sqlstress.show.text import WIDTH as TERMINAL
from sqlstress.statistics.series import WAL_SIZE, Series
from tests.render.variants import EXAMPLE, beside_report, each_trial, with_case

SECOND = 1_000_000_000


def drawn(values: list[int], times: list[int], window_ns: int = WIDTH) -> str:
    return bars(Series(WAL_SIZE, "bytes", tuple(values), tuple(times)), window_ns)


def test_the_height_goes_from_nothing_to_the_largest() -> None:
    assert drawn([0, 1, 100, 200, 400, 799, 800], [0, 1, 2, 3, 4, 5, 6])[:7] == " ▁▁▂▄██"


def test_a_part_is_as_high_as_the_largest_value_in_it() -> None:
    assert drawn([800, 1, 8], [0, 1, WIDTH], 2 * WIDTH)[:1] == "█"


def test_where_nothing_was_seen_it_stays_as_high_as_before() -> None:
    assert drawn([8, 1], [2, 4]) == f"  ██{'▁' * (WIDTH - 4)}"


def test_a_window_of_unknown_length_ends_with_the_last_value() -> None:
    assert drawn([1, 8], [0, SECOND], 0) == f"{'▁' * (WIDTH - 1)}█"


@given(
    st.lists(st.integers(0, 2**64), max_size=50),
    st.lists(st.integers(-(2**64), 2**64), max_size=50),
    st.integers(0, 2**64),
)
def test_whatever_was_seen_the_picture_is_as_wide(
    values: list[int], times: list[int], window_ns: int
) -> None:
    assert len(drawn(values, times, window_ns)) == WIDTH


def lines(report: Report) -> list[str]:
    (group,) = group_runs(report.runs)
    return list(picture(group))


def test_there_is_a_line_for_each_run_with_its_largest() -> None:
    title, *others = lines(beside_report())
    assert title == "Size of the WALs over the window, all files together, up to:"
    assert [line.partition(" |")[0].rstrip() for line in others] == [
        "1 file, 1 process",
        "1 file, 2 processes",
        "1 file, 4 processes",
        "1 file, 8 processes",
    ]
    assert [line.rpartition("| ")[2] for line in others] == ["44 MB", "88 MB", "176 MB", "352 MB"]


def test_the_widest_line_fits_a_terminal() -> None:
    report = with_case(beside_report(), buckets=MAX_BUCKETS, concurrency=MAX_CONCURRENCY)
    assert max(map(len, lines(report))) <= TERMINAL


@pytest.mark.parametrize(
    "report",
    [
        with_case(EXAMPLE, buckets=1),
        each_trial(lambda trial: replace(trial, series=()), beside_report()),
        each_trial(lambda trial: replace(trial, error="worker 1 died"), beside_report()),
    ],
    ids=["not watched", "nothing seen", "not valid"],
)
def test_without_anything_seen_there_is_no_picture(report: Report) -> None:
    assert lines(report) == []
