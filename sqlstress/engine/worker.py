"""A worker process: start, connect when called, wait for the common start, run the timed loop, report.

A companion starts and ends like a worker, and counts in no figure. Both import as little as possible, and
open database files only through SQLite (closing a file would drop the process's POSIX locks on it).
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
"""Words per slot: 64 bytes, so that no two workers' counters share a cache line. Slot 0 is the parent's."""
STOP, DISMISSED = 0, 1
"""Indices of words in the parent's slot. STOP stops all processes.

DISMISSED means that the workers are done, so companions may end.
"""
POLL_NS = 2_000_000 if sys.platform == "win32" else 200_000
"""Length of time before the common start in which a worker polls the clock, because sleep is inexact.

It is short because polling workers take the processors from each other. Sleep is less exact on Windows.
"""


READY_CALL = "are you there?"
"""Message that a process answers with Ready. The first such message means that the data exists."""


class Job(NamedTuple):
    """Instructions for a worker or a companion at its start."""

    half: Any
    """Function or class that opens the worker's half. Unpickling the job imports its module."""
    case: Case
    """Case as `pool.plain` returns it."""
    limit: int | None
    """Number of operations to do; None if the window is the limit."""
    where: Path
    """Folder of the data, from which the process opens its place."""
    number: int
    """Number of the process: 1 to the concurrency; companions have higher numbers."""
    salt: int
    counters: Any
    """Shared words: SLOT_WORDS for the parent, then SLOT_WORDS for each worker."""
    shared: tuple[Any, ...]
    """The experiment's shared arrays."""
    trace: Any = None
    """Shared memory of the `--where` recording; None if it is off."""
    pauses: Sequence[int] | None = None
    """Schedule of pauses inside the database's code, as `Place.pause` takes it; None without pauses."""
    stays: bool = False
    """Whether the process waits for another job after this one, with the same shared arrays."""

    def unshared(self) -> Job:
        """Return the job without the shared arrays, which can be sent only to a starting process."""
        return self._replace(counters=None, shared=(), trace=None)


class Ready(NamedTuple):
    """Message: the process is connected."""

    stamp_ns: int


class Done(NamedTuple):
    """Message: the worker has finished."""

    totals: Totals
    findings: Findings


class Observed(NamedTuple):
    """Message: the companion has finished."""

    series: list[Series]


class FailedWork(NamedTuple):
    """Message: the process cannot go on."""

    reason: str


def main(job: Job, pipe: Pipe) -> None:
    """Run a worker process."""
    gc.disable()  # for good: a worker makes few cycles, and pauses for collection must not be measured
    gc.freeze()
    with report_failures(pipe, job.case.driver):
        init_child()
        _run_job(job, pipe)
        while job.stays:
            gc.collect()  # objects of the last job
            job = pipe.recv()._replace(counters=job.counters, shared=job.shared)
            reset_peak_memory()
            _run_job(job, pipe)


def _run_job(job: Job, pipe: Pipe) -> None:
    """Do the work of one trial, then close all connections."""
    pipe.recv()  # the first call; before it the data may not exist yet
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
        # Check before closing: until then no process has a reason to remove a file.
        findings.broken_seal = seal.broken()
    source.close()
    send(pipe, Done(totals, findings))


def run_companion(job: Job, pipe: Pipe) -> None:
    """Run a companion's process."""
    words = memoryview(job.counters).cast("B").cast("q")
    with report_failures(pipe, job.case.driver):
        init_child()
        pipe.recv()  # the first call; before it the data may not exist yet
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
    """Report to the parent why the process could not go on; close the pipe."""
    try:
        yield
    except (EOFError, ConnectionError):
        return  # the parent has given the trial up
    except SystemExit:
        raise  # its exit code reports it
    except BaseException as error:  # a panic in a Rust extension is not an Exception
        reason = target_of(driver).explain(driver, error) if isinstance(error, Exception) else plainly(error)
        with suppress(OSError):  # the parent may have ended
            send(pipe, FailedWork(reason))
    finally:
        pipe.close()


def await_window(pipe: Pipe) -> Window:
    """Answer the first call and all further calls; return the window that follows."""
    while True:
        send(pipe, Ready(time.perf_counter_ns()))
        if (message := pipe.recv()) != READY_CALL:
            return cast(Window, message)


def _run_loop(job: Job, source: Source | SelfDriven, window: Window) -> Totals:
    words = memoryview(job.counters).cast("B").cast("q")
    first = job.number * SLOT_WORDS
    progress, stop = words[first : first + SLOT_WORDS], words[:SLOT_WORDS]
    wait_until(window.starts_ns)
    # A source that also takes times needs the window before its first operation.
    if hasattr(source, "hear"):
        source.hear(window)
    if not job.case.arrivals:
        return work_through(source, window, job.limit, progress, stop)
    # Imported here, because a worker of a closed loop does not need it.
    from sqlstress.engine.open_loop import open_loop

    assert not isinstance(source, SelfDriven)  # its loop cannot wait for due times
    run, began_ns = open_loop(job.case, job.number, job.salt, window), time.perf_counter_ns()
    totals = timed_loop(source, window, job.limit, progress, stop, run)
    # A late due time of the first operation does not mean that the worker was late.
    totals.first_ns = began_ns
    run.finish(totals, time.perf_counter_ns())
    return totals


def wait_until(start_ns: int) -> None:
    """Sleep until shortly before the common start, then poll the clock."""
    left = start_ns - time.perf_counter_ns()
    if left > POLL_NS:
        time.sleep((left - POLL_NS) / 1e9)
    while time.perf_counter_ns() < start_ns:
        pass


def reset_peak_memory() -> None:
    """Reset the peak of the resident memory, if the system can (Linux)."""
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_memory_bytes() -> int | None:
    """Return the process's peak resident memory; None on Windows."""
    if sys.platform == "win32":
        return None
    if sys.platform == "linux":
        # ru_maxrss begins with the memory of the parent that spawned us, so it can't be used here.
        # UTF-8, because Python has loaded it already: another codec would add to the memory.
        for line in Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
