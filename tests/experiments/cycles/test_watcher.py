"""What is noted of a WAL at the end of a worker's cycles: the worker waits for it, but not for ever."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pytest

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.experiments.classics import cycles_worker as worker
from sqlstress.experiments.classics.cycles_watcher import CycleWatcher, Watched
from sqlstress.experiments.classics.cycles_worker import Asking, is_watched, lines_of, words_of_looks
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS, Series
from sqlstress.targets import open_place
from sqlstress.targets.sqlite.place import SqlitePlace
from sqlstress.targets.sqlite.walindex import WalIndex
from tests.targets.elsewhere import Elsewhere


def noted(*looks: tuple[int, int, int]) -> dict[str, tuple[int, ...]]:
    """Return what is noted of looks at (frames, checkpointed, salt)."""
    watched = Watched(lines_of(words_of_looks(1))[0])
    for frames, checkpointed, salt in looks:
        watched.note(WalIndex(frames, checkpointed, salt, 4096))
    return {series.name: series.values for series in watched.series(1)}


def test_a_wal_with_another_salt_has_begun_anew() -> None:
    found = noted((11, 0, 5), (22, 22, 5), (3, 0, 6), (14, 0, 6), (2, 1, 9))
    assert found == {
        WAL_FRAMES: (11, 22, 3, 14, 2),
        CHECKPOINTED_FRAMES: (0, 22, 0, 0, 1),
        WAL_RESTARTS: (0, 0, 1, 1, 2),
    }


def test_a_wal_that_gets_its_first_frames_has_not_begun_anew() -> None:
    assert noted((0, 0, 0), (0, 0, 0), (1, 0, 77))[WAL_RESTARTS] == (0, 0, 0)
    assert noted() == {}


WINDOW = Window(0, 0, FOREVER_NS)


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_every_look_belongs_to_the_cycle_that_has_just_ended(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    words = words_of_looks(2)
    over: list[bool] = []
    watcher = CycleWatcher(Case(), SqlitePlace(Case(), tmp_path), ((), words))
    seen: list[Series] = []
    thread = Thread(target=lambda: seen.extend(watcher.run(WINDOW, lambda: bool(over))))
    with Elsewhere(driver, tmp_path / "kv.db") as elsewhere:
        elsewhere.rows("it", "PRAGMA journal_mode=wal")
        elsewhere.rows("it", "PRAGMA wal_autocheckpoint=0")
        elsewhere.rows("it", "CREATE TABLE t (id INTEGER)")
        thread.start()
        asking = Asking(words, 2)
        for cycle in (1, 2, 3):
            elsewhere.rows("it", "INSERT INTO t VALUES (1)")
            asking.wait(cycle)
        elsewhere.rows("it", "PRAGMA wal_checkpoint(PASSIVE)")
        asking.wait(4)
        over.append(True)
        thread.join()
    assert {series.worker for series in seen} == {2}
    found = {series.name: series.values for series in seen}
    frames = found[WAL_FRAMES]
    assert [after - before for before, after in pairwise(frames)] == [1, 1, 0]
    assert found[CHECKPOINTED_FRAMES] == (0, 0, 0, frames[-1])
    assert found[WAL_RESTARTS] == (0, 0, 0, 0)


LOOK = WalIndex(1, 0, 5, 4096)


def test_a_worker_goes_on_when_its_look_was_taken() -> None:
    words = words_of_looks(2)
    asking, taking = Asking(words, 2), Watched(lines_of(words)[1])
    taken: list[float] = []

    def take() -> None:
        until = time.perf_counter() + 10
        while len(taken) < 3 and time.perf_counter() < until:
            if taking.is_waiting():
                taken.append(time.perf_counter())
                taking.note(LOOK)

    taker = Thread(target=take)
    taker.start()
    after = []
    for cycle in (1, 2, 3):
        asking.wait(cycle)
        after.append(time.perf_counter())
    taker.join()
    assert all(looked < went_on for looked, went_on in zip(taken, after, strict=True))
    assert not Watched(lines_of(words)[0]).is_waiting()


def test_who_looks_no_more_holds_a_worker_up_once_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PATIENCE_S", 0.05)
    words = words_of_looks(1)
    asking = Asking(words, 1)
    begun = time.perf_counter()
    asking.wait(1)
    once = time.perf_counter() - begun
    for cycle in range(2, 1000):
        asking.wait(cycle)
    assert once >= 0.05
    # Held up each time it would take 50 s.
    assert time.perf_counter() - begun - once < 25
    # A late look is still that of the cycle for which it was asked, and nothing is asked for after it.
    taking = Watched(lines_of(words)[0])
    assert taking.is_waiting()
    taking.note(LOOK)
    asking.wait(1000)
    assert not taking.is_waiting()


def test_the_worker_that_finishes_last_knows_it() -> None:
    words = words_of_looks(3)
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
