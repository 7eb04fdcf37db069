"""Tests of the report as Markdown: golden files, valid tables, foreign strings without markup."""

import re
from dataclasses import replace

from sqlstress.show.blocks import Column, Picture, Table
from sqlstress.show.markdown import draw, report_markdown
from sqlstress.statistics.series import WAL_SIZE, Series
from tests.several import with_trials
from tests.show.variants import EXAMPLE, with_one

UNESCAPED_PIPE = re.compile(r"(?<!\\)(?:\\\\)*\|")
PICTURE = re.compile(r"^```\n.*?^```$", re.DOTALL | re.MULTILINE)
"""A code block: the size of WALs over the window."""


def check_markdown(text: str) -> None:
    """Check that there is no tag and no code span, and that the rows of a table have equally many cells."""
    assert all(line.isprintable() for line in text.split("\n"))
    outside = PICTURE.sub("", text)
    assert not re.search(r"[<>]|(?<!\\)(?:\\\\)*`", outside)
    for block in outside.split("\n\n"):
        if block.startswith("|"):
            lines = block.rstrip("\n").split("\n")
            assert re.fullmatch(r"\|(?::?-+:?\|)+", lines[1])
            assert {len(UNESCAPED_PIPE.findall(line)) for line in lines} == {lines[1].count("|")}
        else:
            assert not UNESCAPED_PIPE.search(block)


def test_picture_is_a_code_block() -> None:
    size = Series(WAL_SIZE, "bytes", (0, 5), (0, 1))
    report = with_one(with_trials(EXAMPLE.runs[0], series=(size,)))
    assert "|" in report_markdown(report) and "```\n" in report_markdown(report)
    check_markdown(report_markdown(report))
    assert draw(Picture(("``` |\u2588|", "b"))) == "```\n''' |\u2588|\nb\n```"


def test_foreign_strings_are_shown_verbatim() -> None:
    error = "no `such` table|view <b>kv</b> & *more* [here](x) in main_table _x_ ~~y~~ \\"
    text = report_markdown(with_one(replace(EXAMPLE.runs[0], trials=(), error=error)))
    assert r"no \`such\` table\|view &lt;b&gt;kv&lt;/b&gt; &amp; \*more\* " in text
    assert r" \[here\](x) in main_table \_x\_ \~\~y\~\~ \\" in text


def test_column_with_a_foreign_name_has_a_heading_of_one_line() -> None:
    table = draw(Table((Column("a\r|\x04b", ("", "a\r|\x04b")),), (("1.2",),)))
    assert table.splitlines()[0].split(maxsplit=1)[1] == r"a \|?b |"
    assert len(table.splitlines()) == 3
