"""SQLite builds in a program's file, or in the files that a running process has mapped.

Each build contains its version and source id as text. Source: https://www.sqlite.org/c3ref/libversion.html
"""

from __future__ import annotations

import mmap
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from sqlstress.errors import UsageError

_SOURCE = re.compile(rb"(20\d\d-\d\d-\d\d) \d\d:\d\d:\d\d [0-9a-f]{40,64}")
_VERSION = re.compile(rb"\x00(3\.\d{1,2}\.\d{1,2})(?:\.\d{1,2})?\x00")


class Build(NamedTuple):
    """SQLite library that a file contains: a program, or a shared library."""

    file: str
    version: str
    """Version, such as "3.45.1"; empty if unknown."""
    source_date: str
    """Date of SQLite's source code, such as "2024-01-30"."""


def build_in(file: Path) -> Build | None:
    """Return the SQLite library in a file, or None. Raises OSError, or ValueError for an empty file."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        source = _SOURCE.search(data)
        if not source:
            return None
        version = _VERSION.search(data)
        return Build(str(file), version[1].decode() if version else "", source[1].decode())


def builds_of_process(pid: int) -> list[Build]:
    """Return the SQLite libraries of a running process. Raises UsageError if it cannot be examined."""
    try:
        return [*builds_of_files(_mapped_files(psutil.Process(pid)))]
    except psutil.Error as error:
        raise UsageError(f"cannot examine process {pid}: {error}.") from error


def builds_of_program(path: Path) -> list[Build]:
    """Return a list with the SQLite library in a file, or []. Raises UsageError for an unreadable file."""
    try:
        build = build_in(path)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r:.200}: {error.strerror or error}.") from error
    except ValueError as error:
        raise UsageError(f"cannot read {str(path)!r:.200}: {error}.") from error
    return [build] if build else []


def _mapped_files(process: psutil.Process) -> set[str]:
    """Return the process's program file and, except on macOS, its mapped files."""
    files = {process.exe()}
    list_maps = getattr(process, "memory_maps", None)  # psutil has this method on Linux and Windows.
    with suppress(psutil.AccessDenied):
        mappings = list_maps(grouped=False) if list_maps else ()
        files.update(part.path for part in mappings if sys.platform != "linux" or "x" in part.perms)
    return files


def builds_of_files(files: Iterable[str]) -> Iterator[Build]:
    """Yield the SQLite libraries in these files, sorted by path. Omit files that cannot be read."""
    for name in sorted(files):
        path = Path(name)
        with suppress(OSError, ValueError):  # For example a device, or a file that is empty or was replaced.
            if path.is_file() and (build := build_in(path)):
                yield build
