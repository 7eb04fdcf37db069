"""What others take while we measure: of the processors (programs, other guests, heat) and of the disk."""

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

# This process and all that it has started: what they took of the processors.
#
# A process that has ended and was waited for counts with who waited for it, on systems that keep such an
# account. Neither macOS nor Windows does: there it counts as it was seen last.


KEEPS_ACCOUNT = sys.platform not in ("darwin", "win32")


class Family:
    """A process, and those that it, and they, have started."""

    def __init__(self, pid: int | None = None, *, changing: bool = False) -> None:
        """Without an id it is this process. Raises psutil.NoSuchProcess.

        `changing`: others are started all the time, which end soon; else they are those of the first look.
        """
        self._head, self.changing = psutil.Process(pid), changing
        self._others: list[psutil.Process] | None = None
        self._seen: dict[psutil.Process, float] = {}
        """What the others took, as they were seen last, where no account of them is kept."""

    def spent_s(self) -> float | None:
        """Return the processors' time that they took since they began, in seconds; None if not to be told."""
        try:
            if self.changing or self._others is None:
                # Each before who has started it.
                self._others = self._head.children(recursive=True)[::-1]
            # Who ends between two readings is counted twice rather than never.
            return sum(map(self._spent_by, self._others)) + _spent(self._head)
        except (psutil.Error, OSError):
            return None

    def _spent_by(self, process: psutil.Process) -> float:
        """Return what one has taken; 0 of one that has ended, where it counts with who waited for it."""
        try:
            spent = _spent(process)
        except psutil.NoSuchProcess:
            return self._seen.get(process, 0.0)
        if not KEEPS_ACCOUNT:
            self._seen[process] = spent
        return spent


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system


APART_S = 0.1
"""Looks that are nearer to each other say nothing: systems count processor time in hundredths."""
PRICE = 0.05
"""Looks take no larger share of a processor than this: each costs some 60 µs for each of our processes."""
_PROCESSORS = Path("/sys/devices/system/cpu")
_NOT_BUSY = ("idle", "iowait", "steal", "guest", "guest_nice", "interrupt", "dpc")
"""Times of no program of this machine, and times that are contained in others (the last four)."""


class Look(NamedTuple):
    """Seconds since any beginning, of all processors together."""

    at_ns: int
    busy: float
    """In which they ran anything of this machine."""
    own: float | None
    """In which they ran us; None where that can't be told."""
    stolen: float
    """In which a hypervisor ran something else."""


class Shares(NamedTuple):
    """Shares of all processors' time, each 0 to 1; and how often they were slowed down."""

    foreign: float | None
    """What other programs took; None where they can't be told from us."""
    stolen: float
    """What other guests of the hypervisor took, where the system says so; else 0."""
    throttled: int | None = None
    """How often a processor was slowed down since it was hot; None where the system does not say."""


def look(own: Family | None) -> Look | None:
    """Look at the processors' times, and at those of our processes; None when they can't be read.

    `own` is None where it can't be told what is ours.
    """
    ours = own.spent_s() if own else None
    if own and ours is None:
        return None
    try:
        known = psutil.cpu_times()._asdict()
    except (psutil.Error, OSError):
        return None
    busy = sum(value for name, value in known.items() if name not in _NOT_BUSY)
    return Look(time.perf_counter_ns(), busy, ours, known.get("steal", 0.0))


def shares(first: Look, last: Look, processors: int) -> Shares:
    """Return what others took between two looks."""
    whole = processors * (last.at_ns - first.at_ns) / NS_PER_S

    def share(part: float) -> float:
        return min(1.0, max(0.0, part / whole))

    stolen = share(last.stolen - first.stolen)
    if first.own is None or last.own is None:
        return Shares(None, stolen)
    return Shares(share((last.busy - first.busy) - (last.own - first.own)), stolen)


def throttled(folder: Path = _PROCESSORS) -> int | None:
    """Return how often processors were slowed down for heat since the system's start; None if not known.

    Source: the Linux kernel's thermal_throttle of x86.
    """
    try:
        counts = [int(path.read_text()) for path in folder.glob("cpu*/thermal_throttle/*_throttle_count")]
    except (OSError, ValueError):
        return None
    return sum(counts) if counts else None


class Watch:
    """Looks from time to time while our processes work, more rarely the longer it takes."""

    def __init__(self, own: Family | None, begins_ns: int, ends_ns: int) -> None:
        """Of looks outside of the two times, on the shared clock, nothing is learned.

        `own` is None where it can't be told what is ours.
        """
        self._own = own
        self._throttled = throttled()
        self._begins, self._ends = begins_ns, ends_ns
        self._first: Look | None = None
        self._last: Look | None = None
        self._cost_ns = 0
        """What the last look took."""

    def pulse(self) -> None:
        """Look, if it is time: to be called several times a second."""
        now = time.perf_counter_ns()
        if not self._begins <= now <= self._ends:
            return
        if self._first and self._last:
            apart = max(APART_S / 2 * NS_PER_S, 0.1 * (now - self._first.at_ns), self._cost_ns / PRICE)
            if now - self._last.at_ns < apart:
                return
        seen = look(self._own)
        self._cost_ns = time.perf_counter_ns() - now
        if seen and seen.at_ns <= self._ends:
            self._first, self._last = self._first or seen, seen

    def shares(self) -> Shares | None:
        """Return what others took; None when that could not be seen, or not for long enough."""
        if not self._first or not self._last or self._last.at_ns - self._first.at_ns < APART_S * NS_PER_S:
            return None
        found = shares(self._first, self._last, psutil.cpu_count() or 1)
        before, now = self._throttled, throttled()
        return found if before is None or now is None else found._replace(throttled=now - before)


# How busy the disk is with what others ask of it: seen while our processes start, and ask nothing of it.
#
# Not in the window: there nothing says which of its requests are ours. What Linux tells of a process
# (write_bytes) is what it made dirty, with large folios up to 256 times what it wrote; and for each of our
# bytes a file system writes up to three to its own journal.


LEAST_MS = 30
"""Less time counts as this much: a single write of the system itself would fill it."""
_DEVICES = Path("/sys/dev/block")


def disk_of(folder: Path) -> str | None:
    """Return what psutil calls the disk that holds a folder; None where that is not known.

    Elsewhere than on Linux it is known where there is one disk only.
    """
    if sys.platform != "linux":
        disks = [*_counters()]
        return disks[0] if len(disks) == 1 else None
    # Of some file systems, such as btrfs, the number is none of a device: then it is what was mounted.
    for path, number in ((folder, "st_dev"), (Path(file_system_of(folder).device), "st_rdev")):
        with suppress(OSError):
            device = getattr(path.stat(), number)
            return (_DEVICES / f"{os.major(device)}:{os.minor(device)}").readlink().name
    return None


def _counters() -> dict[str, Any]:
    """Return what psutil tells of each disk; nothing where it can't."""
    try:
        return dict(psutil.disk_io_counters(perdisk=True) or {})
    except (psutil.Error, OSError, RuntimeError, NotImplementedError, ValueError):
        return {}


class DiskLook(NamedTuple):
    """What a disk did since any beginning."""

    at_ns: int
    requests_ms: int
    """The time that all its requests took together."""
    busy_ms: int
    """In which it had any request; the same where the system does not say."""


def disk_share(first: DiskLook, last: DiskLook) -> float:
    """Return the share of the time between two looks in which a disk was busy, 0 to 1.

    Requests may lie beside each other, and the system counts busy time in ticks: the smaller one counts.
    """
    busy_ms = min(last.requests_ms - first.requests_ms, last.busy_ms - first.busy_ms)
    return min(1.0, max(0.0, busy_ms / max((last.at_ns - first.at_ns) / NS_PER_MS, LEAST_MS)))


class DiskWatch:
    """Looks at a disk from when it is made until it is asked: nothing of ours may use it meanwhile."""

    def __init__(self, disk: str | None) -> None:
        """`disk` is what psutil calls it; None where there is nothing to be seen."""
        self._disk = disk
        self._first = self._look()

    def share(self) -> float | None:
        """Return which share of the time others kept it busy; None when that could not be seen."""
        last = self._look()
        return disk_share(self._first, last) if self._first and last else None

    def _look(self) -> DiskLook | None:
        found = _counters().get(self._disk) if self._disk else None
        if found is None:
            return None
        requests_ms = found.read_time + found.write_time
        return DiskLook(time.perf_counter_ns(), requests_ms, getattr(found, "busy_time", requests_ms))
