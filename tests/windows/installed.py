"""The project installed under Wine: as by pip without a compiler, and with the native loop."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.windows.forwarders import TOOLS
from tests.windows.wine import ROOT, Wine

COMPILER = f"{TOOLS}gcc"
COMPILERS_PACKAGE = "gcc-mingw-w64-x86-64-win32"
"""Name of the compiler's package in Debian."""
WHEELS = ("--platform=win_amd64", "--implementation=cp", "--python-version=3.12", "--only-binary=:all:")
BROUGHT = ("colorama",)
"""Packages that pip on Windows would add: here it evaluates markers of dependencies for this system."""
EXTRA = "apsw"
"""Extra of the project that the commands need."""
NATIVE = Path("sqlstress/targets/native")
BUILT = NATIVE / "_native.pyd"


def checkout(wine: Wine) -> Path:
    """Copy the files of this checkout to the drive C:, and return their folder."""
    return copied(wine.work / "sqlstress")


def copied(place: Path) -> Path:
    """Copy the files of this checkout that are not ignored by git, and return their folder."""
    shutil.rmtree(place, ignore_errors=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, place / name)
    return place


def without_compiler(wine: Wine) -> None:
    """Install the project and apsw, as on a Windows without a compiler.

    The wheel is built from a copy, so that no object file of this system is taken for one of Windows. Raises
    CalledProcessError.
    """
    wheels = wine.folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    build = ("wheel", "--no-deps", "--wheel-dir", str(wheels), "-C--build-option=--plat-name=win_amd64")
    _pip(*build, str(checkout(wine)), CC="false")
    (built,) = wheels.glob("sqlstress-*.whl")
    # This Python's bytecode is of no use to Windows' Python.
    into = ("install", *WHEELS, "--target", str(wine.packages), "--upgrade", "--no-compile")
    if (wine.packages / EXTRA).is_dir():
        _pip(*into, "--no-deps", str(built))
    else:
        _pip(*into, f"{built}[{EXTRA}]", *BROUGHT)


def has_compiler() -> bool:
    """Return whether the native loop can be compiled for Windows here."""
    return shutil.which(COMPILER) is not None


def add_native_loop(wine: Wine) -> None:
    """Compile the native loop for Windows, and install it like pip. Raises CalledProcessError."""
    sources = sorted(str(path) for path in (ROOT / NATIVE).glob("*.c"))
    to = wine.packages / BUILT
    python = (f"-I{wine.python / 'include'}", str(wine.python / "python3.dll"))
    options = ("-shared", "-static-libgcc", "-O2", "-Wall", "-Wextra", "-Werror")
    subprocess.run([COMPILER, *options, "-o", str(to), *sources, *python], check=True)


def _pip(*arguments: str, **environment: str) -> None:
    command = [sys.executable, "-m", "pip", "-q", *arguments]
    subprocess.run(command, env={**os.environ, **environment}, check=True)
