"""Tests of the numbers in cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.show import blocks

figures_of_reports = st.floats() | st.integers(-(2**64), 2**64) | st.none()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (5.4321, "5.43"),
        (98.7, "99"),
        (1_234_567.4, "1,234,567"),
        (12_345_678, "1.2e+07"),
        (None, None),
    ],
)
def test_counts(value: float | None, text: str | None) -> None:
    assert blocks.count_cell(value) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.000"),
        (7_100, "0.007"),
        (139_776, "0.140"),
        (4_100_000, "4.10"),
        (45_960_000, "46.0"),
        (118_000_000, "118"),
        (999_600_000, "1000"),
        (1_970_000_000, "1,970"),
        (60_000_000_000, "60,000"),
        (None, None),
    ],
)
def test_milliseconds(ns: float | None, text: str | None) -> None:
    assert blocks.ms_cell(ns) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.65, "0.65"), (9.994, "9.99"), (9.996, "10.0"), (34.98, "35.0"), (3600.0, "3600"), (1e7, "1e+07")],
)
def test_seconds(seconds: float, text: str) -> None:
    assert blocks.seconds_cell(seconds) == text


@given(figures_of_reports)
def test_no_figure_is_wider_than_its_column_bears(value: float | None) -> None:
    assert len(blocks.count_cell(value) or "") <= 10
    assert len(blocks.ms_cell(value) or "") <= 10
    assert len(blocks.seconds_cell(value) or "") <= 10
    assert len(blocks.share_cell(value) or "") <= 8


@given(st.integers())
def test_no_count_of_processes_is_wide(value: int) -> None:
    assert len(blocks.whole_cell(value)) <= 8
