"""Our reading of a WAL index compared with SQLite's answers; the databases are open in another process."""

import os
import random
import struct
import sys
from collections.abc import Iterator
from contextlib import closing
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
    """A process with the requested driver; this process reads the files without a driver."""
    driver = getattr(request, "param", "sqlite3")
    pytest.importorskip(driver)
    with Elsewhere(driver, Path()) as opened:
        yield opened


@pytest.fixture
def elsewhere(process: Elsewhere, database: Path) -> Iterator[Elsewhere]:
    with process.at(database):
        yield process


def begin(elsewhere: Elsewhere, page_size: int = 4096) -> None:
    """Make a database in WAL mode with an empty table and without automatic checkpoints."""
    for sql in (f"page_size={page_size}", "journal_mode=wal", "wal_autocheckpoint=0", "synchronous=off"):
        elsewhere.rows("writer", f"PRAGMA {sql}")
    elsewhere.rows("writer", "CREATE TABLE t (a INTEGER PRIMARY KEY, b)")


def write(elsewhere: Elsewhere, commits: int) -> None:
    """Commit `commits` transactions of a page each."""
    for _ in range(commits):
        elsewhere.rows("writer", "REPLACE INTO t VALUES (1, random())")


def checkpoint(elsewhere: Elsewhere, mode: str) -> list[int]:
    """Run a checkpoint; return its result: busy, frames, checkpointed."""
    return [*elsewhere.rows("checkpointer", f"PRAGMA wal_checkpoint({mode})")[0]]


def read_index(database: Path) -> WalIndex:
    index = walindex.read(database)
    assert index is not None
    return index


@pytest.mark.parametrize("page_size", [512, 4096, 65_536])
def test_page_size_and_frames_agree_with_the_file(
    elsewhere: Elsewhere, database: Path, page_size: int
) -> None:
    begin(elsewhere, page_size)
    write(elsewhere, 3)
    index = read_index(database)
    assert index.page_size == page_size
    assert walindex.wal_bytes(database) == WAL_HEADER + index.frames * (FRAME_HEADER + page_size)


def test_write_after_a_restart_checkpoint_restarts_the_wal(elsewhere: Elsewhere, database: Path) -> None:
    begin(elsewhere)
    write(elsewhere, 30)
    before, size = read_index(database), walindex.wal_bytes(database)
    assert checkpoint(elsewhere, "RESTART") == [0, before.frames, before.frames]
    write(elsewhere, 2)
    after = read_index(database)
    assert (after.frames, after.checkpointed) == (2, 0)
    assert after.salt == (before.salt + 1) % 2**32
    assert walindex.wal_bytes(database) == size


def test_truncate_checkpoint_leaves_no_frame_and_an_empty_file(elsewhere: Elsewhere, database: Path) -> None:
    begin(elsewhere)
    write(elsewhere, 30)
    before = read_index(database)
    assert checkpoint(elsewhere, "TRUNCATE") == [0, 0, 0]
    assert read_index(database)[:4] == (0, 0, (before.salt + 1) % 2**32, 4096)
    assert walindex.wal_bytes(database) == 0


@pytest.mark.parametrize("process", mostly_thorough(sorted(DRIVERS), ("sqlite3",)), indirect=True)
def test_index_always_agrees_with_the_next_passive_checkpoint(elsewhere: Elsewhere, database: Path) -> None:
    begin(elsewhere)
    draw = random.Random(3)
    reading, salts, held_back = False, set(), 0
    for _ in range(120):
        match draw.choice(["write", "write", "read", "passive", "restart", "truncate"]):
            case "write":
                write(elsewhere, draw.randint(1, 9))
            case "read":
                elsewhere.rows("reader", "COMMIT" if reading else "BEGIN")
                reading = not reading
                if reading:
                    elsewhere.rows("reader", "SELECT count(*) FROM t")
            case mode:
                checkpoint(elsewhere, mode)
        before = read_index(database)
        busy, frames, checkpointed = checkpoint(elsewhere, "passive")
        after = read_index(database)
        assert (busy, frames, checkpointed) == (0, after.frames, after.checkpointed)
        assert (before.frames, before.salt) == (after.frames, after.salt)
        assert before.checkpointed <= after.checkpointed
        salts.add(after.salt)
        held_back += after.checkpointed < after.frames  # by the reader
    assert len(salts) > 5 and held_back > 5


def test_index_is_absent_without_a_wal_and_after_the_last_close(elsewhere: Elsewhere, database: Path) -> None:
    for prepare in (lambda: None, lambda: elsewhere.rows("writer", "CREATE TABLE of_before (a)")):
        prepare()
        assert (walindex.read(database), walindex.wal_bytes(database)) == (None, 0)
    begin(elsewhere)
    assert walindex.read(database) is not None
    elsewhere.close("writer")
    assert (walindex.read(database), walindex.wal_bytes(database)) == (None, 0)


def write_on(driver: str, database: Path, ready: Any) -> None:
    """Write until this process is killed."""
    connection = load_driver(driver).connect(database, 0)
    for sql in ("journal_mode=wal", "wal_autocheckpoint=20", "synchronous=off"):
        connection.rows(f"PRAGMA {sql}")
    connection.rows("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    ready.set()
    while True:
        connection.rows("REPLACE INTO t VALUES (1, random())")


@pytest.mark.parametrize("driver", mostly_thorough(sorted(DRIVERS), ("sqlite3",)))
def test_reading_during_writes_never_mixes_two_states(driver: str, database: Path) -> None:
    pytest.importorskip(driver)
    context = get_context("spawn")
    ready = context.Event()
    writer = context.Process(target=write_on, args=(driver, database, ready), daemon=True)
    writer.start()
    try:
        assert ready.wait(60)
        looks = list(many_looks(database))
    finally:
        writer.kill()
        writer.join()
    for earlier, later in pairwise(looks):
        assert later.checkpointed <= later.frames
        if later.salt == earlier.salt:
            assert earlier.frames <= later.frames
            assert earlier.checkpointed <= later.checkpointed


def many_looks(database: Path) -> Iterator[WalIndex]:
    """Yield readings of the WAL index until the WAL has restarted 99 times."""
    salts: set[int] = set()
    for _ in range(100_000):
        # A writer that loses its processor during a change leaves the index unreadable.
        if index := walindex.read(database):
            yield index
            salts.add(index.salt)
        if len(salts) == 100:
            return
    raise AssertionError("the WAL hardly ever begins anew")


@pytest.mark.parametrize(
    ("offsets", "value"),
    [((16,), 7), ((64,), 7), ((0,), 3_007_001), ((12,), 0), ((96,), 10_000), ((16, 64), 7)],
    ids=["first copy", "second copy", "version", "not begun", "more checkpointed", "agreed on nonsense"],
)
def test_inconsistent_or_short_index_is_not_read(
    elsewhere: Elsewhere, database: Path, tmp_path: Path, offsets: tuple[int, ...], value: int
) -> None:
    begin(elsewhere)
    write(elsewhere, 3)
    content = bytearray(database.with_name("watched.db-shm").read_bytes())
    copy = tmp_path / "copy.db"
    index = copy.with_name("copy.db-shm")
    index.write_bytes(content)
    assert walindex.read(copy) == walindex.read(database)
    for length in (0, 3, 48, 99):
        index.write_bytes(content[:length])
        assert walindex.read(copy) is None
    for offset in offsets:
        struct.pack_into("=I", content, offset, value)
    index.write_bytes(content)
    assert walindex.read(copy) is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows truncates no file that is mapped")
def test_truncated_index_ends_no_process_that_has_it_open(database: Path) -> None:
    file = database.with_name("watched.db-shm")
    file.write_bytes(bytes(walindex.LENGTH))
    with closing(walindex.OpenIndex(database)) as index:
        os.truncate(file, 0)
        assert index.read() is None
