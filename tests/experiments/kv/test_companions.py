"""The processes next to the workers, on real files: they checkpoint, hold a snapshot, watch the WALs."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from operator import add
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.experiments.kv import companions
from sqlstress.experiments.kv.companions import (
    MOST,
    CheckpointAnswers,
    Checkpointer,
    IntervalValues,
    PinnedReader,
    Timing,
    WalWatcher,
)
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTED_FRAMES,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
    WAL_FRAMES,
    WAL_SIZE,
    Series,
)
from sqlstress.targets.sqlite import files, walindex
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.rows import mostly_thorough
from tests.targets.elsewhere import Elsewhere
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


def run(case: Case, folder: Path, mode: str, opens_ns: int | None = None) -> dict[str, Series]:
    """Let the checkpointer work for a moment, in a window that opens at `opens_ns` or now; return its series
    by name.
    """
    load = replace(case.spec, checkpointing=Checkpointing(mode, 0.001))
    beside = Checkpointer(replace(case, spec=load), SqlitePlace(case, folder), ())
    looks, opens_ns = itertools.count(), opens_ns or time.perf_counter_ns()
    found = beside.run(Window(opens_ns, opens_ns, FOREVER_NS), lambda: next(looks) > 20)
    beside.close()
    return {series.name: series for series in found}


def frames_after_a_write(connection: Connection) -> int:
    """Return the number of frames after one more write: 1 if all others had been copied."""
    write(connection, 0)
    return int(connection.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1])


@pytest.mark.parametrize("mode", ["passive", "restart"])
def test_frames_of_every_file_are_copied(
    case: Case, tmp_path: Path, connections: list[Connection], mode: str
) -> None:
    told = run(case, tmp_path, mode)
    assert [frames_after_a_write(connection) for connection in connections] == [1] * BUCKETS
    assert sum(told[CHECKPOINTS].values) >= BUCKETS
    assert (sum(told[BUSY_CHECKPOINTS].values), max(told[STUCK_CHECKPOINTS].values)) == (0, 0)
    assert sum(told[CHECKPOINT_TIME].values) >= max(told[LONGEST_CHECKPOINT].values) > 0


@pytest.mark.usefixtures("connections")
def test_truncate_leaves_an_empty_file_of_every_wal(case: Case, tmp_path: Path) -> None:
    run(case, tmp_path, "truncate")
    sizes = [path.with_name(path.name + "-wal").stat().st_size for path in files.paths(case, tmp_path)]
    assert sizes == [0] * BUCKETS


def pin(connection: Connection) -> None:
    connection.rows("BEGIN")
    connection.rows("SELECT count(*) FROM kv")


def test_pinned_reader_stops_passive_checkpoints_and_makes_restart_busy(
    case: Case, tmp_path: Path, connections: list[Connection]
) -> None:
    pin(connections[1])
    told = run(case, tmp_path, "restart")
    assert 0 < sum(told[BUSY_CHECKPOINTS].values) < sum(told[CHECKPOINTS].values)
    assert max(told[LONGEST_CHECKPOINT].values) >= 20 * MS
    with files.opened(case, files.paths(case, tmp_path)[1]) as writer:
        write(writer, 0)
        told = run(case, tmp_path, "passive")
    assert max(told[STUCK_CHECKPOINTS].values) >= 3
    assert sum(told[BUSY_CHECKPOINTS].values) == 0


@pytest.mark.parametrize(("most_ms", "workers_ms"), [(30, 60_000), (60_000, 30)])
def test_checkpointer_waits_like_the_workers_up_to_its_own_limit(
    case: Case, tmp_path: Path, connections: list[Connection], most_ms: int, workers_ms: int
) -> None:
    pin(connections[0])
    patient = replace(case, settings=replace(case.settings, busy_timeout_ms=workers_ms))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(companions, "PATIENCE_MS", most_ms)
        told = run(patient, tmp_path, "restart")
    assert 30 * MS <= max(told[LONGEST_CHECKPOINT].values) < 20_000 * MS


def test_checkpoints_outside_of_the_window_are_not_counted(
    case: Case, tmp_path: Path, connections: list[Connection]
) -> None:
    told = run(case, tmp_path, "passive", time.perf_counter_ns() + 10**15)
    assert all(series.values == series.times_ns == () for series in told.values())
    assert [frames_after_a_write(connection) for connection in connections] == [1] * BUCKETS


def stuck(answers: Sequence[tuple[int, int, int]], files: int = 1) -> list[int]:
    """Return the number of successive stuck checkpoints after each of the answers, given file by file."""
    told = CheckpointAnswers(MS, files)
    for at, answer in enumerate(answers):
        told.take(at % files, answer, 1, at // files * MS)
    return list(next(series for series in told.series() if series.name == STUCK_CHECKPOINTS).values)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(0, 10, 10), (0, 25, 25), (0, 5, 5)], [0, 0, 0]),
        ([(0, 20761, 600)] * 4, [1, 2, 3, 4]),
        ([(0, 10, 6), (0, 30, 6), (0, 50, 6), (0, 70, 70)], [1, 2, 3, 0]),
        ([(1, 10, 6), (1, 10, 6), (1, 10, 6)], [1, 2, 3]),
        # Short reads: some frames are always left, each time different frames.
        ([(0, 10, 6), (0, 30, 22), (0, 50, 41), (0, 70, 66)], [1, 1, 1, 1]),
        # An answer without figures has no effect.
        ([(0, 10, 6), (1, -1, -1), (0, 30, 6), (1, -1, -1), (0, 30, 30)], [1, 1, 2, 2, 0]),
    ],
    ids=["finished", "seed", "a reader that leaves", "busy", "short reads", "not looked"],
)
def test_checkpoint_without_progress_that_leaves_frames_is_stuck(
    answers: list[tuple[int, int, int]], expected: list[int]
) -> None:
    assert stuck(answers) == expected


def test_stuck_checkpoints_are_counted_per_file() -> None:
    assert stuck([(0, 10, 6), (0, 10, 10)] * 4, files=2) == [1, 2, 3, 4]


def test_counts_and_times_are_those_of_the_window() -> None:
    told = CheckpointAnswers(MS, 1)
    told.take(0, (0, 3, 3), 900, None)
    told.take(0, (1, 3, 3), 5, 10)
    told.take(0, (0, 3, 3), 7, 20)
    told.take(0, (1, 3, 3), 2, 3 * MS)
    told.take(0, (0, 3, 3), 900, None)
    found = {series.name: (series.unit, series.values, series.times_ns) for series in told.series()}
    assert found[CHECKPOINTS] == ("checkpoints", (2, 1), (0, 3 * MS))
    assert found[BUSY_CHECKPOINTS] == ("checkpoints", (1, 1), (0, 3 * MS))
    assert found[CHECKPOINT_TIME] == ("ns", (12, 2), (0, 3 * MS))
    assert found[LONGEST_CHECKPOINT] == ("ns", (7, 2), (0, 3 * MS))


@pytest.mark.parametrize("driver", sorted(DRIVERS))
def test_reader_limits_checkpoints_to_its_snapshot_until_it_ends(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    settings = Settings(synchronous="off", wal_autocheckpoint=0)
    load = Load(key_space=9, checkpointing=Checkpointing(pinned_reader=True))
    case = Case(driver=driver, buckets=2, settings=settings, spec=load)
    with ExitStack() as opened:
        writers = []
        for path in files.paths(case, tmp_path):
            create_file(case, path, [(1, 1)]).close()
            writers.append(opened.enter_context(files.opened(case, path)))
            writers[-1].rows("REPLACE INTO kv (key, value) VALUES (2, 2)")
        reader = PinnedReader(case, SqlitePlace(case, tmp_path), ())
        for writer in writers:
            writer.rows("REPLACE INTO kv (key, value) VALUES (3, 3)")
            assert writer.rows("PRAGMA wal_checkpoint(PASSIVE)") == [(0, 2, 1)]
        looks = itertools.count()
        assert reader.run(Window(0, 0, FOREVER_NS), lambda: next(looks) > 0) == []
        reader.close()
        for writer in writers:
            assert writer.rows("PRAGMA wal_checkpoint(PASSIVE)") == [(0, 2, 2)]


# The watcher: the connections are another process's, as in a trial.


WATCHED = Case(buckets=2, ops=1, spec=Load(checkpointing=Checkpointing("none", 0.001, pinned_reader=True)))


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[list[Elsewhere]]:
    """Processes that each hold a connection to every file; the second file has more frames than the first."""
    with ExitStack() as opened:
        found = []
        for number, path in enumerate(files.paths(WATCHED, tmp_path), 1):
            other = opened.enter_context(Elsewhere("sqlite3", path))
            for sql in ("PRAGMA journal_mode=wal", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t (a)"):
                other.rows("writer", sql)
            for _ in range(10 * number):
                other.rows("writer", "INSERT INTO t VALUES (1)")
            found.append(other)
        yield found


def watch(folder: Path, opens_ns: int, ended: Callable[[], bool]) -> dict[str, Series]:
    """Return the watcher's series by name, from a watch that ends with `ended`."""
    watcher = WalWatcher(WATCHED, SqlitePlace(WATCHED, folder), ())
    told = watcher.run(Window(opens_ns, opens_ns, FOREVER_NS), ended)
    watcher.close()
    return {series.name: series for series in told}


def glance(folder: Path, opens_ns: int | None = None) -> dict[str, Series]:
    """Return the watcher's series of a moment without writes, by name."""
    questions = itertools.count()
    return watch(folder, opens_ns or time.perf_counter_ns(), lambda: next(questions) > 9)


def test_frames_and_sizes_are_those_of_all_files_together(tmp_path: Path, writers: list[Elsewhere]) -> None:
    assert writers[0].rows("writer", "PRAGMA wal_checkpoint(PASSIVE)")[0][0] == 0
    first, second = map(walindex.read, files.paths(WATCHED, tmp_path))
    assert first and second
    sizes = [walindex.wal_bytes(path) for path in files.paths(WATCHED, tmp_path)]
    told = glance(tmp_path)
    assert {name: set(series.values) for name, series in told.items()} == {
        WAL_FRAMES: {first.frames + second.frames},
        CHECKPOINTED_FRAMES: {first.frames},
        WAL_SIZE: {sum(sizes)},
        LARGEST_WAL: {max(sizes)},
    }
    assert first.checkpointed == first.frames < second.frames
    assert {series.unit for series in told.values()} == {"frames", "bytes"}
    # Before the window opens there is no value, and frames only once all files have some.
    early = glance(tmp_path, time.perf_counter_ns() + 10**15)
    assert {series.values for series in early.values()} == {()}
    writers[0].close("writer")
    told = glance(tmp_path)
    assert told[WAL_FRAMES].values == told[CHECKPOINTED_FRAMES].values == ()
    assert set(told[WAL_SIZE].values) == {walindex.wal_bytes(tmp_path / "kv_1.db")}


@pytest.mark.usefixtures("writers")
def test_times_count_from_the_opening_of_the_window(tmp_path: Path) -> None:
    opens_ns = time.perf_counter_ns() + 30_000_000
    until_ns = opens_ns + 20_000_000
    told = watch(tmp_path, opens_ns, lambda: time.perf_counter_ns() >= until_ns)
    for series in told.values():
        assert series.times_ns
        assert 0 <= min(series.times_ns) <= max(series.times_ns) < time.perf_counter_ns() - opens_ns


# The times of the rounds, the counted ones, and the number of stored values.


CASE = Case(spec=Load(checkpointing=Checkpointing("passive", 0.05)))


class Time:
    """Replaces the module `time`: its clock advances only in `sleep`."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.sleeps: list[float] = []

    def perf_counter_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_ns += round(seconds * 1e9)

    def over(self, end_ns: int) -> Callable[[], bool]:
        """Return a function that returns whether `end_ns` is past."""
        return lambda: self.now_ns >= end_ns


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Time:
    fake = Time()
    monkeypatch.setattr(companions, "time", fake)
    return fake


def half_a_second_from(opens_ns: int) -> Window:
    return Window(0, opens_ns, opens_ns + 500 * MS)


def test_rounds_have_the_interval_between_them_and_end_when_the_trial_does(moments: Time) -> None:
    begun = []
    for _ in Timing(CASE, half_a_second_from(0), moments.over(300 * MS)).rounds():
        begun.append(moments.now_ns // MS)
        moments.now_ns += 10 * MS
    assert begun == [0, 60, 120, 180, 240]
    assert moments.now_ns == 300 * MS
    assert list(Timing(CASE, half_a_second_from(0), moments.over(0)).rounds()) == []


def test_window_closes_the_last_round(moments: Time) -> None:
    begun = [moments.now_ns // MS for _ in Timing(CASE, half_a_second_from(100 * MS), lambda: False).rounds()]
    assert begun == list(range(0, 600, 50))
    assert moments.now_ns == 600 * MS


def test_end_is_noticed_soon_even_in_a_long_pause(moments: Time) -> None:
    case = Case(spec=Load(checkpointing=Checkpointing("passive", 3600.0)))
    window = Window(0, 0, 9000 * MS)
    assert len(list(Timing(case, window, moments.over(100 * MS)).rounds())) == 1
    assert moments.now_ns == 100 * MS
    assert max(moments.sleeps) <= 0.02


def test_only_moments_in_the_window_have_a_time() -> None:
    timing = Timing(CASE, half_a_second_from(1000 * MS), lambda: False)
    assert [timing.within(at * MS) for at in (999, 1000, 1499, 1500)] == [None, 0, 499 * MS, None]
    timing = Timing(CASE, Window(0, 1000 * MS, FOREVER_NS), lambda: False)
    assert [timing.within(at * MS) for at in (999, 1000, 10**6)] == [None, 0, (10**6 - 1000) * MS]


WIDTH = 1000
samples = st.lists(
    st.tuples(st.integers(0, 50 * MOST * WIDTH), st.integers(0, 10**12)), min_size=1, max_size=300
)


def stretches(fold: Callable[[int, int], int]) -> IntervalValues:
    return IntervalValues(WIDTH, "a", "frames", fold)


@given(samples)
def test_sum_and_maximum_stay_exact_in_a_bounded_number_of_intervals(samples: list[tuple[int, int]]) -> None:
    total, most = stretches(add), stretches(max)
    for at_ns, value in samples:
        total.add(at_ns, value)
        most.add(at_ns, value)
    assert sum(total.series().values) == sum(value for _, value in samples)
    series = most.series()
    assert len(series.values) == len(series.times_ns) <= MOST
    assert all(earlier < later for earlier, later in pairwise(series.times_ns))
    # Half as many stretches would have been too few.
    last, width = max(at_ns for at_ns, _ in samples), WIDTH
    while last // width >= MOST:
        width *= 2
    found: dict[int, int] = {}
    for at_ns, value in samples:
        found[at_ns // width * width] = max(value, found.get(at_ns // width * width, 0))
    assert dict(zip(series.times_ns, series.values, strict=True)) == found


def test_stretches_are_merged_in_pairs_when_there_are_too_many() -> None:
    figure = stretches(add)
    for place in range(MOST):
        figure.add(place * WIDTH, 1)
    assert figure.series().values == (1,) * MOST
    figure.add(MOST * WIDTH, 1)
    assert figure.series().values == (*[2] * (MOST // 2), 1)
