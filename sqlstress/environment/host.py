"""The machine and the Python that run."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psutil

from sqlstress.report import Host

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
            return _output(sysctl, timeout_s)
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


def _output(command: tuple[str, ...], timeout_s: float) -> str:
    done = subprocess.run(
        command, capture_output=True, timeout=timeout_s, check=True, stdin=subprocess.DEVNULL
    )
    return done.stdout.decode("utf-8", "replace").strip()


def _registered_name() -> str:
    if sys.platform != "win32":
        return ""
    import winreg

    place = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
        return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
