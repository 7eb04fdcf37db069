"""The CPU quota of a container: the cores that it allows, and how often it stopped processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sqlstress.report import Throttling
from sqlstress.statistics.units import NS_PER_S
from sqlstress.system.files import parse_mountinfo

_PROC = Path("/proc/self")


class ControlGroup(NamedTuple):
    """A control group (processes that Linux limits together) with a CPU quota."""

    folder: Path
    """Folder with the group's settings and counters."""
    cores: float
    """Number of cores that the group may use, such as 1.5."""


class Stat(NamedTuple):
    """Counters of a control group since its creation.

    Linux grants a quota of processor time for each period of, usually, 0.1 s.
    """

    periods: int
    """Number of periods in which a process of the group wanted to run."""
    throttled: int
    """Number of periods in which the group's processes were stopped by the quota."""
    stopped_s: float
    """Time for which processes were stopped, in seconds, added over all processors."""


def tightest_group(proc: Path = _PROC) -> ControlGroup | None:
    """Return the control group with the lowest quota of those that limit a process, or None.

    `proc` is the process's folder in /proc.
    """
    return min(_groups_with_quota(proc), key=lambda group: group.cores, default=None)


def _groups_with_quota(proc: Path) -> Iterator[ControlGroup]:
    """Yield the groups with a quota among the process's group and its ancestors, in cgroup 1 or 2."""
    try:
        memberships = (proc / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
        mounts = (proc / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    paths = {}
    for line in memberships:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers or "cpu" in controllers.split(","):
            paths["cgroup" if controllers else "cgroup2"] = path
    for fields in parse_mountinfo(mounts):
        end = fields.index("-") if "-" in fields else len(fields)
        words, kinds = fields[:end], fields[end + 1 :]
        if len(words) < 5 or len(kinds) < 3 or kinds[0] not in paths:
            continue
        if kinds[0] == "cgroup" and "cpu" not in kinds[2].split(","):
            continue
        root, mounted = words[3].rstrip("/"), Path(words[4])
        path = paths[kinds[0]]
        # In a container, the mounted tree may begin at the container's group: cut the path up to this group.
        inner = path[len(root) :] if f"{path}/".startswith(f"{root}/") else ""
        folder = mounted / inner.strip("/")
        for ancestor in (folder, *folder.parents):
            if ancestor.is_relative_to(mounted) and (cores := _quota(ancestor)) is not None:
                yield ControlGroup(ancestor, cores)


def _quota(folder: Path) -> float | None:
    try:
        if (unified := folder / "cpu.max").exists():
            quota, period = unified.read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        if quota == "max" or int(quota) <= 0 or int(period) <= 0:
            return None
        return int(quota) / int(period)
    except (OSError, ValueError):
        return None


def read_stat(group: ControlGroup) -> Stat | None:
    """Return a group's counters; None if they cannot be read."""
    try:
        lines = (group.folder / "cpu.stat").read_text().splitlines()
        counters = {name: int(value) for name, value in (line.split() for line in lines)}
        # cgroup 2 counts microseconds, cgroup 1 nanoseconds.
        is_new = "throttled_usec" in counters
        stopped_s = counters["throttled_usec"] / 1e6 if is_new else counters["throttled_time"] / NS_PER_S
        return Stat(counters["nr_periods"], counters["nr_throttled"], stopped_s)
    except (OSError, ValueError, KeyError):
        return None


def cpu_quota(proc: Path = _PROC) -> float | None:
    """Return the number of cores that a CPU quota allows this process, or None."""
    group = tightest_group(proc) if sys.platform == "linux" else None
    return group.cores if group else None


class QuotaMonitor:
    """Counter of the periods of a measurement in which the CPU quota stopped the processes."""

    def __init__(self, begins_ns: int, ends_ns: int, group: ControlGroup | None = None) -> None:
        """The measurement is from `begins_ns` to `ends_ns`, times of `perf_counter_ns`.

        By default, `group` is the group with the lowest quota.
        """
        self._begins, self._ends = begins_ns, ends_ns
        self._group = group or (tightest_group() if sys.platform == "linux" else None)
        self._first = self._last = read_stat(self._group) if self._group else None
        self._has_begun = self._has_ended = False

    def pulse(self) -> None:
        """Read the counters at begin and end of the measurement. Call it several times a second."""
        now = time.perf_counter_ns()
        if self._group is None or self._has_ended or now < self._begins:
            return
        if not self._has_begun:
            self._has_begun, self._first = True, read_stat(self._group)
        if now >= self._ends:
            self._has_ended, self._last = True, read_stat(self._group)

    def throttling(self) -> Throttling | None:
        """Return the effect of the quota on the measurement; None if unknown, or without a quota."""
        if self._group is None:
            return None
        first, last = self._first, self._last if self._has_ended else read_stat(self._group)
        if first is None or last is None:
            return None
        return Throttling(
            self._group.cores,
            last.periods - first.periods,
            last.throttled - first.throttled,
            round(last.stopped_s - first.stopped_s, 6),
        )
