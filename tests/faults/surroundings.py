"""Surroundings in which something is scarce or forbidden, where this machine lets us make them."""

from __future__ import annotations

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
    """Whether nothing is forbidden to us."""
    return sys.platform != "win32" and os.geteuid() == 0


@contextmanager
def small_disk(parent: Path, kib: int) -> Iterator[Path]:
    """Yield an empty folder with a file system of so many KiB; skip where none can be mounted."""
    place = parent / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(place)]
    if sys.platform != "linux" or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here: that needs Linux and root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> None:
    """Leave no byte free on the file system of a folder."""
    with (place / BALLAST).open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def bounded(limit: str) -> tuple[str, ...]:
    """Return a program that runs sqlstress under a limit, as bash's ulimit takes it."""
    return ("bash", "-c", f'ulimit {limit}; exec {" ".join(PROGRAM)} "$@"', "bash")


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    """Let nothing be written into a folder meanwhile; skip where that can't be had."""
    if not is_root():
        place.chmod(0o500)
        yield
        place.chmod(0o700)
        return
    # Rights say nothing to root, but a mount does.
    for command in (["--bind", str(place), str(place)], ["-o", "remount,ro,bind", str(place)]):
        if sys.platform != "linux" or subprocess.run(["mount", *command], check=False).returncode:
            pytest.skip("nothing is forbidden to root or mounted here: that needs Linux and root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def few_processes(count: int) -> tuple[str, ...]:
    """Return what goes before a command that may have so many processes and threads; skip where we can't."""
    if not (is_root() and shutil.which("setpriv") and shutil.which("prlimit")):
        pytest.skip("a user without processes of his own can't be had here: that needs Linux and root")
    user = STRANGER + count  # the dead of another test may not have been buried yet
    who = (f"--reuid={user}", f"--regid={user}", "--clear-groups")
    # He may read what we may: the interpreter can lie in a home.
    rights = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return ("setpriv", *who, *rights, "prlimit", f"--nproc={count}:{count}")
