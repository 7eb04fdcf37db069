"""Kinds of growth of a WAL, on real WALs that an observer samples, and with made-up figures."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from sqlstress.analysis.wal_growth import (
    LARGE_FRAMES,
    OVERLAP,
    REUSED,
    SNAPSHOT,
    UNCOPIED,
    growth_in_trial,
    wal_growth_kind,
)
from sqlstress.report.results import WalUse
from sqlstress.targets.sqlite.wal_observer import WalObserver

AUTOCHECKPOINT = 20
ROWS = 400
"""Number of commits: each writes at least a frame, so they are 20 automatic checkpoints."""


class Load:
    """A database with a writer, two readers and an observer."""

    def __init__(self, database: Path, autocheckpoint: int) -> None:
        self.stack = ExitStack()
        self.observer = WalObserver(database)
        self.stack.callback(self.observer.close)  # after the connections
        self.writer, *self.readers = [
            self.stack.enter_context(closing(sqlite3.connect(database, isolation_level=None)))
            for _ in range(3)
        ]
        self.writer.execute("PRAGMA journal_mode = WAL")
        self.writer.execute("PRAGMA synchronous = OFF")
        self.writer.execute(f"PRAGMA wal_autocheckpoint = {autocheckpoint}")
        self.writer.execute("CREATE TABLE t (a)")

    def begin(self, reader: int) -> None:
        self.readers[reader].execute("BEGIN")
        self.readers[reader].execute("SELECT count(*) FROM t").fetchall()

    def write(self, rows: int) -> None:
        for _ in range(rows):
            self.writer.execute("INSERT INTO t VALUES (zeroblob(3000))")
            self.observer.look()

    def use(self) -> WalUse:
        use = self.observer.use()
        assert use
        return use


@pytest.fixture(params=[AUTOCHECKPOINT])
def load(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Load]:
    load = Load(tmp_path / "app.db", request.param)
    with load.stack:
        yield load


def test_wal_without_readers_does_not_grow(load: Load) -> None:
    load.write(ROWS)
    assert growth_in_trial(load.use(), AUTOCHECKPOINT) is None
    assert 0 < load.use().frames <= load.use().most_frames < 2 * AUTOCHECKPOINT
    assert load.use().largest_bytes == load.use().end_bytes > 0


def test_overlapping_readers_checkpoint_everything_and_never_restart(load: Load) -> None:
    load.begin(0)
    for number in range(ROWS // 10):
        load.begin((number + 1) % 2)
        load.readers[number % 2].execute("COMMIT")
        load.write(10)
    assert growth_in_trial(load.use(), AUTOCHECKPOINT) == OVERLAP
    assert load.use().checkpointed >= 0.9 * load.use().frames


def test_long_reader_keeps_frames_from_checkpoints(load: Load) -> None:
    load.begin(0)
    load.write(ROWS)
    assert growth_in_trial(load.use(), AUTOCHECKPOINT) == SNAPSHOT


def test_earlier_long_reader_leaves_the_size_of_the_file(load: Load) -> None:
    load.begin(0)
    load.write(ROWS)
    load.readers[0].execute("COMMIT")
    load.write(2 * AUTOCHECKPOINT)
    assert growth_in_trial(load.use(), AUTOCHECKPOINT) == REUSED
    assert load.use().end_bytes == load.use().largest_bytes > ROWS * load.use().page_size
    assert load.use().frames <= 2 * AUTOCHECKPOINT


@pytest.mark.parametrize("load", [0], indirect=True)
def test_growth_without_automatic_checkpoints_has_its_kind(load: Load) -> None:
    load.write(4200)
    assert growth_in_trial(load.use(), 0) == UNCOPIED
    assert growth_in_trial(load.use()) == SNAPSHOT  # if the setting is unknown


def test_deleted_and_created_index_is_opened_again(tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    observer = WalObserver(database)
    observer.look()
    assert observer.use() is None
    uses = []
    for rows in (3, 9):
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE IF NOT EXISTS t (a)")
            for _ in range(rows):
                connection.execute("INSERT INTO t VALUES (1)")
            observer.look()
            uses.append(observer.use())
    observer.close()
    first, second = (use.frames if use else 0 for use in uses)
    assert 0 < first < second


@pytest.mark.parametrize(
    ("file_frames", "live", "checkpointed", "read_s", "gap_s", "kind"),
    [
        (LARGE_FRAMES, LARGE_FRAMES, 0, 9.0, 9.0, None),
        (32_000, 32_000, 31_000, 0.05, 9.0, OVERLAP),
        (32_000, 32_000, 31_000, 0.05, 0.4, None),
        (32_000, 32_000, 10, 9.0, 9.0, SNAPSHOT),
        (32_000, 32_000, 10, 0.1, 0.1, UNCOPIED),
        (9143, 744, 744, 5.0, 5.0, REUSED),
    ],
)
def test_wal_growth_kind_follows_from_the_figures(
    file_frames: int, live: int, checkpointed: int, read_s: float, gap_s: float, kind: str | None
) -> None:
    assert kind == wal_growth_kind(
        file_frames=file_frames,
        live_frames=live,
        copied=checkpointed / live,
        longest_read_s=read_s,
        without_gap_s=gap_s,
    )


def test_any_size_counts_as_growth_if_no_size_is_normal() -> None:
    figures = {"live_frames": 100, "copied": 0, "longest_read_s": 2.0, "without_gap_s": 2.0}
    assert wal_growth_kind(file_frames=100, normal_frames=0, **figures) == SNAPSHOT  # type: ignore[arg-type]
