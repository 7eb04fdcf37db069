"""What is noted of a WAL at the end of a worker's cycles."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from threading import Thread

import pytest

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.experiments.cycles.looks import Asking, lines_of, shared_words
from sqlstress.experiments.cycles.watcher import CycleWatcher, Watched
from sqlstress.report.case import Case
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS, Series
from sqlstress.targets.sqlite.place import SqlitePlace
from sqlstress.targets.sqlite.walindex import WalIndex
from tests.targets.elsewhere import Elsewhere


def noted(*looks: tuple[int, int, int]) -> dict[str, tuple[int, ...]]:
    """Return what is noted of looks at (frames, checkpointed, salt)."""
    watched = Watched(lines_of(shared_words(1))[0])
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


def test_of_a_worker_that_asked_for_nothing_there_is_no_series() -> None:
    assert Watched(lines_of(shared_words(1))[0]).series(1) == []


WINDOW = Window(0, 0, FOREVER_NS)


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_every_look_belongs_to_the_cycle_that_has_just_ended(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    words = shared_words(2)
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
