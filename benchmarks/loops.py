"""Run N worker processes of the C loop or of a bare Python loop, and count what they did."""

from __future__ import annotations

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

from benchmarks.database import preloaded
from sqlstress.statistics.series import jain

CHECKOUT = Path(__file__).parents[1]
PATIENCE_S = 60
"""How much longer than its window a worker may take."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is measured: one load at one concurrency."""

    read_ratio: float
    synchronous: str
    concurrency: int
    duration_s: float
    warmup_s: float
    key_space: int = 100_000


@dataclass(frozen=True, slots=True)
class Sample:
    """What one measurement gave."""

    tps: float
    jain: float | None
    cpu_ns: float | None = None
    """Processor time of an operation, all of the loop included; None where it was not measured."""


class LoopFailure(Exception):
    """A worker of the C loop or of a bare loop did not do its work."""


def python_worker(kind: str) -> list[str]:
    """Return the command of a worker of loop_worker.py."""
    return [sys.executable, "-m", "benchmarks.loop_worker", kind]


def run_loops(command: list[str], cell: Cell, folder: Path, seed: int) -> Sample:
    """Preload a fresh database below a folder, run the workers on it, and remove it. Raises LoopFailure."""
    with database(cell, folder) as path, Crew(command, cell, path, seed) as crew:
        return crew.sample()


@contextmanager
def database(cell: Cell, folder: Path) -> Iterator[Path]:
    """Preload a fresh database below a folder, and remove it afterwards."""
    with (
        TemporaryDirectory(dir=folder, prefix="loop-") as own,
        preloaded(Path(own) / "kv.db", cell.key_space) as path,
    ):
        yield path


class Done(NamedTuple):
    """What a worker did of one slice."""

    counted: int
    """Operations that were completed inside the window."""
    operations: int
    """All of them."""
    cpu_ns: int
    """The processor time that those took."""


class Crew:
    """Worker processes of a loop, which measure slice by slice. Raises LoopFailure."""

    def __init__(self, command: list[str], cell: Cell, path: Path, seed: int) -> None:
        self._command, self._cell, self._path = command, cell, path
        self._seeds = range(seed, seed + cell.concurrency)
        self._workers: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        try:
            self._workers += [self._started(seed) for seed in self._seeds]
            for worker in self._workers:
                if _line(worker) != "ready":
                    raise LoopFailure("a worker did not become ready: see its message above")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def slice(self) -> list[Done]:
        """Measure one window, and return what each worker did."""
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
        counts = [one.counted for one in done]
        cpu_ns = sum(one.cpu_ns for one in done) / max(1, sum(one.operations for one in done))
        return Sample(sum(counts) / self._cell.duration_s, jain(counts), cpu_ns)

    def _started(self, seed: int) -> subprocess.Popen[str]:
        cell = self._cell
        times = (round(cell.warmup_s * 1e9), round(cell.duration_s * 1e9))
        load = (self._path, cell.read_ratio, cell.key_space, cell.synchronous, *times, seed)
        return _start([*self._command, *map(str, load)])

    def _end(self) -> None:
        for worker in self._workers:
            _end(worker)


def _start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)


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


def _end(worker: subprocess.Popen[str]) -> None:
    worker.kill()
    worker.wait()
    for pipe in (worker.stdin, worker.stdout):
        if pipe:
            pipe.close()
