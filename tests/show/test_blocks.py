"""Blocks as text and as Markdown, strings from elsewhere made safe, and the numbers in cells."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.show import blocks, markdown, text
from sqlstress.show.blocks import Bullets, Column, Lines, Paragraph, Picture, Table, brief, clean

TABLE = Table(
    (Column("name", ("", "name"), "left", leaves=1), Column("rows/s", ("rows", "per s"))),
    (("1b1", "154"), ("JSON", "289,494")),
)


def test_dropped_column_is_dropped_with_its_cells() -> None:
    narrow = TABLE.narrower()
    assert (narrow.headers, narrow.leaving) == (("rows/s",), ())
    assert narrow.rows[1] == ("289,494",)


def test_picture_keeps_its_spaces_and_line_ends() -> None:
    picture = Picture(("a  b   ", "\x1b[31mred"))
    assert text.draw(picture) == "a  b\nred"
    assert markdown.draw(picture) == "```\na  b\nred\n```"


def test_bullets_lines_and_paragraphs_have_different_forms() -> None:
    assert text.draw(Bullets(("one", "two"))) == "- one\n- two"
    assert text.draw(Lines(("one", "two"))) == "one\ntwo"
    assert markdown.draw(Lines(("one", "two"))) == "one\n\ntwo"
    assert text.draw(Paragraph("one\ntwo")) == "one two"


def test_foreign_text_in_a_cell_is_no_markup_and_moves_no_cursor() -> None:
    table = Table(TABLE.columns, (("\x1b[2J|a", "**1**"),))
    assert text.draw(table).splitlines()[-1] == "|a    **1**"
    assert markdown.draw(table).splitlines()[-1].split(" | ")[0].strip() == r"| \|a"


# Foreign strings: no part of them reaches the terminal as a command.


anything = st.text(st.characters() | st.sampled_from("\x1b[]m;0\x07\x9b\x9d\u202e\ud800 "))


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain text, with 20% more", "plain text, with 20% more"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]8;;http://example.org\x1b\\a link\x1b]8;;\x1b\\", "a link"),
        ("\x1b]0;a title that nothing ends", "0;a title that nothing ends"),
        ("\x9da\x9db\x07c", "?ac"),
        ("two\nlines\tand\u2028more  spaces ", "two lines and more spaces"),
        ("bell\x07, back\x08space", "bell?, back?space"),
        ("turned \u202eround", "turned ?round"),
        ("half \ud83d", "half ?"),
        ("größe 表 é", "größe 表 é"),
    ],
)
def test_only_visible_characters_are_left(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(anything)
def test_any_text_becomes_one_visible_line(text: str) -> None:
    cleaned = clean(text)
    assert not [character for character in cleaned if unicodedata.category(character)[0] == "C"]
    assert cleaned == " ".join(cleaned.split())
    cleaned.encode("utf-8")


@pytest.mark.parametrize("introducer", ["\x90", "\x98", "\x9b", "\x9d", "\x9e", "\x9f", "\x1b[", "\x1b]"])
def test_unterminated_sequence_is_cleaned_in_time(introducer: str) -> None:
    began = time.process_time()
    assert clean(introducer * 200_000 + "end").endswith("nd")
    assert time.process_time() - began < 2


def test_long_text_is_cut_with_a_note() -> None:
    assert brief("x" * 5000) == "x" * 794 + " [...]"
    assert brief("x" * 800) == "x" * 800


# The numbers in cells.


figures_of_reports = st.floats() | st.integers(-(2**64), 2**64) | st.none()


COUNTS = (0, 5.4321, 98.7, 1_234_567.4, 12_345_678, None)
TIMES_NS = (0, 7_100, 139_776, 4_100_000, 45_960_000, 118_000_000, 999_600_000, 60_000_000_000, None)
SECONDS = (0.65, 9.994, 9.996, 34.98, 3600.0, 1e7)


def test_figures_are_as_exact_as_their_column_allows() -> None:
    assert [*map(blocks.count_cell, COUNTS)] == ["0", "5.43", "99", "1,234,567", "1.2e+07", None]
    shown = ["0.000", "0.007", "0.140", "4.10", "46.0", "118", "1000", "60,000", None]
    assert [*map(blocks.ms_cell, TIMES_NS)] == shown
    assert [*map(blocks.seconds_cell, SECONDS)] == ["0.65", "9.99", "10.0", "35.0", "3600", "1e+07"]


@given(figures_of_reports)
def test_no_figure_is_wider_than_its_column(value: float | None) -> None:
    assert len(blocks.count_cell(value) or "") <= 10
    assert len(blocks.ms_cell(value) or "") <= 10
    assert len(blocks.seconds_cell(value) or "") <= 10
    assert len(blocks.share_cell(value) or "") <= 8


@given(st.integers())
def test_no_count_of_processes_is_wide(value: int) -> None:
    assert len(blocks.whole_cell(value)) <= 8
