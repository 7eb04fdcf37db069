"""Tests of strings from elsewhere: nothing of them reaches the terminal as a command."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.show.blocks import brief, clean

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
def test_whatever_the_text_it_becomes_one_visible_line(text: str) -> None:
    cleaned = clean(text)
    assert not [character for character in cleaned if unicodedata.category(character)[0] == "C"]
    assert cleaned == " ".join(cleaned.split())
    cleaned.encode("utf-8")


@pytest.mark.parametrize("introducer", ["\x90", "\x98", "\x9b", "\x9d", "\x9e", "\x9f", "\x1b[", "\x1b]"])
def test_a_text_that_nothing_ends_is_cleaned_in_time(introducer: str) -> None:
    began = time.process_time()
    assert clean(introducer * 200_000 + "end").endswith("nd")
    assert time.process_time() - began < 2


def test_a_long_text_is_cut_and_says_so() -> None:
    assert brief("x" * 5000) == "x" * 794 + " [...]"
    assert brief("x" * 800) == "x" * 800
