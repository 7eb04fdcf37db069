"""Build the C loops: linked to the library of Python's sqlite3, and as an extension for any other SQLite."""

from __future__ import annotations

import importlib
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

SOURCE = Path(__file__).with_name("climit.c")
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra")


class Unavailable(Exception):
    """A part of the benchmarks cannot be measured on this system; the message is the reason."""


def compiler() -> str:
    """Return the C compiler: $CC, cc, gcc or clang. Raises Unavailable."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and (path := shutil.which(name)):
            return path
    raise Unavailable("no C compiler was found (cc, gcc or clang)")


def compiler_version() -> str:
    """Return the first line of the compiler's --version, and the flags. Raises Unavailable."""
    return " ".join((_output_of(compiler(), "--version").splitlines()[0], *FLAGS))


def build_program(folder: Path) -> tuple[Path, str]:
    """Compile the program; return its path and a description of its SQLite library. Raises Unavailable."""
    path, library = build_beside(folder, SOURCE, "-ldl")
    version, source_id, file = _output_of(str(path), "--library").split("\n")[:3]
    with closing(sqlite3.connect(":memory:")) as connection:
        same_build = (source_id,) == connection.execute("SELECT sqlite_source_id()").fetchone()
    same_file = library is not None and bool(file) and Path(file).resolve() == library.resolve()
    relation = (
        "the very library" if same_file else "the same check-in as" if same_build else "NOT the library"
    )
    return path, f"SQLite {version} ({file}), {relation} of Python's sqlite3"


def build_beside(folder: Path, source: Path, *more: str) -> tuple[Path, Path | None]:
    """Compile a program against the library of Python's sqlite3, or else the system's; return both.

    The library is None if it is linked into Python, or not known. Raises Unavailable.
    """
    importlib.import_module("_sqlite3")
    library = None
    with suppress(OSError):
        lines = Path("/proc/self/maps").read_text().splitlines()
        paths = [line.split(maxsplit=5)[-1] for line in lines]
        library = next((Path(path) for path in paths if "libsqlite3" in path), None)
    path = folder / source.stem
    _compile(str(source), "-o", str(path), str(library or "-lsqlite3"), *more)
    return path, library


def build_extension(folder: Path) -> Path:
    """Compile the loadable extension. Raises Unavailable."""
    path = folder / "climit.so"
    _compile("-DCLIMIT_EXTENSION", "-shared", "-fPIC", str(SOURCE), "-o", str(path))
    return path


def _compile(*arguments: str) -> None:
    done = subprocess.run([compiler(), *FLAGS, *arguments], capture_output=True, text=True)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise Unavailable(f"the C loop does not compile here: {first}")


def _output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
