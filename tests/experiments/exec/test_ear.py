"""What commands write is heard command by command, whole or in pieces, and floods take no memory."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.exec.worker import KEPT, Ear


def heard(commands: Sequence[Sequence[bytes]]) -> list[str]:
    """Let commands write pieces; return what was heard of each."""
    texts: list[str] = []
    ear = Ear(texts.append)
    for pieces in commands:
        for piece in pieces:
            os.write(ear.theirs, piece)
        ear.ended()
    ear.close()
    return texts


@given(st.lists(st.lists(st.binary(max_size=300), max_size=4), max_size=8))
def test_each_command_is_heard_with_its_own_words(commands: list[list[bytes]]) -> None:
    assert heard(commands) == [b"".join(pieces).decode(errors="replace") for pieces in commands]


def test_of_a_flood_the_beginning_and_the_end_are_kept() -> None:
    flood = [b"begin"] + [b"x" * 60_000] * 50 + [b"end"]
    first, second = heard([flood, [b"after"]])
    assert len(first) == 2 * KEPT
    assert (first[:5], first[-3:], second) == ("begin", "end", "after")


def test_a_mark_that_comes_in_pieces_is_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlstress.experiments.exec.worker._PIECE", 1)
    assert heard([[b"ab"], [], [b"c"]]) == ["ab", "", "c"]
