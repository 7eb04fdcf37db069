"""The tokens of SQL, as a target reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.options.sql_text import POSTGRES, SQLITE, Dialect

TEXTS = st.text("'\"$;:-/*\\\n eEab[]`1", max_size=80)


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])
@given(text=TEXTS)
def test_tokens_are_all_of_a_text_in_its_order(dialect: Dialect, text: str) -> None:
    found = list(dialect.tokens(text))
    assert "".join(token.text for token in found) == text
    assert all(text[token.start :].startswith(token.text) for token in found)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("SELECT ';''' || \":a\"", ["';'''", '":a"']),
        (r"SELECT E'it\'s :a', e'\\'", [r"E'it\'s :a'", r"e'\\'"]),
        (r"SELECT 'a\', :b", ["'a\\'"]),
        ("SELECT $$ :a; ' $$, $x$ $$ :b $x$", ["$$ :a; ' $$", "$x$ $$ :b $x$"]),
        ("SELECT name'x'", ["'x'"]),
    ],
)
def test_what_a_server_takes_for_quoted_is_quoted(text: str, quoted: list[str]) -> None:
    assert [token.text for token in POSTGRES.tokens(text) if token.kind == "quoted"] == quoted


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT :a::int, x[1:2], y[:b], 'x' :: text", [":a", ":b"]),
        ("SELECT /* :a /* :b */ :c */ :d -- :e", [":d"]),
        ("SELECT $1, a$1, x ? 'b', @ -5, `c`", ["$1"]),
    ],
)
def test_variables_stand_outside_of_casts_comments_and_operators(text: str, parameters: list[str]) -> None:
    assert [token.text for token in POSTGRES.tokens(text) if token.kind == "parameter"] == parameters
