"""What is read of a wal-index, beside what SQLite itself answers; the databases are another process's."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from sqlstress.targets.sqlite import walindex
from sqlstress.targets.sqlite.drivers import DRIVERS, load_driver
from sqlstress.targets.sqlite.walindex import WalIndex
from tests.rows import mostly_thorough
from tests.targets.elsewhere import Elsewhere

FRAME_HEADER = 24
WAL_HEADER = 32


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "watched.db"


@pytest.fixture(scope="module")
def process(request: pytest.FixtureRequest) -> Iterator[Elsewhere]:
    """A process of the driver that is asked for; what is read here is read without one."""
    driver = getattr(request, "param", "sqlite3")
    pytest.importorskip(driver)
    with Elsewhere(driver, Path()) as found:
        yield found


@pytest.fixture
def other(process: Elsewhere, database: Path) -> Iterator[Elsewhere]:
    with process.at(database):
        yield process


def begin(other: Elsewhere, page_size: int = 4096) -> None:
    """Make a database in WAL mode with an empty table, whose WAL nobody checkpoints unasked."""
    for sql in (f"page_size={page_size}", "journal_mode=wal", "wal_autocheckpoint=0", "synchronous=off"):
        other.rows("writer", f"PRAGMA {sql}")
    other.rows("writer", "CREATE TABLE t (a INTEGER PRIMARY KEY, b)")


def write(other: Elsewhere, commits: int) -> None:
    """Commit so many transactions, of a page each."""
    for _ in range(commits):
        other.rows("writer", "REPLACE INTO t VALUES (1, random())")


def checkpoint(other: Elsewhere, mode: str) -> list[int]:
    """Return what a checkpoint answers: busy, frames, checkpointed."""
    return [*other.rows("checkpointer", f"PRAGMA wal_checkpoint({mode})")[0]]


def seen(database: Path) -> WalIndex:
    found = walindex.read(database)
    assert found is not None
    return found


@pytest.mark.parametrize("page_size", [512, 4096, 65_536])
def test_the_page_size_and_the_frames_are_those_of_the_file(
    other: Elsewhere, database: Path, page_size: int
) -> None:
    begin(other, page_size)
    write(other, 3)
    found = seen(database)
    assert found.page_size == page_size
    assert walindex.wal_bytes(database) == WAL_HEADER + found.frames * (FRAME_HEADER + page_size)


def test_after_a_restart_checkpoint_the_next_write_begins_the_wal_anew_and_the_file_keeps_its_size(
    other: Elsewhere, database: Path
) -> None:
    begin(other)
    write(other, 30)
    before, size = seen(database), walindex.wal_bytes(database)
    assert checkpoint(other, "RESTART") == [0, before.frames, before.frames]
    write(other, 2)
    after = seen(database)
    assert (after.frames, after.checkpointed) == (2, 0)
    assert after.salt == (before.salt + 1) % 2**32
    assert walindex.wal_bytes(database) == size


def test_a_truncate_checkpoint_leaves_no_frame_and_an_empty_file(other: Elsewhere, database: Path) -> None:
    begin(other)
    write(other, 30)
    before = seen(database)
    assert checkpoint(other, "TRUNCATE") == [0, 0, 0]
    assert seen(database)[:4] == (0, 0, (before.salt + 1) % 2**32, 4096)
    assert walindex.wal_bytes(database) == 0


@pytest.mark.parametrize("process", mostly_thorough(sorted(DRIVERS), ("sqlite3",)), indirect=True)
def test_whatever_happens_the_next_passive_checkpoint_agrees(other: Elsewhere, database: Path) -> None:
    begin(other)
    chance = random.Random(3)
    reading, salts, held_back = False, set(), 0
    for _ in range(120):
        match chance.choice(["write", "write", "read", "passive", "restart", "truncate"]):
            case "write":
                write(other, chance.randint(1, 9))
            case "read":
                other.rows("reader", "COMMIT" if reading else "BEGIN")
                reading = not reading
                if reading:
                    other.rows("reader", "SELECT count(*) FROM t")
            case mode:
                checkpoint(other, mode)
        before = seen(database)
        busy, frames, checkpointed = checkpoint(other, "passive")
        after = seen(database)
        assert (busy, frames, checkpointed) == (0, after.frames, after.checkpointed)
        assert (before.frames, before.salt) == (after.frames, after.salt)
        assert before.checkpointed <= after.checkpointed
        salts.add(after.salt)
        held_back += after.checkpointed < after.frames  # by the reader
    assert len(salts) > 5 and held_back > 5


def test_without_a_wal_nothing_is_there_and_the_last_connection_takes_the_index_along(
    other: Elsewhere, database: Path
) -> None:
    for prepare in (lambda: None, lambda: other.rows("writer", "CREATE TABLE of_before (a)")):
        prepare()
        assert (walindex.read(database), walindex.wal_bytes(database)) == (None, 0)
    begin(other)
    assert walindex.read(database) is not None
    other.close("writer")
    assert (walindex.read(database), walindex.wal_bytes(database)) == (None, 0)


def write_on(driver: str, database: Path, begun: Any) -> None:
    """Write until it is killed."""
    connection = load_driver(driver).connect(database, 0)
    for sql in ("journal_mode=wal", "wal_autocheckpoint=20", "synchronous=off"):
        connection.rows(f"PRAGMA {sql}")
    connection.rows("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    begun.set()
    while True:
        connection.rows("REPLACE INTO t VALUES (1, random())")


@pytest.mark.parametrize("driver", mostly_thorough(sorted(DRIVERS), ("sqlite3",)))
def test_no_look_at_a_busy_writers_index_mixes_two_moments(driver: str, database: Path) -> None:
    pytest.importorskip(driver)
    context = get_context("spawn")
    begun = context.Event()
    writer = context.Process(target=write_on, args=(driver, database, begun), daemon=True)
    writer.start()
    try:
        assert begun.wait(60)
        looks = list(some_looks(database))
    finally:
        writer.kill()
        writer.join()
    for earlier, later in pairwise(looks):
        assert later.checkpointed <= later.frames
        if later.salt == earlier.salt:
            assert earlier.frames <= later.frames
            assert earlier.checkpointed <= later.checkpointed


def some_looks(database: Path) -> Iterator[WalIndex]:
    """Yield what is seen until the WAL has begun anew often."""
    salts: set[int] = set()
    for _ in range(100_000):
        # A writer that has to wait for a processor in the midst of a change leaves nothing to be seen.
        if found := walindex.read(database):
            yield found
            salts.add(found.salt)
        if len(salts) == 100:
            return
    raise AssertionError("the WAL hardly ever begins anew")


@pytest.mark.parametrize(
    ("places", "value"),
    [((16,), 7), ((64,), 7), ((0,), 3_007_001), ((12,), 0), ((96,), 10_000), ((16, 64), 7)],
    ids=["first copy", "second copy", "version", "not begun", "more checkpointed", "agreed on nonsense"],
)
def test_an_index_in_the_midst_of_a_change_or_too_short_is_not_read(
    other: Elsewhere, database: Path, tmp_path: Path, places: tuple[int, ...], value: int
) -> None:
    begin(other)
    write(other, 3)
    words = bytearray(database.with_name("watched.db-shm").read_bytes())
    copy = tmp_path / "copy.db"
    index = copy.with_name("copy.db-shm")
    index.write_bytes(words)
    assert walindex.read(copy) == walindex.read(database)
    for length in (0, 3, 48, 99):
        index.write_bytes(words[:length])
        assert walindex.read(copy) is None
    for place in places:
        struct.pack_into("=I", words, place, value)
    index.write_bytes(words)
    assert walindex.read(copy) is None
