"""Description of the machine and of the running Python."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path, PurePath, PureWindowsPath
from statistics import median
from typing import Any

import psutil

from sqlstress.machine.quota import cpu_quota
from sqlstress.report import FileSystem, Host

SLEEPS = 9
_CPUINFO = Path("/proc/cpuinfo")
# Keys of the processor's model on x86, MIPS and POWER; small ARM boards name only the board.
_MODEL_KEYS = ("model name", "cpu model", "cpu", "model", "hardware")
_SYSCTL = ("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string")
_SYSCTL_TIMEOUT_S = 2.0


def describe_host() -> Host:
    """Return a description of this machine, including the median time of SLEEPS sleeps of 1 ms."""
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
    """Sleep for 1 ms as SQLite's busy handler does.

    On Windows, time.sleep uses a high-resolution timer, but SQLite calls Sleep(), which rounds up to clock
    ticks.
    """
    if sys.platform == "win32":
        import ctypes

        ctypes.WinDLL("kernel32").Sleep(1)
    else:
        time.sleep(0.001)


def median_sleep_ns(sleep: Callable[[], None], clock: Callable[[], int] = time.perf_counter_ns) -> int:
    """Return the median of the real durations of SLEEPS calls of `sleep`, in ns."""

    def once() -> int:
        start_ns = clock()
        sleep()
        return clock() - start_ns

    return int(median(once() for _ in range(SLEEPS)))


def processor(
    system: str,
    cpuinfo: Path = _CPUINFO,
    sysctl: tuple[str, ...] = _SYSCTL,
    timeout_s: float = _SYSCTL_TIMEOUT_S,
) -> str:
    """Return the model name of the processor; empty if unknown."""
    try:
        if system == "Linux":
            return model_name(cpuinfo.read_text(encoding="utf-8", errors="replace"))
        if system == "Darwin":
            result = subprocess.run(
                sysctl, capture_output=True, timeout=timeout_s, check=True, stdin=subprocess.DEVNULL
            )
            return result.stdout.decode("utf-8", "replace").strip()
        return _registry_name()
    except (OSError, subprocess.SubprocessError):
        return ""


def model_name(cpuinfo: str) -> str:
    """Return the processor's name in the text of /proc/cpuinfo, or ""."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip().lower(), " ".join(value.split()))
    return next((fields[key] for key in _MODEL_KEYS if fields.get(key)), "")


def _registry_name() -> str:
    if sys.platform != "win32":
        return ""
    import winreg

    path = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
        return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()


UNKNOWN = FileSystem("", "", "")
ALL_MOUNTS = partial(psutil.disk_partitions, all=True)
DATA_VOLUME = Path("/System/Volumes/Data")
"""Volume that has the users' folders on macOS, although their paths look like paths on the root volume."""


def file_system_of(
    folder: Path, mounts: Callable[[], Iterable[Any]] = ALL_MOUNTS, data_volume: Path = DATA_VOLUME
) -> FileSystem:
    """Return the file system of a folder, or UNKNOWN. Symbolic links are resolved."""
    try:
        return find_file_system(_mounted_path(folder.resolve(), data_volume), mounts())
    except (OSError, RuntimeError, psutil.Error):
        return UNKNOWN


def find_file_system(place: PurePath, mounts: Iterable[Any]) -> FileSystem:
    """Return the file system of the deepest mount point above a path, or UNKNOWN.

    `mounts` has entries of `psutil.disk_partitions`.
    """
    if isinstance(place, PureWindowsPath) and place.drive.startswith("\\\\"):
        # psutil lists only network shares with a drive letter, and calls them "remote".
        return FileSystem("", place.drive, "remote")
    above = [
        (len(point.parts), number, mount)
        for number, mount in enumerate(mounts)
        if place.is_relative_to(point := type(place)(mount.mountpoint))
    ]
    if not above:
        return UNKNOWN
    # Of two mounts at the same mount point, the later mount hides the earlier.
    *_, mount = max(above, key=lambda entry: entry[:2])
    return FileSystem(mount.fstype, mount.device, mount.opts)


def _mounted_path(resolved: Path, data_volume: Path) -> Path:
    """Return the path under `data_volume` if the folder is stored there; else `resolved`."""
    elsewhere = data_volume.joinpath(*resolved.parts[1:])
    if resolved.is_relative_to(data_volume) or not elsewhere.exists():
        return resolved
    return elsewhere if resolved.samefile(elsewhere) else resolved
