"""A worker process: start, connect when called, wait for the common start, run the timed loop, report.

A companion is started and ended like a worker, and counts in no figure. Either imports the least it can, and
never opens a database file but through SQLite (closing a file would drop the process's POSIX locks on it).
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
from sqlstress.system.child import Pipe, begin_child, send
from sqlstress.targets import open_place, target_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlstress.report.case import Case
    from sqlstress.statistics.series import Series

SLOT_WORDS = 8
"""64 bytes for each worker's counter, so that no two share a cache line; slot 0 is the parent's."""
STOP, DISMISSED = 0, 1
"""The words of the parent's slot: nobody is to go on; the workers are done, so their companions may end."""
POLL_NS = 2_000_000 if sys.platform == "win32" else 200_000
"""How long before the common start a worker polls the clock, since it can't sleep to the point: not for
long, because many workers take the processors from each other meanwhile. Windows sleeps less exactly."""


CALL = "are you there?"
"""The first one says that there is something to connect to. Each is answered at once by who is connected."""


class Job(NamedTuple):
    """What a worker, or a companion, is told when it is started."""

    half: Any
    """Function or class that opens its half; a worker imports its module when it reads the job."""
    case: Case
    """As `plain.plain` makes it."""
    limit: int | None
    """A number of operations, instead of a window."""
    where: Path
    """Where the data lies: what the process makes its place of."""
    number: int
    """1 to the concurrency; a companion's is higher."""
    salt: int
    counters: Any
    """Shared words: SLOT_WORDS for the parent, then as many for each worker."""
    shared: tuple[Any, ...]
    """The workload's shared arrays."""
    trace: Any = None
    """What it tells in where its time goes; None: nobody asks."""
    pauses: Sequence[int] | None = None
    """The schedule by which it pauses inside the store, as its place understands it; None: it does not."""
    stays: bool = False
    """Whether it is told a further job when it has done this one, with the same shared arrays."""

    def unshared(self) -> Job:
        """Return it without what only a process that is being started can be given."""
        return self._replace(counters=None, shared=(), trace=None)


class Ready(NamedTuple):
    """The worker is connected."""

    stamp_ns: int


class Done(NamedTuple):
    """The worker has finished."""

    totals: Totals
    findings: Findings


class Observed(NamedTuple):
    """The companion has finished."""

    series: list[Series]


class Failed(NamedTuple):
    """The process met something that it can't go on after."""

    reason: str


def main(job: Job, pipe: Pipe) -> None:
    """Run a worker process."""
    gc.disable()  # for good: a worker makes few cycles, and no pauses of its own are to be measured
    gc.freeze()
    with failures_reported(pipe, job.case.driver):
        begin_child()
        _do(job, pipe)
        while job.stays:
            gc.collect()  # what is left of the last job
            job = pipe.recv()._replace(counters=job.counters, shared=job.shared)
            forget_peak_memory()
            _do(job, pipe)


def _do(job: Job, pipe: Pipe) -> None:
    """Work through one trial, and leave nothing connected."""
    pipe.recv()  # the first call: until then the parent makes what is connected to
    place = open_place(job.case, job.where)
    watch = place.watch(job.trace, job.number) if job.trace else None
    if job.pauses:
        place.pause(job.pauses)
    source: Source | SelfDriven = job.half(job.case, place, job.number, job.salt, job.shared)
    seal = place.seal()
    window = await_window(pipe)
    if watch:
        watch.window(window.opens_ns, window.closes_ns)
    totals = _work(job, source, window)
    if watch:
        watch.end()
    totals.peak_memory_bytes = peak_memory_bytes()
    findings = source.findings()
    if seal and not findings.reconnected:
        # Before it closes: until then nobody has a reason to remove a file.
        findings.broken_seal = seal.broken()
    source.close()
    send(pipe, Done(totals, findings))


def accompany(job: Job, pipe: Pipe) -> None:
    """Run a companion's process."""
    words = memoryview(job.counters).cast("B").cast("q")
    with failures_reported(pipe, job.case.driver):
        begin_child()
        pipe.recv()  # the first call: until then the parent makes what is connected to
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
def failures_reported(pipe: Pipe, driver: str) -> Iterator[None]:
    """Let a process tell its parent why it could not go on, and close the pipe."""
    try:
        yield
    except (EOFError, ConnectionError):
        return  # the parent has given the trial up
    except SystemExit:
        raise  # told of by its code
    except BaseException as error:  # a panic of an extension in Rust is no Exception
        known = target_of(driver).explain(driver, error) if isinstance(error, Exception) else plainly(error)
        with suppress(OSError):  # if there is still somebody to be told
            send(pipe, Failed(known))
    finally:
        pipe.close()


def await_window(pipe: Pipe) -> Window:
    """Answer the first call, and each further one; return the window."""
    while True:
        send(pipe, Ready(time.perf_counter_ns()))
        if (told := pipe.recv()) != CALL:
            return cast(Window, told)


def _work(job: Job, source: Source | SelfDriven, window: Window) -> Totals:
    words = memoryview(job.counters).cast("B").cast("q")
    first = job.number * SLOT_WORDS
    progress, stop = words[first : first + SLOT_WORDS], words[:SLOT_WORDS]
    wait_until(window.starts_ns)
    # One that times something itself must know what is counted, before its first operation.
    if hasattr(source, "hear"):
        source.hear(window)
    if not job.case.arrivals:
        return work_through(source, window, job.limit, progress, stop)
    # A worker of a closed loop need not wait for what it imports.
    from sqlstress.engine.open_loop import open_loop

    assert not isinstance(source, SelfDriven)  # its loop knows no pause
    run, began_ns = open_loop(job.case, job.number, job.salt, window), time.perf_counter_ns()
    totals = timed_loop(source, window, job.limit, progress, stop, run)
    # That the first operation was due late does not mean that the worker was.
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


def forget_peak_memory() -> None:
    """Let the peak be that of what comes, where the system can (Linux)."""
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_memory_bytes() -> int | None:
    """Return the process's peak resident memory; None on Windows."""
    if sys.platform == "win32":
        return None
    if sys.platform == "linux":
        # ru_maxrss begins with the memory of the parent that spawned us, so it can't be used here.
        # In UTF-8, which Python has at hand: what a worker imports for itself is memory of its own.
        for line in Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
