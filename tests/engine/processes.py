"""The command line in its own process, watched from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from sqlstress.engine.folder import PREFIX
from sqlstress.report import Report, from_json
from tests.brief import PROGRAM
from tests.conftest import command_of

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
"""A machine that needs longer than this for anything here is broken, not slow."""


def environment() -> dict[str, str]:
    """Return the environment of a process that finds the checkout from any folder."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


class Command:
    """`sqlstress …` as the leader of a process group, with its databases below `place`."""

    def __init__(self, place: Path, *arguments: str, program: Sequence[str] = (), **options: Any) -> None:
        self.place = place
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        self.process = subprocess.Popen(
            [*(program or PROGRAM), *arguments, "--dir", str(place)],
            cwd=place,
            env=environment(),
            text=True,
            start_new_session=True,
            **options,
        )

    def __enter__(self) -> Command:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self.children():
            try:
                child.kill()
            except psutil.Error:
                pass
        self.process.kill()
        self.process.communicate()

    def children(self) -> list[psutil.Process]:
        """Return all descendants of the command."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.Error:
            return []

    def workers(self) -> list[psutil.Process]:
        """Return the worker processes: children of the fork server, or spawned ones if there is none."""
        ours = [child for child in self.children() if "spawn_main" in " ".join(command_of(child))]
        return ours if sys.platform == "win32" else [child for child in ours if parent_of(child) in ours]

    def folders(self) -> list[Path]:
        """Return the folders that sqlstress made below `place`."""
        return sorted(self.place.glob(f"{PREFIX}????????"))

    def files(self, name: str) -> list[Path]:
        """Return the files with this name in the folders that sqlstress made."""
        return sorted(self.place.glob(f"{PREFIX}????????/{name}"))

    def await_load(self, workers: int) -> list[psutil.Process]:
        """Wait until `workers` workers run and a WAL changes; return the workers."""
        processes = self.until(lambda: workers <= len(now := self.workers()) and now, f"{workers} workers")
        previous = self._wal_states()
        self.until(lambda: self._wal_states() != previous, "a write")
        return sorted(processes, key=lambda process: process.pid)

    def _wal_states(self) -> list[tuple[int, int]]:
        states = []
        for path in self.files("*.db-wal"):
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            states += [(stat.st_size, stat.st_mtime_ns)] if stat.st_size else []
        return states

    def until(self, condition: Callable[[], Any], condition_name: str) -> Any:
        """Poll until a condition holds; fail if the process ends first."""
        end = time.monotonic() + PATIENCE_S
        while not (result := condition()):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no {condition_name}; it said: {self.finish()}")
            time.sleep(0.005)
        return result

    def finish(self) -> tuple[int, str, str]:
        """Wait for the end; return (exit code, standard output, standard error)."""
        output, errors = self.process.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in (errors or ""), errors
        return self.process.returncode, output or "", errors or ""


def parent_of(process: psutil.Process) -> psutil.Process | None:
    """Return the parent of a process, or None if the process has ended."""
    try:
        return process.parent()
    except psutil.Error:
        return None


def saved_report(place: Path) -> Report:
    """Return the report saved in this folder."""
    return from_json((place / "report.json").read_text(encoding="utf-8"))


def gone(processes: Sequence[psutil.Process], within_s: float = PATIENCE_S) -> bool:
    """Wait for processes to end; return whether all did."""
    until = time.monotonic() + within_s
    while any(map(runs, processes)):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def runs(process: psutil.Process) -> bool:
    """Return whether a process still runs. An ended orphan is a zombie until init reaps it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def sqlstress(place: Path, *arguments: str, **options: Any) -> tuple[int, str, str]:
    """Run a command to its end; return (exit code, standard output, standard error)."""
    with Command(place, *arguments, **options) as command:
        return command.finish()
