"""How blocks are drawn: as text, and as Markdown."""

from __future__ import annotations

from sqlstress.show import markdown, text
from sqlstress.show.blocks import Bullets, Column, Lines, Paragraph, Picture, Table

TABLE = Table(
    (Column("name", ("", "name"), "left"), Column("rows/s", ("rows", "per s"))),
    (("1b1", "154"), ("JSON", "289,494")),
    leaving=("name",),
    marked=frozenset({(1, 1)}),
)


def test_what_stands_out_has_a_star_in_text_and_is_bold_in_markdown() -> None:
    assert text.drawn(TABLE).splitlines() == [
        "          rows",
        "name     per s",
        "----  --------",
        "1b1        154",
        "JSON  289,494*",
    ]
    assert "| **289,494** |" in markdown.drawn(TABLE)


def test_a_mark_stays_with_its_cell_when_a_column_leaves() -> None:
    narrow = TABLE.narrower()
    assert (narrow.headers, narrow.leaving) == (("rows/s",), ())
    assert narrow.rows[1] == ("289,494",)
    assert narrow.marked == {(1, 0)}


def test_a_picture_keeps_its_spaces_and_ends_its_lines_where_they_end() -> None:
    picture = Picture(("a  b   ", "\x1b[31mred"))
    assert text.drawn(picture) == "a  b\nred"
    assert markdown.drawn(picture) == "```\na  b\nred\n```"


def test_bullets_lines_and_paragraphs_are_told_apart() -> None:
    assert text.drawn(Bullets(("one", "two"))) == "- one\n- two"
    assert text.drawn(Lines(("one", "two"))) == "one\ntwo"
    assert markdown.drawn(Lines(("one", "two"))) == "one\n\ntwo"
    assert text.drawn(Paragraph("one\ntwo")) == "one two"


def test_a_cell_from_elsewhere_can_mark_nothing_up_and_move_no_cursor() -> None:
    table = Table(TABLE.columns, (("\x1b[2J|a", "**1**"),))
    assert text.drawn(table).splitlines()[-1] == "|a    **1**"
    assert markdown.drawn(table).splitlines()[-1].split(" | ")[0].strip() == r"| \|a"
