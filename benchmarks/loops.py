"""Run N worker processes of the C loop or of a bare Python loop on one database; count their operations."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import NamedTuple, Self

from benchmarks.document import CHECKOUT
from benchmarks.loop_worker import SALT
from sqlstress.engine.values import Values
from sqlstress.statistics.series import jain

PATIENCE_S = 60
"""Time that a worker may take beyond its window, in seconds."""
WAL_FRAMES = 1_000


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: one load at one concurrency."""

    read_ratio: float
    synchronous: str
    concurrency: int
    duration_s: float
    warmup_s: float
    key_space: int = 100_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Result of one measurement."""

    tps: float
    jain: float
    cpu_ns: float
    """Processor time of an operation including the loop, in ns."""


class LoopFailure(Exception):
    """A worker of the C loop or of a bare loop did not do its work."""


def python_worker(kind: str) -> list[str]:
    """Return the command of a worker of loop_worker.py."""
    return [sys.executable, "-m", "benchmarks.loop_worker", kind]


@contextmanager
def database(folder: Path, key_space: int) -> Iterator[Path]:
    """Create a database with the keys 0 to key_space - 1, in the state in which sqlstress measures.

    Its WAL has its working size. A connection stays open, because closing the last connection would delete
    the WAL, whose first fill costs more than every later fill.
    """
    with TemporaryDirectory(dir=folder, prefix="loop-") as own:
        path = Path(own) / "kv.db"
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=wal")
            connection.execute("PRAGMA synchronous=off")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.execute("CREATE TABLE kv (key INTEGER PRIMARY KEY, value INTEGER) WITHOUT ROWID")
            connection.execute("BEGIN")
            value = Values(SALT, 8).base(0)
            rows = ((key, value + key) for key in range(key_space))
            connection.executemany("INSERT INTO kv VALUES (?, ?)", rows)
            connection.execute("COMMIT")
            (page_size,) = connection.execute("PRAGMA page_size").fetchone()
            draw, value = random.Random(0).randrange, value + key_space
            # The WAL has a header of 32 bytes, and 24 bytes for each frame.
            while path.with_name("kv.db-wal").stat().st_size < 32 + WAL_FRAMES * (page_size + 24):
                value += 1
                connection.execute("REPLACE INTO kv VALUES (?, ?)", (draw(key_space), value))
            # Syncs what was written, so that the first checkpoint inside the window does not have to.
            connection.execute("PRAGMA synchronous=full")
            connection.execute("PRAGMA wal_checkpoint(RESTART)")
            yield path
        finally:
            connection.close()


class Done(NamedTuple):
    """A worker's counts of one slice."""

    counted: int
    """Operations that were completed inside the window."""
    operations: int
    """All operations of the slice."""
    cpu_ns: int
    """Processor time of all operations, in ns."""


class Crew:
    """Worker processes of a loop, which measure slice by slice. Raises LoopFailure."""

    def __init__(self, command: list[str], cell: Cell, path: Path, seed: int) -> None:
        self._command, self._cell, self._path = command, cell, path
        self._seeds = range(seed, seed + cell.concurrency)
        self._workers: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        cell, times = self._cell, [round(1e9 * s) for s in (self._cell.warmup_s, self._cell.duration_s)]
        try:
            for seed in self._seeds:
                load = (self._path, cell.read_ratio, cell.key_space, cell.synchronous, *times, seed)
                self._workers.append(
                    subprocess.Popen(
                        [*self._command, *map(str, load)],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        text=True,
                        cwd=CHECKOUT,
                    )
                )
            if any(_line(worker) != "ready" for worker in self._workers):
                raise LoopFailure("a worker did not become ready: see its message above")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe:
                    pipe.close()

    def slice(self) -> list[Done]:
        """Measure one window; return the counts of each worker."""
        t0 = time.perf_counter_ns() + 30_000_000 + 5_000_000 * len(self._workers)
        for worker in self._workers:
            assert worker.stdin is not None
            with suppress(OSError):  # it has ended: its missing answer says so
                worker.stdin.write(f"{t0}\n")
                worker.stdin.flush()
        time.sleep(self._cell.warmup_s + self._cell.duration_s)
        return [_done(worker) for worker in self._workers]

    def sample(self) -> Sample:
        """Measure one window."""
        done = self.slice()
        counts = [worker.counted for worker in done]
        cpu_ns = sum(worker.cpu_ns for worker in done) / max(1, sum(worker.operations for worker in done))
        return Sample(sum(counts) / self._cell.duration_s, jain(counts) or 0.0, cpu_ns)


def _done(worker: subprocess.Popen[str]) -> Done:
    words = _line(worker).split()
    if len(words) != len(Done._fields) or not all(map(str.isdigit, words)):
        raise LoopFailure("a worker ended without a count: see its message above")
    return Done(*map(int, words))


def _line(worker: subprocess.Popen[str]) -> str:
    """Return a worker's next line; empty when it ended or took too long (pipes have no time-out)."""
    assert worker.stdout is not None
    lines: Queue[str] = Queue()
    Thread(target=lambda read: lines.put(read()), args=(worker.stdout.readline,), daemon=True).start()
    with suppress(Empty):
        return lines.get(timeout=PATIENCE_S).strip()
    return ""
