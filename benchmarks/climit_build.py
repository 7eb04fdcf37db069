"""Build the C loop twice: linked to the standard library's SQLite, and as an extension for any other."""

from __future__ import annotations

import importlib
import os
import shutil
import sqlite3
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("climit.c")
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra")


class Unavailable(Exception):
    """Why a part of the benchmarks cannot be measured here."""


@dataclass(frozen=True, slots=True)
class Program:
    """The stand-alone build."""

    path: Path
    library: str
    """In words: the SQLite that it runs, and whether it is the one of Python's sqlite3."""
    same_library: bool


def compiler() -> str:
    """Return the C compiler: $CC, cc or gcc. Raises Unavailable."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise Unavailable("no C compiler was found (cc, gcc or clang)")


def compiler_version() -> str:
    """Return the compiler's own first line. Raises Unavailable."""
    text = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    return text.splitlines()[0]


def stdlib_library() -> Path | None:
    """Return the shared library that Python's sqlite3 uses; None if it is linked in or can't be told."""
    importlib.import_module("_sqlite3")
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.split(maxsplit=5)[-1]
            if "libsqlite3" in path:
                return Path(path)
    return None


def build_program(folder: Path) -> Program:
    """Compile the program against the library of Python's sqlite3, or failing that the system's.

    Raises Unavailable.
    """
    path, library = folder / "climit", stdlib_library()
    _compile([str(SOURCE), "-o", str(path), str(library) if library else "-lsqlite3", "-ldl"])
    text = subprocess.run([str(path), "--library"], capture_output=True, text=True, check=True).stdout
    version, source_id, file = text.split("\n")[:3]
    same_build = source_id == _stdlib_source_id()
    same_file = library is not None and bool(file) and Path(file).resolve() == library.resolve()
    relation = (
        "the very library" if same_file else "the same check-in as" if same_build else "NOT the library"
    )
    return Program(
        path, f"SQLite {version} ({file}), {relation} of Python's sqlite3", same_file and same_build
    )


def build_beside(folder: Path, source: Path) -> tuple[Path, str]:
    """Compile another program against that library; return it, and the library. Raises Unavailable."""
    path, library = folder / source.stem, stdlib_library()
    _compile([str(source), "-o", str(path), str(library) if library else "-lsqlite3"])
    return path, f"SQLite {sqlite3.sqlite_version}" if library else "the system's SQLite"


def build_extension(folder: Path) -> Path:
    """Compile the loadable extension. Raises Unavailable."""
    path = folder / "climit.so"
    _compile(["-DCLIMIT_EXTENSION", "-shared", "-fPIC", str(SOURCE), "-o", str(path)])
    return path


def _compile(arguments: list[str]) -> None:
    done = subprocess.run([compiler(), *FLAGS, *arguments], capture_output=True, text=True)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise Unavailable(f"the C loop does not compile here: {first}")


def _stdlib_source_id() -> str:
    connection = sqlite3.connect(":memory:")
    try:
        return str(connection.execute("SELECT sqlite_source_id()").fetchone()[0])
    finally:
        connection.close()
