"""Load of other programs on the processors and the disk during a measurement.

The load on processors includes the time that other guests of the hypervisor took. Slow-downs by heat are
counted, too.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from sqlstress.machine.host import file_system_of
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S

COUNTS_ENDED_CHILDREN = sys.platform not in ("darwin", "win32")


class Family:
    """Meter of the processor time of a process and all its descendants.

    When a process has ended, Linux adds its time to the time of its parent. macOS and Windows do not, so the
    last reading of the ended process counts.
    """

    def __init__(self, pid: int | None = None, *, changing: bool = False) -> None:
        """`pid` is None for this process. If `changing`, each reading lists the descendants again.

        Raises psutil.NoSuchProcess.
        """
        self._head, self.changing = psutil.Process(pid), changing
        self._descendants: list[psutil.Process] | None = None
        self._last_readings: dict[psutil.Process, float] = {}
        """Last reading of each descendant, in seconds; empty if the system counts ended processes."""

    def spent_s(self) -> float | None:
        """Return the processor time of all processes since their start, in seconds; None if unreadable."""
        try:
            if self.changing or self._descendants is None:
                # Children come before their parents.
                self._descendants = self._head.children(recursive=True)[::-1]
            # Read children first: if a child ends between two readings, it is counted twice rather than
            # never.
            return sum(map(self._descendant_s, self._descendants)) + _processor_s(self._head)
        except (psutil.Error, OSError):
            return None

    def _descendant_s(self, process: psutil.Process) -> float:
        try:
            spent = _processor_s(process)
        except psutil.NoSuchProcess:  # The process has ended.
            return self._last_readings.get(process, 0.0)
        if not COUNTS_ENDED_CHILDREN:
            self._last_readings[process] = spent
        return spent


def _processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system


MIN_INTERVAL_S = 0.1
"""Minimum time between the first and last sample, in s: processor time is counted in steps of 0.01 s."""
MAX_SAMPLE_COST = 0.05
"""Maximum share of a processor, 0 to 1, for sampling. A sample takes about 60 µs per process of sqlstress."""
_PROCESSORS = Path("/sys/devices/system/cpu")
_NOT_BUSY = ("idle", "iowait", "steal", "guest", "guest_nice", "interrupt", "dpc")
"""Fields of `psutil.cpu_times` that `CpuSample.busy` omits.

During the first three, no program of this machine ran. The last four are parts of other fields.
"""


class CpuSample(NamedTuple):
    """Processor times since some fixed time, in seconds, added over all processors."""

    at_ns: int
    busy: float
    """Time in which any program of this machine ran."""
    own: float | None
    """Time in which the processes of sqlstress ran; None if unknown."""
    stolen: float
    """Time in which other guests of the hypervisor ran."""


class Shares(NamedTuple):
    """Shares of all processors' time that others took, each 0 to 1, and the number of slow-downs by heat."""

    foreign: float | None
    """Share of other programs; None if the processor time of sqlstress is unknown."""
    stolen: float
    """Share of other guests of the hypervisor; 0 if the system does not report it."""
    throttled: int | None = None
    """Number of times that heat slowed a processor down; None if unknown."""


def look(own: Family | None) -> CpuSample | None:
    """Return the processor times of the machine and of our processes; None if unreadable."""
    own_s = own.spent_s() if own else None
    if own and own_s is None:
        return None
    try:
        times = psutil.cpu_times()._asdict()
    except (psutil.Error, OSError):
        return None
    busy = sum(value for name, value in times.items() if name not in _NOT_BUSY)
    return CpuSample(time.perf_counter_ns(), busy, own_s, times.get("steal", 0.0))


def shares(first: CpuSample, last: CpuSample, processors: int) -> Shares:
    """Return the shares that other programs and other guests took between two samples."""
    total_s = processors * (last.at_ns - first.at_ns) / NS_PER_S

    def share(part: float) -> float:
        return min(1.0, max(0.0, part / total_s))

    stolen = share(last.stolen - first.stolen)
    if first.own is None or last.own is None:
        return Shares(None, stolen)
    return Shares(share((last.busy - first.busy) - (last.own - first.own)), stolen)


def throttled(folder: Path = _PROCESSORS) -> int | None:
    """Return the number of slow-downs by heat so far; None except for Linux on x86 (thermal_throttle)."""
    try:
        counts = [int(path.read_text()) for path in folder.glob("cpu*/thermal_throttle/*_throttle_count")]
    except (OSError, ValueError):
        return None
    return sum(counts) if counts else None


class CpuMonitor:
    """Sampler of processor times during the load, at intervals that grow with the length of the load."""

    def __init__(self, own: Family | None, begins_ns: int, ends_ns: int) -> None:
        """Take samples from `begins_ns` to `ends_ns`, two times of `perf_counter_ns`.

        `own` has the processes of sqlstress; None if their processor time cannot be known.
        """
        self._own = own
        self._throttled = throttled()
        self._begins, self._ends = begins_ns, ends_ns
        self._first: CpuSample | None = None
        self._last: CpuSample | None = None
        self._cost_ns = 0
        """Time that the last sample took, in ns."""

    def pulse(self) -> None:
        """Take a sample if it is due. Call it several times a second."""
        now = time.perf_counter_ns()
        if not self._begins <= now <= self._ends:
            return
        if self._first and self._last:
            interval_ns = max(
                MIN_INTERVAL_S / 2 * NS_PER_S,
                0.1 * (now - self._first.at_ns),
                self._cost_ns / MAX_SAMPLE_COST,
            )
            if now - self._last.at_ns < interval_ns:
                return
        sample = look(self._own)
        self._cost_ns = time.perf_counter_ns() - now
        if sample and sample.at_ns <= self._ends:
            self._first, self._last = self._first or sample, sample

    def shares(self) -> Shares | None:
        """Return the shares of other programs and guests; None if the samples span too short a time."""
        first, last = self._first, self._last
        if not first or not last or last.at_ns - first.at_ns < MIN_INTERVAL_S * NS_PER_S:
            return None
        result = shares(first, last, psutil.cpu_count() or 1)
        before, now = self._throttled, throttled()
        return result if before is None or now is None else result._replace(throttled=now - before)


MIN_SPAN_MS = 30
"""Minimum time that counts as the span of two disk samples, in ms: a write could fill a shorter span."""
_DEVICES = Path("/sys/dev/block")


def disk_of(folder: Path) -> str | None:
    """Return psutil's name of a folder's disk, or None if unknown.

    On systems other than Linux, the name is known only if the machine has a single disk.
    """
    if sys.platform != "linux":
        disks = [*_counters()]
        return disks[0] if len(disks) == 1 else None
    # On btrfs, for example, the device of the mount is a disk; the folder's own device is not.
    for path, number in ((folder, "st_dev"), (Path(file_system_of(folder).device), "st_rdev")):
        with suppress(OSError):
            device = getattr(path.stat(), number)
            return (_DEVICES / f"{os.major(device)}:{os.minor(device)}").readlink().name
    return None


def _counters() -> dict[str, Any]:
    try:
        return dict(psutil.disk_io_counters(perdisk=True) or {})
    except (psutil.Error, OSError, RuntimeError, NotImplementedError, ValueError):
        return {}


class DiskSample(NamedTuple):
    """Counters of a disk since some fixed time."""

    at_ns: int
    requests_ms: int
    """Sum of the durations of all requests, in ms."""
    busy_ms: int
    """Time in which the disk had at least one request, in ms; `requests_ms` if unknown."""


def disk_share(first: DiskSample, last: DiskSample) -> float:
    """Return the share of the time between two samples in which a disk was busy, 0 to 1.

    DiskSample has two counters. Overlapping requests or clock ticks may make one of them too large, so the
    smaller counter is used.
    """
    busy_ms = min(last.requests_ms - first.requests_ms, last.busy_ms - first.busy_ms)
    return min(1.0, max(0.0, busy_ms / max((last.at_ns - first.at_ns) / NS_PER_MS, MIN_SPAN_MS)))


class DiskMonitor:
    """Monitor of other programs' load on a disk, from its creation until `share` is called.

    Our processes must not use the disk in this time, because the system does not show which process made a
    request: `write_bytes` counts memory to be written later, and a file system also writes its journal.
    """

    def __init__(self, disk: str | None) -> None:
        """`disk` is psutil's name of the disk; None if it cannot be monitored."""
        self._disk = disk
        self._first = self._sample()

    def share(self) -> float | None:
        """Return the share of the time since creation in which the disk was busy, or None if unknown."""
        last = self._sample()
        return disk_share(self._first, last) if self._first and last else None

    def _sample(self) -> DiskSample | None:
        counters = _counters().get(self._disk) if self._disk else None
        if counters is None:
            return None
        requests_ms = counters.read_time + counters.write_time
        return DiskSample(time.perf_counter_ns(), requests_ms, getattr(counters, "busy_time", requests_ms))
