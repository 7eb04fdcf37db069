"""Cost of a sync: bounded time, the system's own call, and no files left."""

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.machine.sync_cost import (
    BLOCK,
    MIN_SAMPLES,
    MOST,
    Sync,
    call,
    measure,
    nearest_rank,
    sync_calls,
)
from sqlstress.report import SyncCost

OURS = ("fake",)


class Disk:
    """A clock that only syncs move, and a record of the file at each sync."""

    def __init__(self, costs: Iterator[int]) -> None:
        self.now = 0
        self.costs = costs
        self.sizes: list[int] = []
        self.blocks: list[bytes] = []

    def clock(self) -> int:
        return self.now

    def call_of(self, name: str) -> Sync:
        assert name == "fake"
        return self.sync

    def sync(self, descriptor: int) -> None:
        self.sizes.append(os.fstat(descriptor).st_size)
        os.lseek(descriptor, -BLOCK, os.SEEK_CUR)
        self.blocks.append(os.read(descriptor, BLOCK))
        self.now += next(self.costs)


def timed(folder: Path, costs: Iterator[int]) -> tuple[Disk, SyncCost]:
    disk = Disk(costs)
    return disk, measure(folder, OURS, disk.call_of, disk.clock)


def always(cost: int) -> Iterator[int]:
    while True:
        yield cost


def test_number_of_samples_depends_on_the_speed_of_the_disk(tmp_path: Path) -> None:
    disk, cost = timed(tmp_path, always(1000))
    assert cost == SyncCost("fake", 1000, 1000, 1000, 1000, MOST)
    assert len(disk.sizes) == 2 * MOST
    disk, cost = timed(tmp_path, always(2_000_000_000))
    # The first sample after the minimum number spends the budget.
    assert cost.samples == MIN_SAMPLES + 1
    assert len(disk.sizes) == 2 * (MIN_SAMPLES + 1)
    _, cost = timed(tmp_path, always(10_000_000))
    assert cost.samples == MIN_SAMPLES + 15


def test_samples_append_first_and_then_overwrite(tmp_path: Path) -> None:
    costs = (1000 if number < MOST else 70 for number in range(2 * MOST))
    disk, cost = timed(tmp_path, costs)
    assert disk.sizes == [*range(BLOCK, (MOST + 1) * BLOCK, BLOCK), *[MOST * BLOCK] * MOST]
    assert (cost.append_p50_ns, cost.overwrite_p50_ns) == (1000, 70)
    costs = (1000 if number < MOST else 10_000_000 for number in range(2 * MOST))
    assert timed(tmp_path, costs)[1].samples == MIN_SAMPLES + 15


def test_blocks_are_unique_and_no_file_is_left(tmp_path: Path) -> None:
    disk, _ = timed(tmp_path, always(1000))
    assert len(set(disk.blocks)) == len(disk.blocks)
    timed(tmp_path, always(1000))
    assert list(tmp_path.iterdir()) == []


def test_percentiles_are_nearest_ranks(tmp_path: Path) -> None:
    costs = iter([*range(1000, 1000 + MOST), *range(5000, 5000 + MOST)])
    _, cost = timed(tmp_path, costs)
    assert (cost.append_p50_ns, cost.append_p99_ns) == (1099, 1197)
    assert (cost.overwrite_p50_ns, cost.overwrite_p99_ns) == (5099, 5197)


@pytest.mark.parametrize(
    ("percent", "expected"), [(5, 15), (20, 15), (21, 20), (40, 20), (50, 35), (99, 50), (100, 50)]
)
def test_nearest_rank_is_one_of_the_values(percent: int, expected: int) -> None:
    assert nearest_rank([50, 35, 20, 40, 15], percent) == expected
    assert nearest_rank([7], percent) == 7


def test_interruption_leaves_no_file(tmp_path: Path) -> None:
    def interrupted(_: int) -> None:
        assert len(list(tmp_path.iterdir())) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path, OURS, lambda name: interrupted)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EINVAL, errno.EIO])
def test_failed_sync_is_reported_in_a_line_and_leaves_no_file(tmp_path: Path, error: int) -> None:
    def failing(_: int) -> None:
        raise OSError(error, os.strerror(error))

    with pytest.raises(EnvironmentFailure) as raised:
        measure(tmp_path, OURS, lambda name: failing)
    message = str(raised.value)
    assert (
        str(tmp_path) in message
        and os.strerror(error) in message
        and "--dir" in message
        and "\n" not in message
    )
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_or_a_file_is_reported_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for folder in (tmp_path / "absent", file):
        with pytest.raises(EnvironmentFailure, match="cannot write and sync a file in"):
            measure(folder, OURS, lambda name: os.fsync)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_unwritable_folder_is_reported_in_a_line() -> None:
    with pytest.raises(EnvironmentFailure, match="/proc"):
        measure(Path("/proc"), OURS, lambda name: os.fsync)


@pytest.mark.parametrize(
    ("system", "fullfsync", "expected"),
    [
        ("Linux", False, "fdatasync"),
        ("FreeBSD", False, "fdatasync"),
        ("Darwin", False, "fsync"),
        ("Darwin", True, "F_FULLFSYNC"),
        ("Windows", False, "FlushFileBuffers"),
    ],
)
def test_sync_call_is_that_of_sqlite_on_each_system(system: str, fullfsync: bool, expected: str) -> None:
    assert sync_calls(system, fullfsync)[0] == expected


def test_refused_sync_call_is_replaced_by_the_next(tmp_path: Path) -> None:
    def refused(_: int) -> None:
        raise OSError(errno.ENOTSUP, "not here")

    def call_of(name: str) -> Sync:
        return refused if name == "F_FULLFSYNC" else os.fsync

    assert measure(tmp_path, sync_calls("Darwin", True), call_of).primitive == "fsync"


@pytest.mark.skipif(sys.platform != "linux", reason="the calls of Linux")
def test_sync_calls_on_linux_are_real(tmp_path: Path) -> None:
    assert measure(tmp_path, sync_calls("Linux", False)).primitive == "fdatasync"
    assert measure(tmp_path, sync_calls("Darwin", True)).primitive == "fsync"
    calls: list[int] = []
    with patch("os.fdatasync", calls.append):
        call("fdatasync")(7)
    assert calls == [7]
