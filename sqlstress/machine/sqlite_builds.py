"""SQLite builds in a program's file, or in the files that a running process has mapped into its memory.

SQLite's library has its version and its source id as text, also if it is linked into another binary.

Source: https://www.sqlite.org/c3ref/libversion.html
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
    """SQLite library in a file."""

    file: str
    version: str
    """Version, "3.45.1" for example; empty if unknown."""
    source_date: str
    """Day of its source code, as in "2024-01-30"."""


def build_in(file: Path) -> Build | None:
    """Return the SQLite library in a file, or None if there is no SQLite in it. Raises OSError."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        source = _SOURCE.search(data)
        if not source:
            return None
        version = _VERSION.search(data)
        return Build(str(file), version[1].decode() if version else "", source[1].decode())


def builds_of_process(pid: int) -> list[Build]:
    """Return the SQLite libraries of a running process. Raises UsageError if it cannot be examined."""
    try:
        return [*_builds(_mapped_files(psutil.Process(pid)))]
    except psutil.Error as error:
        raise UsageError(f"cannot examine process {pid}: {error}.") from error


def builds_of_program(path: Path) -> list[Build]:
    """Return the SQLite library in the file of a program or library. Raises UsageError."""
    try:
        build = build_in(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {str(path)!r}: {error}.") from error
    return [build] if build else []


def _mapped_files(process: psutil.Process) -> set[str]:
    """Return the programs and libraries that a process has mapped, with its own; on macOS only its own.

    Linux reports which mappings contain code. Others may be a database of many GB.
    """
    files = {process.exe()}
    list_maps = getattr(process, "memory_maps", None)  # psutil has it on Linux and Windows
    with suppress(psutil.AccessDenied):
        mappings = list_maps(grouped=False) if list_maps else ()
        files.update(part.path for part in mappings if sys.platform != "linux" or "x" in part.perms)
    return files


def _builds(files: Iterable[str]) -> Iterator[Build]:
    for name in sorted(files):
        path = Path(name)
        with suppress(OSError, ValueError):  # such as a device, or a file that is empty or was replaced
            if path.is_file() and (build := build_in(path)):
                yield build
