"""How long one worker writes in a row before it lets others, and when it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sqlstress.targets.sqlite.busy import PAUSE_S, Turns, Waiting
from tests.targets.drivers.conftest import FakeTime

WRITE_S = 1e-4
ROW = round(FakeTime().waiting().turn_s / WRITE_S)
"""Writes of a turn."""


class Writer:
    """Writes one thing after the other, each in WRITE_S, or longer where it is refused the lock."""

    def __init__(self) -> None:
        self.time = FakeTime()
        self.waiting: Waiting = self.time.waiting()
        self.told: list[tuple[float, float]] = []
        turns = Turns(self.waiting, lambda *times: self.told.append(times), self.time.sleep, self.time.clock)
        self.refused = False
        self._write: Callable[[Any], Any] = turns.kept(self._written)

    def _written(self, params: Any) -> Any:
        if self.refused:
            assert self.waiting.busy_handler(0)
        self.time.now += WRITE_S
        return params

    def write(self, times: int = 1) -> None:
        for number in range(times):
            assert self._write(number) == number

    def writes_until_it_pauses(self) -> int:
        pauses, count = len(self.told), 0
        while len(self.told) == pauses:
            self.write()
            count += 1
            assert count < 100 * ROW
        return count - 1  # the last one came after the pause


@pytest.fixture
def writer() -> Writer:
    return Writer()


def test_who_has_written_for_a_turn_pauses_once(writer: Writer) -> None:
    assert writer.writes_until_it_pauses() == pytest.approx(ROW, abs=1)
    assert writer.time.slept == [PAUSE_S]
    writer.write(ROW // 2)
    assert writer.time.slept == [PAUSE_S]


def test_a_pause_is_told_from_its_begin_to_its_end(writer: Writer) -> None:
    writer.writes_until_it_pauses()
    ((begin, end),) = writer.told
    assert end - begin == pytest.approx(PAUSE_S)
    assert end == pytest.approx(writer.time.now - WRITE_S)


def test_each_pause_in_which_nobody_came_makes_the_next_turn_twice_as_long(writer: Writer) -> None:
    rows = [writer.writes_until_it_pauses() for _ in range(4)]
    assert rows == pytest.approx([ROW, 2 * ROW, 4 * ROW, 8 * ROW], abs=2)


def test_who_was_refused_the_lock_has_a_turn_of_the_first_length_from_then_on(writer: Writer) -> None:
    for _ in range(3):
        writer.writes_until_it_pauses()
    writer.refused = True
    writer.write()
    writer.refused = False
    assert writer.writes_until_it_pauses() == pytest.approx(ROW, abs=1)


@pytest.mark.parametrize(("gap_s", "pauses"), [(PAUSE_S * 0.9, True), (PAUSE_S * 1.1, False)])
def test_who_leaves_the_lock_alone_for_as_long_as_a_pause_needs_none(
    writer: Writer, gap_s: float, pauses: bool
) -> None:
    for _ in range(2 * ROW):
        writer.write()
        writer.time.now += gap_s
    assert bool(writer.told) is pauses


def test_what_a_write_raises_is_raised(writer: Writer) -> None:
    turns = Turns(writer.waiting, lambda *_: None, writer.time.sleep, writer.time.clock)
    with pytest.raises(ZeroDivisionError):
        turns.kept(lambda params: 1 / params)(0)
