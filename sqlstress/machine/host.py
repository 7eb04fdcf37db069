"""The machine and the Python that run."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath, PureWindowsPath
from statistics import median
from typing import NamedTuple

import psutil

from sqlstress.machine.quota import cpu_quota
from sqlstress.report import FileSystem, Host

SLEEPS = 9
_CPUINFO = Path("/proc/cpuinfo")
# x86 has the first, MIPS the second, POWER the third; small ARM boards name only the board.
_MODEL_KEYS = ("model name", "cpu model", "cpu", "model", "hardware")
_SYSCTL = ("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string")
_SYSCTL_TIMEOUT_S = 2.0


def describe() -> Host:
    """Describe this machine; sleeps nine times 1 ms."""
    system = platform.system()
    return Host(
        system=system,
        release=platform.release(),
        machine=platform.machine(),
        processor=processor(system),
        cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        sleep_1ms_ns=median_sleep_ns(sleep_1ms),
        cpu_quota=cpu_quota(),
    )


def usable_cores() -> int:
    """Return the number of logical processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def sleep_1ms() -> None:
    """Sleep for 1 ms in the way in which SQLite's busy handler does.

    Python sleeps on a high-resolution timer on Windows; SQLite calls Sleep(), which is rounded to ticks.
    """
    if sys.platform == "win32":
        import ctypes

        ctypes.WinDLL("kernel32").Sleep(1)
    else:
        time.sleep(0.001)


def median_sleep_ns(sleep: Callable[[], None], clock: Callable[[], int] = time.perf_counter_ns) -> int:
    """Return the median real length of a sleep, in nanoseconds."""

    def once() -> int:
        begun = clock()
        sleep()
        return clock() - begun

    return int(median(once() for _ in range(SLEEPS)))


def processor(
    system: str,
    cpuinfo: Path = _CPUINFO,
    sysctl: tuple[str, ...] = _SYSCTL,
    timeout_s: float = _SYSCTL_TIMEOUT_S,
) -> str:
    """Return the model name of the processor; empty where it can't be found out."""
    try:
        if system == "Linux":
            return model_name(cpuinfo.read_text(encoding="utf-8", errors="replace"))
        if system == "Darwin":
            done = subprocess.run(
                sysctl, capture_output=True, timeout=timeout_s, check=True, stdin=subprocess.DEVNULL
            )
            return done.stdout.decode("utf-8", "replace").strip()
        return _registered_name()
    except (OSError, subprocess.SubprocessError):
        return ""


def model_name(cpuinfo: str) -> str:
    """Return the processor's name from the text of /proc/cpuinfo; empty when it gives none."""
    found: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip().lower(), " ".join(value.split()))
    return next((found[key] for key in _MODEL_KEYS if found.get(key)), "")


def _registered_name() -> str:
    if sys.platform != "win32":
        return ""
    import winreg

    place = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
        return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()


UNKNOWN = FileSystem("", "", "")
DATA_VOLUME = Path("/System/Volumes/Data")
"""On macOS the folders of users lie on this volume, though their paths begin at the read-only root."""


class Mount(NamedTuple):
    """What is asked of an entry of psutil.disk_partitions()."""

    mountpoint: str
    fstype: str
    device: str
    opts: str


def all_mounts() -> Iterable[Mount]:
    """Return everything that is mounted, in the order in which it was."""
    return [
        Mount(one.mountpoint, one.fstype, one.device, one.opts) for one in psutil.disk_partitions(all=True)
    ]


def file_system_of(
    folder: Path, mounts: Callable[[], Iterable[Mount]] = all_mounts, data_volume: Path = DATA_VOLUME
) -> FileSystem:
    """Return the file system of a folder, symbolic links resolved; every field empty when it is not known."""
    try:
        return find(_place(folder.resolve(), data_volume), mounts())
    except (OSError, RuntimeError, psutil.Error):
        return UNKNOWN


def find(place: PurePath, mounts: Iterable[Mount]) -> FileSystem:
    """Return the file system with the longest mount point above a resolved path."""
    if isinstance(place, PureWindowsPath) and place.drive.startswith("\\\\"):
        # A share without a letter is in no list; psutil says "remote" of one with a letter.
        return FileSystem("", place.drive, "remote")
    above = [
        (len(point.parts), number, mount)
        for number, mount in enumerate(mounts)
        if place.is_relative_to(point := type(place)(mount.mountpoint))
    ]
    if not above:
        return UNKNOWN
    # Of two mounts on one place the later hides the earlier.
    *_, mount = max(above, key=lambda found: found[:2])
    return FileSystem(mount.fstype, mount.device, mount.opts)


def _place(resolved: Path, data_volume: Path) -> Path:
    """Return the path by which the mount of a folder is found."""
    elsewhere = data_volume.joinpath(*resolved.parts[1:])
    if resolved.is_relative_to(data_volume) or not elsewhere.exists():
        return resolved
    return elsewhere if resolved.samefile(elsewhere) else resolved
