"""Words of a command: what stands for values is filled in, everything else stays to the letter."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiments.exec.template import Given, filled, parsed

GIVEN = Given(7, 3, "/data/kv.db", Random(1))


def words(*templates: str, values: Given = GIVEN) -> list[str]:
    return filled(parsed(templates), values)


def test_what_stands_for_values_is_filled_in() -> None:
    assert words("add", "{n}:{worker}", "--db={db}", "") == ["add", "7:3", "--db=/data/kv.db", ""]


@given(st.text())
def test_any_text_stays_as_it_is_when_its_braces_are_doubled(text: str) -> None:
    assert words(text.replace("{", "{{").replace("}", "}}")) == [text]


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**9), st.integers())
def test_a_random_number_lies_within_its_bounds_and_follows_from_the_seed(
    least: int, more: int, seed: int
) -> None:
    word = f"{{random:{least}:{least + more}}}"
    first, again = (words(word, values=GIVEN._replace(random=Random(seed))) for _ in range(2))
    assert first == again
    assert least <= int(first[0]) <= least + more


@pytest.mark.parametrize(
    "word", ["{foo}", "{}", "{", "{n", "{ n }", "{random}", "{random:1}", "{random:a:b}", '{"a"}']
)
def test_what_stands_for_nothing_is_told_with_what_there_is(word: str) -> None:
    with pytest.raises(UsageError, match=r"stands for nothing: there are \{n\}, .*; \{\{ is a brace\.$"):
        parsed([word])


def test_bounds_that_run_backwards_are_told_with_what_is_meant() -> None:
    with pytest.raises(UsageError, match=r"write \{random:1:5\}"):
        parsed(["{random:5:1}"])


@given(st.text())
def test_any_word_is_read_or_refused_in_a_line(word: str) -> None:
    try:
        words(word)
    except UsageError as error:
        assert len(str(error)) < 200
