"""The fingerprint as a whole, on a real disk and on memory."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sqlstress.machine import fingerprint, sync_cost
from sqlstress.machine import host as filesystem
from sqlstress.report import SqliteBuild
from sqlstress.report.case import Settings
from tests.machine.test_warnings import BUILD

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not tmp_path: the system's temporary folder is often memory.
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        yield Path(name)


@pytest.fixture
def memory() -> Iterator[Path]:
    if (
        not MEMORY.is_dir()
        or not os.access(MEMORY, os.W_OK)
        or filesystem.file_system_of(MEMORY).kind != "tmpfs"
    ):
        pytest.skip("no file system in memory here")
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


def test_the_surroundings_are_described_in_bounded_time(folder: Path) -> None:
    here = SqliteBuild("sqlite3", platform.python_version(), sqlite3.sqlite_version, "", ())
    begun = time.perf_counter()
    found = fingerprint(folder, [here], [Settings()], 1)
    assert time.perf_counter() - begun < 60
    host, sync = found.host, found.sync
    assert sync and host.cores and host.sleep_1ms_ns
    assert (host.system, host.machine) == (platform.system(), platform.machine())
    assert 1 <= host.cores <= (os.cpu_count() or 1)
    assert host.memory_bytes == psutil.virtual_memory().total
    assert platform.python_version() in host.python
    assert 900_000 <= host.sleep_1ms_ns < 1_000_000_000
    assert found.builds == (here,)
    assert 8 <= sync.samples <= 200
    assert 0 < sync.append_p50_ns <= sync.append_p99_ns
    assert 0 < sync.overwrite_p50_ns <= sync.overwrite_p99_ns
    expected = {"Windows": "FlushFileBuffers", "Darwin": "fsync"}.get(host.system, "fdatasync")
    assert sync.primitive == expected
    assert list(folder.iterdir()) == []


def test_memory_is_recognised_as_not_durable(memory: Path) -> None:
    found = fingerprint(memory, [BUILD], [Settings()], 1)
    assert found.file_system.kind == "tmpfs"
    assert {warning.code: warning.serious for warning in found.warnings}["sync-does-nothing"] is True
    assert list(memory.iterdir()) == []


def test_the_mount_of_a_folder_is_the_one_that_psutil_measures(folder: Path) -> None:
    found = filesystem.file_system_of(folder)
    points = [mount.mountpoint for mount in psutil.disk_partitions(all=True) if mount.device == found.device]
    assert any(psutil.disk_usage(point).total == psutil.disk_usage(str(folder)).total for point in points)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [([Settings()], False), ([Settings(), Settings(pragmas=(("fullfsync", "on"),))], True)],
)
def test_a_fullfsync_of_any_case_decides_which_sync_is_timed(
    folder: Path, settings: list[Settings], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool]] = []
    usual = sync_cost.primitives

    def primitives(system: str, fullfsync: bool) -> tuple[str, ...]:
        asked.append((system, fullfsync))
        return usual(system, fullfsync)

    monkeypatch.setattr(sync_cost, "primitives", primitives)
    fingerprint(folder, [BUILD], settings, 1)
    assert asked == [(platform.system(), expected)]
