"""Which machine this is: what a worker of the cluster tells of itself."""

from __future__ import annotations

import json
import platform
import socket
import subprocess
import sys
from pathlib import Path

import psutil

from sqlstress import __version__

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SYSCTL = ("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")


def who() -> str:
    """Return, as JSON, what this host is called, which machine it is, and what it runs."""
    return json.dumps(
        {
            "host": host_name(),
            "machine": machine(),
            "sqlstress": __version__,
            "python": platform.python_version(),
        }
    )


def host_name() -> str:
    """Return what this host calls itself."""
    return socket.gethostname()


def machine() -> str:
    """Return what is the same for all containers of a physical machine, and for no two machines.

    A container has a name of its own, and shares the boot with others. Where a system names no boots,
    the host's name and the second of its start have to do.
    """
    try:
        if sys.platform == "linux":
            return _BOOT_ID.read_text(encoding="ascii").strip()
        if sys.platform == "darwin":
            done = subprocess.run(_SYSCTL, capture_output=True, timeout=2.0, check=True)
            return done.stdout.decode("ascii").strip()
    except (OSError, ValueError, subprocess.SubprocessError):
        pass
    return f"{host_name()} {psutil.boot_time():.0f}"
