"""The process that checkpoints, on real files; and what it makes of the answers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.experiments.kv import companions
from sqlstress.experiments.kv.companions import Answer, Answers, Checkpointer
from sqlstress.experiments.kv.experiment import Checkpointing, Load
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTS,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
    Series,
)
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.rows import mostly_thorough
from tests.targets.filled import create_file

MS = 1_000_000
BUCKETS = 3


@pytest.fixture(params=mostly_thorough(sorted(DRIVERS), ("sqlite3",)))
def case(request: pytest.FixtureRequest) -> Case:
    pytest.importorskip(request.param)
    settings = Settings(synchronous="off", wal_autocheckpoint=0, busy_timeout_ms=20)
    return Case(driver=request.param, buckets=BUCKETS, ops=1, settings=settings, spec=Load(key_space=9))


@pytest.fixture
def connections(case: Case, tmp_path: Path) -> Iterator[list[Connection]]:
    """A connection to each file; there are 20 frames in each file's WAL."""
    with ExitStack() as opened:
        found = []
        for path in files.paths(case, tmp_path):
            create_file(case, path, [(1, 1)]).close()
            connection = opened.enter_context(files.opened(case, path))
            connection.rows("PRAGMA wal_autocheckpoint=0")
            for value in range(20):
                write(connection, value)
            found.append(connection)
        yield found


def write(connection: Connection, value: int) -> None:
    connection.rows("REPLACE INTO kv (key, value) VALUES (1, ?)", (value,))


def checkpointing(case: Case, mode: str) -> Case:
    return replace(case, spec=replace(case.spec, checkpointing=Checkpointing(mode, 0.001)))


def run(case: Case, folder: Path, mode: str) -> dict[str, Series]:
    """Let it checkpoint for a moment; return what it tells, by name."""
    return {one.name: one for one in told(case, folder, mode, time.perf_counter_ns())}


def told(case: Case, folder: Path, mode: str, opens_ns: int) -> list[Series]:
    """Let it checkpoint for a moment, in a window that opens then."""
    load = replace(case.spec, checkpointing=Checkpointing(mode, 0.001))
    beside = Checkpointer(replace(case, spec=load), SqlitePlace(case, folder), ())
    looks = itertools.count()
    found = beside.run(Window(opens_ns, opens_ns, FOREVER_NS), lambda: next(looks) > 20)
    beside.close()
    return found


def frames_after_a_write(connection: Connection) -> int:
    """Return how many frames there are after one more: 1 if all others had been copied."""
    write(connection, 0)
    return int(connection.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1])


@pytest.mark.parametrize("mode", ["passive", "restart"])
def test_the_frames_of_every_file_are_copied(
    case: Case, tmp_path: Path, connections: list[Connection], mode: str
) -> None:
    told = run(case, tmp_path, mode)
    assert [frames_after_a_write(connection) for connection in connections] == [1] * BUCKETS
    assert sum(told[CHECKPOINTS].values) >= BUCKETS
    assert (sum(told[BUSY_CHECKPOINTS].values), max(told[STUCK_CHECKPOINTS].values)) == (0, 0)
    assert sum(told[CHECKPOINT_TIME].values) >= max(told[LONGEST_CHECKPOINT].values) > 0


def test_truncate_leaves_an_empty_file_of_every_wal(
    case: Case, tmp_path: Path, connections: list[Connection]
) -> None:
    run(case, tmp_path, "truncate")
    sizes = [path.with_name(path.name + "-wal").stat().st_size for path in files.paths(case, tmp_path)]
    assert sizes == [0] * BUCKETS


def pin(connection: Connection) -> None:
    connection.rows("BEGIN")
    connection.rows("SELECT count(*) FROM kv")


def test_a_reader_that_stays_lets_passive_checkpoints_get_no_further_although_none_is_busy(
    case: Case, tmp_path: Path, connections: list[Connection]
) -> None:
    pin(connections[1])
    with files.opened(case, files.paths(case, tmp_path)[1]) as writer:
        write(writer, 0)
        told = run(case, tmp_path, "passive")
    assert max(told[STUCK_CHECKPOINTS].values) >= 3
    assert sum(told[BUSY_CHECKPOINTS].values) == 0


def test_a_reader_that_stays_makes_a_restart_busy_for_as_long_as_it_has_patience(
    case: Case, tmp_path: Path, connections: list[Connection]
) -> None:
    pin(connections[1])
    told = run(case, tmp_path, "restart")
    assert 0 < sum(told[BUSY_CHECKPOINTS].values) < sum(told[CHECKPOINTS].values)
    assert max(told[LONGEST_CHECKPOINT].values) >= 20 * MS


@pytest.mark.parametrize(("most_ms", "workers_ms"), [(30, 60_000), (60_000, 30)])
def test_its_patience_is_the_workers_but_not_more_than_its_own(
    case: Case,
    tmp_path: Path,
    connections: list[Connection],
    monkeypatch: pytest.MonkeyPatch,
    most_ms: int,
    workers_ms: int,
) -> None:
    monkeypatch.setattr(companions, "PATIENCE_MS", most_ms)
    pin(connections[0])
    patient = replace(case, settings=replace(case.settings, busy_timeout_ms=workers_ms))
    told = run(patient, tmp_path, "restart")
    assert 30 * MS <= max(told[LONGEST_CHECKPOINT].values) < 20_000 * MS


def test_checkpoints_outside_of_the_window_are_made_and_not_told(
    case: Case, tmp_path: Path, connections: list[Connection]
) -> None:
    found = told(case, tmp_path, "passive", time.perf_counter_ns() + 10**15)
    assert all(one.values == one.times_ns == () for one in found)
    assert [frames_after_a_write(connection) for connection in connections] == [1] * BUCKETS


def stuck(answers: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return how many checkpoints in a row were stuck, after each of these answers."""
    told = Answers(MS, 1)
    for at, answer in enumerate(answers):
        told.take(0, Answer(*answer), 1, at * MS)
    return list(next(one for one in told.series() if one.name == STUCK_CHECKPOINTS).values)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(0, 10, 10), (0, 25, 25), (0, 5, 5)], [0, 0, 0]),
        ([(0, 20761, 600)] * 4, [1, 2, 3, 4]),
        ([(0, 10, 6), (0, 30, 6), (0, 50, 6), (0, 70, 70)], [1, 2, 3, 0]),
        ([(1, 10, 6), (1, 10, 6), (1, 10, 6)], [1, 2, 3]),
        # Short reads: always some frames are left, and always others.
        ([(0, 10, 6), (0, 30, 22), (0, 50, 41), (0, 70, 66)], [1, 1, 1, 1]),
        # An answer without figures says nothing.
        ([(0, 10, 6), (1, -1, -1), (0, 30, 6), (1, -1, -1), (0, 30, 30)], [1, 1, 2, 2, 0]),
    ],
    ids=["finished", "seed", "a reader that leaves", "busy", "short reads", "not looked"],
)
def test_a_checkpoint_is_stuck_that_leaves_frames_and_gets_no_further(
    answers: list[tuple[int, int, int]], expected: list[int]
) -> None:
    assert stuck(answers) == expected


def test_files_are_stuck_each_for_itself() -> None:
    told = Answers(MS, 2)
    for at in range(4):
        told.take(0, Answer(0, 10, 6), 1, at * MS)
        told.take(1, Answer(0, 10, 10), 1, at * MS)
    (of_both,) = (one for one in told.series() if one.name == STUCK_CHECKPOINTS)
    assert of_both.values == (1, 2, 3, 4)


def test_counts_and_times_are_those_of_the_window() -> None:
    told = Answers(MS, 1)
    told.take(0, Answer(0, 3, 3), 900, None)
    told.take(0, Answer(1, 3, 3), 5, 10)
    told.take(0, Answer(0, 3, 3), 7, 20)
    told.take(0, Answer(1, 3, 3), 2, 3 * MS)
    told.take(0, Answer(0, 3, 3), 900, None)
    found = {one.name: (one.unit, one.values, one.times_ns) for one in told.series()}
    assert found[CHECKPOINTS] == ("checkpoints", (2, 1), (0, 3 * MS))
    assert found[BUSY_CHECKPOINTS] == ("checkpoints", (1, 1), (0, 3 * MS))
    assert found[CHECKPOINT_TIME] == ("ns", (12, 2), (0, 3 * MS))
    assert found[LONGEST_CHECKPOINT] == ("ns", (7, 2), (0, 3 * MS))
