"""The branches for macOS, run on Linux: simulated system calls answer as Apple documents them.

These tests show only that the calls are made, and that their answers are used.
"""

import errno
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sqlstress.engine.trial import seconds_asleep
from sqlstress.engine.worker import peak_memory_bytes
from sqlstress.errors import EnvironmentFailure
from sqlstress.machine import host, sync_cost

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is shown where macOS is not")

F_FULLFSYNC = 51
"""<sys/fcntl.h>"""
CLOCK_MONOTONIC_RAW, CLOCK_UPTIME_RAW = 4, 8
"""<time.h>"""


@pytest.fixture(autouse=True)
def macos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend to every branch that the system is macOS."""
    monkeypatch.setattr(sys, "platform", "darwin")


@pytest.fixture
def fcntl_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Commands passed to fcntl; F_FULLFSYNC exists only on macOS."""
    calls: list[int] = []
    monkeypatch.setattr("fcntl.F_FULLFSYNC", F_FULLFSYNC, raising=False)
    monkeypatch.setattr("fcntl.fcntl", lambda _, command: calls.append(command))
    return calls


def test_full_flush_uses_fcntl(tmp_path: Path, fcntl_calls: list[int]) -> None:
    cost = sync_cost.measure(tmp_path, ("F_FULLFSYNC",))
    assert cost.primitive == "F_FULLFSYNC"
    assert fcntl_calls and set(fcntl_calls) == {F_FULLFSYNC}
    assert list(tmp_path.iterdir()) == []


def test_file_system_without_full_flush_is_synced_with_fsync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fcntl_calls: list[int]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")  # fcntl(2), of what is no local disk

    monkeypatch.setattr("fcntl.fcntl", refuse)
    assert sync_cost.measure(tmp_path, ("F_FULLFSYNC", "fsync")).primitive == "fsync"
    assert fcntl_calls == []
    assert list(tmp_path.iterdir()) == []


def test_fdatasync_is_not_available_on_macos(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure):
        sync_cost.measure(tmp_path, ("fdatasync",))


def test_sleep_is_the_difference_of_two_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    # clock_gettime(3): MONOTONIC_RAW goes on while the system sleeps, UPTIME_RAW does not.
    answers = {CLOCK_MONOTONIC_RAW: 5000.25, CLOCK_UPTIME_RAW: 4000.0}
    monkeypatch.setattr(time, "CLOCK_MONOTONIC_RAW", CLOCK_MONOTONIC_RAW)
    monkeypatch.setattr(time, "CLOCK_UPTIME_RAW", CLOCK_UPTIME_RAW, raising=False)
    monkeypatch.setattr(time, "clock_gettime", answers.__getitem__)
    assert seconds_asleep() == 1000.25


def test_peak_memory_is_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(ru_maxrss=31_457_280)  # getrusage(2): in bytes there, in KiB elsewhere
    monkeypatch.setattr("resource.getrusage", lambda _: usage)
    assert peak_memory_bytes() == 31_457_280


def test_all_processors_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")  # which macOS has not got
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert host.usable_cores() == 8
