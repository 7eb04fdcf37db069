"""The whole fingerprint, on a real disk and in memory."""

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
    # Not tmp_path: the system's temporary folder is often in memory.
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


def test_fingerprint_takes_bounded_time(folder: Path) -> None:
    here = SqliteBuild("sqlite3", platform.python_version(), sqlite3.sqlite_version, "", ())
    start_s = time.perf_counter()
    environment = fingerprint(folder, [here], [Settings()], 1)
    assert time.perf_counter() - start_s < 60
    host, sync = environment.host, environment.sync
    assert sync and host.cores and host.sleep_1ms_ns
    assert (host.system, host.machine) == (platform.system(), platform.machine())
    assert 1 <= host.cores <= (os.cpu_count() or 1)
    assert host.memory_bytes == psutil.virtual_memory().total
    assert platform.python_version() in host.python
    assert 900_000 <= host.sleep_1ms_ns < 1_000_000_000
    assert environment.builds == (here,)
    assert 8 <= sync.samples <= 200
    assert 0 < sync.append_p50_ns <= sync.append_p99_ns
    assert 0 < sync.overwrite_p50_ns <= sync.overwrite_p99_ns
    expected = {"Windows": "FlushFileBuffers", "Darwin": "fsync"}.get(host.system, "fdatasync")
    assert sync.primitive == expected
    assert list(folder.iterdir()) == []


def test_memory_is_recognized_as_not_durable(memory: Path) -> None:
    environment = fingerprint(memory, [BUILD], [Settings()], 1)
    assert environment.file_system.kind == "tmpfs"
    assert {warning.code: warning.serious for warning in environment.warnings}["sync-does-nothing"] is True
    assert list(memory.iterdir()) == []


def test_mount_of_a_folder_agrees_with_psutil(folder: Path) -> None:
    file_system = filesystem.file_system_of(folder)
    points = [
        mount.mountpoint for mount in psutil.disk_partitions(all=True) if mount.device == file_system.device
    ]
    assert any(psutil.disk_usage(point).total == psutil.disk_usage(str(folder)).total for point in points)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [([Settings()], False), ([Settings(), Settings(pragmas=(("fullfsync", "on"),))], True)],
)
def test_fullfsync_of_any_case_selects_the_timed_sync(
    folder: Path, settings: list[Settings], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[tuple[str, bool]] = []
    usual = sync_cost.sync_calls

    def primitives(system: str, fullfsync: bool) -> tuple[str, ...]:
        requested.append((system, fullfsync))
        return usual(system, fullfsync)

    monkeypatch.setattr(sync_cost, "sync_calls", primitives)
    fingerprint(folder, [BUILD], settings, 1)
    assert requested == [(platform.system(), expected)]
