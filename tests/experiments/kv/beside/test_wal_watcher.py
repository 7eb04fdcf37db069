"""The process that watches WALs from outside. The connections are another process's, as in a trial."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.experiments.kv.companions import WalWatcher
from sqlstress.experiments.kv.experiment import Checkpointing, Load
from sqlstress.report.case import Case
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, LARGEST_WAL, WAL_FRAMES, WAL_SIZE, Series
from sqlstress.targets.sqlite import files, walindex
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.targets.elsewhere import Elsewhere

BESIDE = Checkpointing("none", 0.001, pinned_reader=True)
CASE = Case(buckets=2, ops=1, spec=Load(checkpointing=BESIDE))


@pytest.fixture
def others(tmp_path: Path) -> Iterator[list[Elsewhere]]:
    """Processes that hold a connection to each file; the second file has more frames than the first."""
    with ExitStack() as opened:
        found = []
        for number, path in enumerate(files.paths(CASE, tmp_path), 1):
            other = opened.enter_context(Elsewhere("sqlite3", path))
            for sql in ("PRAGMA journal_mode=wal", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t (a)"):
                other.rows("writer", sql)
            write(other, 10 * number)
            found.append(other)
        yield found


def write(other: Elsewhere, commits: int) -> None:
    for _ in range(commits):
        other.rows("writer", "INSERT INTO t VALUES (1)")


def watch(folder: Path, opens_ns: int, ended: Callable[[], bool]) -> dict[str, Series]:
    """Return what is told until it is over, by name."""
    watcher = WalWatcher(CASE, SqlitePlace(CASE, folder), ())
    told = watcher.run(Window(opens_ns, opens_ns, FOREVER_NS), ended)
    watcher.close()
    return {one.name: one for one in told}


def glance(folder: Path) -> dict[str, Series]:
    """Return what is told of a moment in which nobody writes."""
    questions = itertools.count()
    return watch(folder, time.perf_counter_ns(), lambda: next(questions) > 9)


def test_frames_and_sizes_are_those_of_all_files_together(tmp_path: Path, others: list[Elsewhere]) -> None:
    assert others[0].rows("writer", "PRAGMA wal_checkpoint(PASSIVE)")[0][0] == 0
    first, second = map(walindex.read, files.paths(CASE, tmp_path))
    assert first is not None
    assert second is not None
    sizes = [walindex.wal_bytes(path) for path in files.paths(CASE, tmp_path)]
    told = glance(tmp_path)
    assert {name: set(one.values) for name, one in told.items()} == {
        WAL_FRAMES: {first.frames + second.frames},
        CHECKPOINTED_FRAMES: {first.frames},
        WAL_SIZE: {sum(sizes)},
        LARGEST_WAL: {max(sizes)},
    }
    assert first.checkpointed == first.frames < second.frames
    assert {one.unit for one in told.values()} == {"frames", "bytes"}


def test_times_count_from_the_opening_of_the_window(tmp_path: Path, others: list[Elsewhere]) -> None:
    opens_ns = time.perf_counter_ns() + 30_000_000
    until_ns = opens_ns + 20_000_000
    told = watch(tmp_path, opens_ns, lambda: time.perf_counter_ns() >= until_ns)
    for series in told.values():
        assert series.times_ns
        assert 0 <= min(series.times_ns) <= max(series.times_ns) < time.perf_counter_ns() - opens_ns


def test_a_trial_that_ends_before_its_window_opens_tells_nothing(
    tmp_path: Path, others: list[Elsewhere]
) -> None:
    questions = itertools.count()
    told = watch(tmp_path, time.perf_counter_ns() + 10**15, lambda: next(questions) > 3)
    assert {one.values for one in told.values()} == {()}


def test_frames_are_told_only_where_all_files_have_some(tmp_path: Path, others: list[Elsewhere]) -> None:
    others[0].close("writer")
    told = glance(tmp_path)
    assert told[WAL_FRAMES].values == told[CHECKPOINTED_FRAMES].values == ()
    assert set(told[WAL_SIZE].values) == {walindex.wal_bytes(tmp_path / "kv_1.db")}
