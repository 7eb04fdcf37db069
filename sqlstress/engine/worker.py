"""A worker process: start, connect when called, wait for the common start, run the load, report.

A companion is an additional process of a trial, such as a reader, whose operations are not counted. Workers
and companions import as little as possible. They open database files only through SQLite: closing a file
would drop the process's POSIX locks on it.
"""

from __future__ import annotations

import gc
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sqlstress.engine.loop import Totals, Window, timed_loop, work_through
from sqlstress.engine.protocols import Companion, Findings, SelfDriven, Source
from sqlstress.errors import plainly
from sqlstress.system.child import Pipe, init_child, send
from sqlstress.targets import open_place, target_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlstress.report.case import Case
    from sqlstress.statistics.series import Series

SLOT_WORDS = 8
"""Number of 64-bit words per process in `Job.counters`: no two processes share a 64-byte cache line."""
STOP, DISMISSED = 0, 1
"""Indices of flags in `Job.counters`: STOP stops all processes, DISMISSED stops the companions."""
POLL_NS = 2_000_000 if sys.platform == "win32" else 200_000
"""Time before the common start, in ns, at which a worker stops sleeping and polls the clock."""

READY_CALL = "are you there?"
"""Message that a process answers with Ready. The parent sends the first when the data is prepared."""


class Job(NamedTuple):
    """Instructions for a worker, or for a companion (an additional process), at its start."""

    half: Any
    """Function or class that creates the process's part: a Source, SelfDriven or Companion."""
    case: Case
    """The case, as a namespace from `pool.to_namespace`."""
    limit: int | None
    """Number of operations to do; None if only the end of the window is the limit."""
    where: Path
    """Folder with the trial's data."""
    number: int
    """Number of the process: 1 to `concurrency` for workers, more for companions."""
    salt: int
    counters: Any
    """Shared 64-bit words: SLOT_WORDS for the parent's flags, then SLOT_WORDS for each worker's progress."""
    shared: tuple[Any, ...]
    """The experiment's shared arrays."""
    trace: Any = None
    """Shared memory in which the option `--where` records times; None if it is off."""
    pauses: Sequence[int] | None = None
    """Pauses to make inside SQLite, for `Place.pause`, which provoke races; None means no pauses."""
    stays: bool = False
    """Whether the worker, after this job, waits for a further job with the same shared arrays."""

    def unshared(self) -> Job:
        """Return the job without its shared arrays, which only a starting process can receive."""
        return self._replace(counters=None, shared=(), trace=None)


class Ready(NamedTuple):
    """Answer to READY_CALL. `stamp_ns` is the time of `perf_counter_ns` in the process, in ns."""

    stamp_ns: int


class Done(NamedTuple):
    """Last message from a worker: the results of its operations."""

    totals: Totals
    findings: Findings


class Observed(NamedTuple):
    """Last message from a companion (an additional process): its recorded values."""

    series: list[Series]


class FailedWork(NamedTuple):
    """Message from a process that cannot go on. `reason` describes its error."""

    reason: str


def main(job: Job, pipe: Pipe) -> None:
    """Run a worker process: do one job, and further jobs as long as `Job.stays` is true."""
    # No garbage collection: a worker creates few cycles, and pauses must not be measured.
    gc.disable()
    gc.freeze()
    with report_failures(pipe, job.case.driver):
        init_child()
        _run_job(job, pipe)
        while job.stays:
            gc.collect()  # Removes the objects of the last job.
            job = pipe.recv()._replace(counters=job.counters, shared=job.shared)
            reset_peak_memory()
            _run_job(job, pipe)


def _run_job(job: Job, pipe: Pipe) -> None:
    pipe.recv()  # Wait for the parent's first message: the data may not exist before it.
    place = open_place(job.case, job.where)
    watch = place.watch(job.trace, job.number) if job.trace else None
    if job.pauses:
        place.pause(job.pauses)
    source: Source | SelfDriven = job.half(job.case, place, job.number, job.salt, job.shared)
    seal = place.seal()
    window = await_window(pipe)
    if watch:
        watch.window(window.opens_ns, window.closes_ns)
    totals = _run_loop(job, source, window)
    if watch:
        watch.end()
    totals.peak_memory_bytes = peak_memory_bytes()
    findings = source.findings()
    if seal and not findings.reconnected:
        # Check before closing: SQLite deletes the WAL when our last connection is closed.
        findings.broken_seal = seal.broken()
    source.close()
    send(pipe, Done(totals, findings))


def run_companion(job: Job, pipe: Pipe) -> None:
    """Run a companion (an additional process) from its start to its last message."""
    words = memoryview(job.counters).cast("B").cast("q")
    with report_failures(pipe, job.case.driver):
        init_child()
        pipe.recv()  # Wait for the parent's first message: the data may not exist before it.
        place = open_place(job.case, job.where)
        watch = place.watch(job.trace, job.number) if job.trace else None
        companion: Companion = job.half(job.case, place, job.shared)
        window = await_window(pipe)
        if watch:
            watch.window(window.opens_ns, window.closes_ns)
        wait_until(window.starts_ns)
        series = companion.run(window, lambda: bool(words[STOP] or words[DISMISSED]))
        if watch:
            watch.end()
        companion.close()
        send(pipe, Observed(series))


@contextmanager
def report_failures(pipe: Pipe, driver: str) -> Iterator[None]:
    """Report an error in the block to the parent, and close the pipe at the end."""
    try:
        yield
    except (EOFError, ConnectionError):
        return  # The parent has given up the trial.
    except SystemExit:
        raise  # The exit code is enough for the parent.
    except BaseException as error:  # BaseException, because a panic in a Rust extension is not an Exception.
        reason = target_of(driver).explain(driver, error) if isinstance(error, Exception) else plainly(error)
        with suppress(OSError):  # The parent may have ended.
            send(pipe, FailedWork(reason))
    finally:
        pipe.close()


def await_window(pipe: Pipe) -> Window:
    """Answer each READY_CALL of the parent; return the window, which the parent sends last."""
    while True:
        send(pipe, Ready(time.perf_counter_ns()))
        if (message := pipe.recv()) != READY_CALL:
            return cast(Window, message)


def _run_loop(job: Job, source: Source | SelfDriven, window: Window) -> Totals:
    words = memoryview(job.counters).cast("B").cast("q")
    first = job.number * SLOT_WORDS
    progress, stop = words[first : first + SLOT_WORDS], words[:SLOT_WORDS]
    wait_until(window.starts_ns)
    # A source with the method `hear` needs the window before its first operation.
    if hasattr(source, "hear"):
        source.hear(window)
    if not job.case.arrivals:
        return work_through(source, window, job.limit, progress, stop)
    # Imported here, because a worker of a closed loop does not need the module.
    from sqlstress.engine.open_loop import open_loop

    assert not isinstance(source, SelfDriven)  # A SelfDriven source cannot wait for due times.
    run, began_ns = open_loop(job.case, job.number, job.salt, window), time.perf_counter_ns()
    totals = timed_loop(source, window, job.limit, progress, stop, run)
    # `first_ns` shows whether the worker was late. It was not, even if no operation was due at the start.
    totals.first_ns = began_ns
    run.finish(totals, time.perf_counter_ns())
    return totals


def wait_until(start_ns: int) -> None:
    """Sleep until shortly before `start_ns`, and poll the clock until `start_ns`."""
    left = start_ns - time.perf_counter_ns()
    if left > POLL_NS:
        time.sleep((left - POLL_NS) / 1e9)
    while time.perf_counter_ns() < start_ns:
        pass


def reset_peak_memory() -> None:
    """Reset the process's peak of the resident memory, on Linux only."""
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_memory_bytes() -> int | None:
    """Return the process's peak resident memory, in bytes; None if unknown, as on Windows."""
    if sys.platform == "win32":
        return None
    if sys.platform == "linux":
        # ru_maxrss includes the memory of the parent that spawned this process, so it cannot be used.
        with suppress(OSError):  # The user's code may have used all descriptors of the process.
            status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
            for line in status.splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
