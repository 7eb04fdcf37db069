"""Environments in which a resource is scarce or forbidden, if this machine lets us create them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.brief import PROGRAM
from tests.conftest import STRANGER

posix = pytest.mark.skipif(sys.platform == "win32", reason="limits and rights of POSIX")
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux only")

BALLAST = "ballast"


def is_root() -> bool:
    """Return whether this user has all permissions."""
    return sys.platform != "win32" and os.geteuid() == 0


@contextmanager
def small_disk(parent: Path, kib: int) -> Iterator[Path]:
    """Yield an empty folder with a file system of `kib` KiB; skip the test if none can be mounted."""
    place = parent / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(place)]
    if sys.platform != "linux" or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here: that needs Linux and root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path, spare_bytes: int = 0) -> None:
    """Fill the file system of a folder, but for some bytes."""
    with (place / BALLAST).open("wb", buffering=0) as file:
        with suppress(OSError):
            while True:
                file.write(bytes(4096))
        file.truncate(file.tell() - spare_bytes)


def bounded(limit: str) -> tuple[str, ...]:
    """Return a program that runs sqlstress under a limit, in the syntax of bash's ulimit."""
    return ("bash", "-c", f'ulimit {limit}; exec {" ".join(PROGRAM)} "$@"', "bash")


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    """Make a folder read-only during the block; skip the test if that is impossible."""
    if not is_root():
        place.chmod(0o500)
        yield
        place.chmod(0o700)
        return
    # Root ignores permissions, but not a read-only mount.
    for command in (["--bind", str(place), str(place)], ["-o", "remount,ro,bind", str(place)]):
        if sys.platform != "linux" or subprocess.run(["mount", *command], check=False).returncode:
            pytest.skip("nothing is forbidden to root or mounted here: that needs Linux and root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def few_processes(count: int) -> tuple[str, ...]:
    """Return a command prefix that allows `count` processes and threads; skip the test if there is none."""
    if not (is_root() and shutil.which("setpriv") and shutil.which("prlimit")):
        pytest.skip("a user without processes of his own can't be had here: that needs Linux and root")
    user = STRANGER + count  # the dead processes of another test may not have been reaped yet
    who = (f"--reuid={user}", f"--regid={user}", "--clear-groups")
    # The user may read the same files as we: the interpreter can be in a home folder.
    rights = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return ("setpriv", *who, *rights, "prlimit", f"--nproc={count}:{count}")
