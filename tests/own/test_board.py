"""What the checker found is told, however much it is."""

from __future__ import annotations

from sqlstress.user_work.checker import fewer
from sqlstress.user_work.checks import Board, Broken, shared_words


def test_what_is_broken_is_told_where_there_is_no_room_for_all_its_examples() -> None:
    for count, length in ((2, 10), (60, 10), (60, 3_000)):
        broken = [Broken(f"{number:{length}}", 3, ("€" * 160,) * 3) for number in range(count)]
        board = Board(shared_words())
        board.write({"broken": []})
        assert any(board.write({"broken": one}) for one in fewer(broken))
        told = board.read()["broken"]
        assert told and told[0].rows == 3
        assert len(told) == (count if length == 10 else 1)


def test_there_is_room_for_one_whatever_it_is() -> None:
    *_, least = fewer([Broken("€" * 100_000, 3, ("€" * 100_000,))])
    assert Board(shared_words()).write({"broken": least})
