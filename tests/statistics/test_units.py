"""Formatting and parsing of durations and counts."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.units import format_count, format_duration, format_ms, parse_duration
from tests.drawing import CHARACTERS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("2s", 2.0),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("250us", 0.00025),
        (".5", 0.5),
        (" 1.5 S ", 1.5),
    ],
)
def test_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "1e3", "1 2", "2 days", "1.s", "nan", "inf", "1,5s", "9" * 400, "9" * 308 + "h"]
)
def test_invalid_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration: write 500ms") as caught:
        parse_duration(text)
    assert len(str(caught.value)) < 140


@given(st.text(CHARACTERS, max_size=12))
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert parse_duration(text) >= 0


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.5, "500ms"), (2.0, "2s"), (604_800.0, "604800s"), (1e-6, "0.001ms")]
)
def test_duration_is_written_in_a_common_unit(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.floats(1e-9, 1e9))
def test_written_duration_is_read_back_within_six_digits(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, rel=1e-5)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999.4, "999"), (12_345.6, "12,346"), (1_000_000, "1,000,000")]
)
def test_count_has_thousands_separators(value: float, text: str) -> None:
    assert format_count(value) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.000"),
        (1_499, "0.001"),
        (999_600, "1.00"),
        (1_234_000, "1.23"),
        (9_996_000, "10.0"),
        (99_960_000, "100"),
        (1_970_000_000, "1970"),
    ],
)
def test_nanoseconds_are_written_as_milliseconds_of_three_digits(ns: int, text: str) -> None:
    assert format_ms(ns) == text


@given(st.integers(0, 999_400_000))
def test_milliseconds_under_a_second_take_at_most_five_columns(ns: int) -> None:
    assert len(format_ms(ns)) <= 5
