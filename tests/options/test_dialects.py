"""Tokens of SQL in the dialect of each target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.options.sql_text import POSTGRES, SQLITE, Dialect

TEXTS = st.text("'\"$;:-/*\\\n eEab[]`1", max_size=80)


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])
@given(text=TEXTS)
def test_tokens_cover_the_whole_text_in_order(dialect: Dialect, text: str) -> None:
    tokens = list(dialect.tokens(text))
    assert "".join(token.text for token in tokens) == text
    assert all(text[token.start :].startswith(token.text) for token in tokens)


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
def test_quoted_tokens_are_those_of_the_server(text: str, quoted: list[str]) -> None:
    assert [token.text for token in POSTGRES.tokens(text) if token.kind == "quoted"] == quoted


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT :a::int, x[1:2], y[:b], 'x' :: text", [":a", ":b"]),
        ("SELECT /* :a /* :b */ :c */ :d -- :e", [":d"]),
        ("SELECT $1, a$1, x ? 'b', @ -5, `c`", ["$1"]),
    ],
)
def test_parameters_are_not_found_in_casts_comments_and_operators(text: str, parameters: list[str]) -> None:
    assert [token.text for token in POSTGRES.tokens(text) if token.kind == "parameter"] == parameters
