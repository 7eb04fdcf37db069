"""A worker waits for the look at the end of its cycle, but not for ever."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import pytest

from sqlstress.experiments.cycles import looks
from sqlstress.experiments.cycles.looks import Asking, Taking, is_watched, lines_of, shared_words
from sqlstress.report.case import Case, Settings
from sqlstress.targets import open_place


def test_a_worker_goes_on_when_its_look_was_taken() -> None:
    words = shared_words(2)
    asking, taking = Asking(words, 2), Taking(lines_of(words)[1])
    taken: list[float] = []

    def take() -> None:
        until = time.perf_counter() + 10
        while len(taken) < 3 and time.perf_counter() < until:
            if taking.is_requested():
                taken.append(time.perf_counter())
                taking.done()

    taker = Thread(target=take)
    taker.start()
    after = []
    for cycle in (1, 2, 3):
        asking.wait(cycle)
        after.append(time.perf_counter())
    taker.join()
    assert all(looked < went_on for looked, went_on in zip(taken, after, strict=True))
    assert not Taking(lines_of(words)[0]).is_requested()


def test_who_looks_no_more_holds_a_worker_up_once_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "PATIENCE_S", 0.05)
    words = shared_words(1)
    asking = Asking(words, 1)
    begun = time.perf_counter()
    asking.wait(1)
    once = time.perf_counter() - begun
    for cycle in range(2, 1000):
        asking.wait(cycle)
    assert once >= 0.05
    assert time.perf_counter() - begun - once < once
    # A late look is still that of the cycle for which it was asked, and nothing is asked for after it.
    taking = Taking(lines_of(words)[0])
    assert taking.is_requested()
    taking.done()
    asking.wait(1000)
    assert not taking.is_requested()


def test_the_worker_that_finishes_last_knows_it() -> None:
    words = shared_words(3)
    assert [Asking(words, worker).is_last() for worker in (2, 3, 1)] == [False, False, True]


@pytest.mark.parametrize(
    ("case", "watched"),
    [
        (Case(settings=Settings(journal_mode="wal")), True),
        (Case(settings=Settings(journal_mode="delete")), False),
        (Case(settings=Settings(journal_mode="wal"), driver="dry"), False),
    ],
)
def test_only_a_wal_that_is_there_is_watched(case: Case, watched: bool) -> None:
    assert is_watched(open_place(case, Path())) is watched
