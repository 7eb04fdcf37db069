"""A worker notes the state of the WAL at the end of each cycle, on a file that stays open."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from sqlstress.experiments.classics.cycles_worker import Looks, is_last, words_of_finished
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.targets.sqlite.drivers import load_driver
from sqlstress.targets.sqlite.walindex import WalIndex


def noted(*states: tuple[int, int, int]) -> dict[str, tuple[int, ...]]:
    """Return the series of these states: frames, checkpointed frames, salt."""
    looks = Looks(Path())
    for frames, checkpointed, salt in states:
        looks.note(WalIndex(frames, checkpointed, salt, 4096))
    return {name: tuple(values) for name, _, values in looks.series()}


def test_wal_with_another_salt_was_restarted() -> None:
    found = noted((11, 0, 5), (22, 22, 5), (3, 0, 6), (14, 0, 6), (2, 1, 9))
    assert found == {
        WAL_FRAMES: (11, 22, 3, 14, 2),
        CHECKPOINTED_FRAMES: (0, 22, 0, 0, 1),
        WAL_RESTARTS: (0, 0, 1, 1, 2),
    }


def test_wal_with_its_first_frames_was_not_restarted() -> None:
    assert noted((0, 0, 0), (0, 0, 0), (1, 0, 77))[WAL_RESTARTS] == (0, 0, 0)
    assert noted() == {}


IS_LOCKED = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
"""


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_looks_belong_to_their_cycles_and_keep_the_locks(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    database = tmp_path / "kv.db"
    connection = load_driver(driver).connect(database, 0)
    for sql in ("PRAGMA journal_mode=wal", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t (id INTEGER)"):
        connection.rows(sql)
    looks = Looks(database)
    for _ in range(3):
        connection.rows("INSERT INTO t VALUES (1)")
        looks.take()
    connection.rows("PRAGMA wal_checkpoint(PASSIVE)")
    looks.take()
    connection.rows("BEGIN IMMEDIATE")
    looks.take()
    answer = subprocess.run(
        [sys.executable, "-c", IS_LOCKED, database], capture_output=True, text=True, check=True
    ).stdout
    assert answer == "database is locked\n"
    connection.close()
    looks.close()
    found = {name: values for name, _, values in looks.series()}
    frames = found[WAL_FRAMES]
    assert [after - before for before, after in pairwise(frames)] == [1, 1, 0, 0]
    assert found[CHECKPOINTED_FRAMES] == [0, 0, 0, frames[-1], frames[-1]]
    assert found[WAL_RESTARTS] == [0] * 5


def test_missing_index_gives_no_looks(tmp_path: Path) -> None:
    looks = Looks(tmp_path / "kv.db")
    looks.take()
    assert looks.series() == []
    looks.close()


def test_last_worker_knows_that_it_is_the_last() -> None:
    words = words_of_finished(3)
    assert [is_last(words, worker) for worker in (2, 3, 1)] == [False, False, True]
