"""Processes that hold, wait, sync and checkpoint for known times, each with its own time recording."""

import sqlite3
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import apsw

from sqlstress.engine.loop import Window, work_through
from sqlstress.experiment import experiment_of
from sqlstress.report.case import Case
from sqlstress.system.processes import start
from sqlstress.targets import open_place
from sqlstress.targets.sqlite.drivers import Connection, load_driver
from sqlstress.targets.sqlite.shim import ShimRecorder
from tests.halves import open_work

Stamps = dict[str, int]
Act = Callable[[Connection, Any], Stamps]
LONG_NS = 60_000_000_000
PATIENCE_S = 60.0
SALT = 1


@contextmanager
def started(main: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Start a process that calls `main` with its end of a pipe and these arguments; yield our end."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=main, args=(theirs, *arguments), daemon=True)
    start(child)
    theirs.close()
    try:
        yield ours
    finally:
        child.kill()
        child.join()


def acting(
    act: Act, words: Any, process: int, driver: str, path: Path, slow_sync_s: float = 0.0
) -> AbstractContextManager[Any]:
    """Start a process that acts on commands from a pipe and sends its stamps; yield our end."""
    return started(_main, act, words, process, driver, path, slow_sync_s)


def receive(pipe: Any) -> Any:
    """Return the next message of a process."""
    assert pipe.poll(PATIENCE_S)
    return pipe.recv()


def _main(pipe: Any, act: Act, words: Any, process: int, driver: str, path: Path, slow_sync_s: float) -> None:
    slow = SlowSyncs(slow_sync_s) if slow_sync_s else None
    watch = ShimRecorder(driver, words, process, 2)
    now = time.perf_counter_ns()
    watch.window(now, now + LONG_NS)
    connection = load_driver(driver).connect(path, 60_000)
    SlowFile.took_ns = 0
    stamps = act(connection, pipe)
    watch.end()
    connection.close()
    pipe.send(stamps)
    del slow


class SlowSyncs(apsw.VFS):
    """The default VFS with slower syncs, below the VFS that records times."""

    def __init__(self, more_s: float) -> None:
        self.more_s, self.below = more_s, apsw.vfs_names()[0]
        super().__init__("slow", self.below, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return SlowFile(self.below, self.more_s, name, flags)


class SlowFile(apsw.VFSFile):
    took_ns = 0
    """Total time of all syncs, in ns."""

    def __init__(self, below: str, more_s: float, name: Any, flags: list[int]) -> None:
        self._more_s = more_s
        super().__init__(below, name, flags)

    def xSync(self, flags: int) -> None:
        start_ns = time.perf_counter_ns()
        time.sleep(self._more_s)
        super().xSync(flags)
        SlowFile.took_ns += time.perf_counter_ns() - start_ns


def holds(connection: Connection, pipe: Any) -> Stamps:
    """Take the write lock, hold it for the seconds received, and return the times."""
    connection.rows("BEGIN IMMEDIATE")
    held_ns = time.perf_counter_ns()
    pipe.send("held")
    connection.rows("INSERT INTO t VALUES (1)")
    time.sleep(receive(pipe))
    freed_ns = time.perf_counter_ns()
    connection.rows("COMMIT")
    return {
        "held": held_ns,
        "freed": freed_ns,
        "ended": time.perf_counter_ns(),
        "synced_ns": SlowFile.took_ns,
    }


def hides_the_index(connection: Connection, pipe: Any) -> Stamps:
    """Hold the write lock and erase the WAL index's header, as in a recovery; restore both on a message.

    Source: https://www.sqlite.org/walformat.html#walidxfmt, two copies of a header of 48 bytes.
    """
    connection.rows("BEGIN IMMEDIATE")
    index = Path(f"{connection.rows('PRAGMA database_list')[0][2]}-shm")
    with index.open("r+b", buffering=0) as file:
        header = file.read(96)
        file.seek(0)
        file.write(bytes(96))
        pipe.send("held")
        receive(pipe)
        file.seek(0)
        file.write(header)
    connection.rows("ROLLBACK")
    return {}


def checkpoints(connection: Connection, pipe: Any) -> Stamps:
    """Write, then run a checkpoint that blocks other writers."""
    connection.rows("INSERT INTO t VALUES (1)")
    pipe.send("held")
    receive(pipe)
    start_ns = time.perf_counter_ns()
    connection.rows("PRAGMA wal_checkpoint(RESTART)")
    return {"begun": start_ns, "ended": time.perf_counter_ns()}


def meets_a_newer_snapshot(connection: Connection, pipe: Any) -> Stamps:
    """Read, write after others have written; then run a write without rows, and a real one."""
    connection.rows("BEGIN")
    connection.rows("SELECT count(*) FROM t")
    pipe.send("read")
    receive(pipe)
    with suppress(sqlite3.OperationalError):
        connection.rows("INSERT INTO t VALUES (1)")
    connection.rows("ROLLBACK")
    time.sleep(0.05)
    connection.rows("UPDATE t SET a = 2 WHERE a = 9")
    time.sleep(0.05)
    connection.rows("INSERT INTO t VALUES (3)")
    return {}


def opens(connection: Connection, pipe: Any) -> Stamps:
    """Read, which opens the WAL; send a message before and after."""
    pipe.send("ready")
    connection.rows("SELECT count(*) FROM t")
    pipe.send("read")
    return waits(connection, pipe)


def waits(connection: Connection, pipe: Any) -> Stamps:
    """Take the write lock on a message; return the times before and after."""
    connection.rows("SELECT count(*) FROM t")
    pipe.send("ready")
    receive(pipe)
    asked_ns = time.perf_counter_ns()
    connection.rows("BEGIN IMMEDIATE")
    had_ns = time.perf_counter_ns()
    connection.rows("ROLLBACK")
    return {"asked": asked_ns, "had": had_ns}


# The same for a worker, driven by either loop.


@contextmanager
def working(
    case: Case, words: Any, process: int, folder: Path, operations: int, slow_sync_s: float = 0.0
) -> Iterator[Any]:
    """Prepare the case's data and start its worker; yield our end of its pipe.

    It sends "ready", does `operations` operations on a message, and sends its stamps.
    """
    work = open_work(case, folder, SALT, {})
    work.prepare(lambda: None)
    with started(_work, case, words, process, folder, work.shared, operations, slow_sync_s) as pipe:
        assert receive(pipe) == "ready"
        work.release()
        yield pipe


def _work(
    pipe: Any,
    case: Case,
    words: Any,
    process: int,
    folder: Path,
    shared: tuple[Any, ...],
    operations: int,
    slow_sync_s: float,
) -> None:
    slow = SlowSyncs(slow_sync_s) if slow_sync_s else None
    place = open_place(case, folder)
    watch = place.watch((words, 2), process)
    assert watch
    source = experiment_of(case).worker_half()(case, place, 1, SALT, shared)
    pipe.send("ready")
    receive(pipe)
    SlowFile.took_ns = 0
    asked_ns = time.perf_counter_ns()
    window = Window(asked_ns, asked_ns, asked_ns + LONG_NS)
    watch.window(window.opens_ns, window.closes_ns)
    totals = work_through(source, window, operations, array("q", [0]), array("q", [0]))
    had_ns = time.perf_counter_ns()
    watch.end()
    pipe.send({"asked": asked_ns, "had": had_ns, "synced_ns": SlowFile.took_ns, "failed": totals.failed})
    source.close()
    del slow
