"""Run N worker processes of the C loop or of a bare Python loop, and count what they did."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread

from benchmarks.database import preloaded
from sqlstress.statistics.shares import jain

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


class LoopFailure(Exception):
    """A worker of the C loop or of a bare loop did not do its work."""


def python_worker(kind: str) -> list[str]:
    """Return the command of a worker of loop_worker.py."""
    return [sys.executable, "-m", "benchmarks.loop_worker", kind]


def run_loops(command: list[str], cell: Cell, folder: Path, seed: int) -> Sample:
    """Preload a fresh database below a folder, run the workers on it, and remove it. Raises LoopFailure."""
    with (
        TemporaryDirectory(dir=folder, prefix="loop-") as own,
        preloaded(Path(own) / "kv.db", cell.key_space) as path,
    ):
        counts = run_workers(command, cell, path, seed)
    return Sample(sum(counts) / cell.duration_s, jain(counts))


def _arguments(cell: Cell, path: Path, seed: int) -> list[str]:
    times = (round(cell.warmup_s * 1e9), round(cell.duration_s * 1e9))
    return [str(word) for word in (path, cell.read_ratio, cell.key_space, cell.synchronous, *times, seed)]


def run_workers(command: list[str], cell: Cell, path: Path, seed: int) -> list[int]:
    """Run the workers on a preloaded database and return what each completed. Raises LoopFailure."""
    seeds = range(seed, seed + cell.concurrency)
    workers = [_start([*command, *_arguments(cell, path, own_seed)]) for own_seed in seeds]
    try:
        for worker in workers:
            if _line(worker) != "ready":
                raise LoopFailure("a worker did not become ready: see its message above")
        t0 = time.perf_counter_ns() + 50_000_000 + 5_000_000 * len(workers)
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(f"{t0}\n")
            worker.stdin.flush()
        time.sleep(cell.warmup_s + cell.duration_s)
        return [_count(worker) for worker in workers]
    finally:
        for worker in workers:
            _end(worker)


def _start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)


def _count(worker: subprocess.Popen[str]) -> int:
    text = _line(worker)
    if not text.isdigit():
        raise LoopFailure("a worker ended without a count: see its message above")
    return int(text)


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
