"""What a sync costs: bounded, with the system's own call, and nothing left behind."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.machine.sync_cost import BLOCK, LEAST, MOST, Sync, call, measure, nearest_rank, primitives
from sqlstress.report import SyncCost

OURS = ("fake",)


class Disk:
    """A clock that only syncs move, and a record of the file at each of them."""

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


def test_a_fast_disk_gives_the_most_samples_a_slow_one_the_least_within_a_bounded_time(
    tmp_path: Path,
) -> None:
    disk, cost = timed(tmp_path, always(1000))
    assert cost == SyncCost("fake", 1000, 1000, 1000, 1000, MOST)
    assert len(disk.sizes) == 2 * MOST
    disk, cost = timed(tmp_path, always(2_000_000_000))
    # The first sample after the least ones is what spends the budget.
    assert cost.samples == LEAST + 1
    assert len(disk.sizes) == 2 * (LEAST + 1)
    _, cost = timed(tmp_path, always(10_000_000))
    assert cost.samples == LEAST + 15


def test_the_first_half_appends_and_the_second_overwrites_and_the_fewer_samples_are_told(
    tmp_path: Path,
) -> None:
    costs = (1000 if number < MOST else 70 for number in range(2 * MOST))
    disk, cost = timed(tmp_path, costs)
    assert disk.sizes == [*range(BLOCK, (MOST + 1) * BLOCK, BLOCK), *[MOST * BLOCK] * MOST]
    assert (cost.append_p50_ns, cost.overwrite_p50_ns) == (1000, 70)
    costs = (1000 if number < MOST else 10_000_000 for number in range(2 * MOST))
    assert timed(tmp_path, costs)[1].samples == LEAST + 15


def test_no_block_is_written_twice_and_nothing_is_left_behind(tmp_path: Path) -> None:
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
def test_a_nearest_rank_is_one_of_the_values(percent: int, expected: int) -> None:
    assert nearest_rank([50, 35, 20, 40, 15], percent) == expected
    assert nearest_rank([7], percent) == 7


def test_nothing_is_left_behind_by_an_interruption(tmp_path: Path) -> None:
    def interrupted(_: int) -> None:
        assert len(list(tmp_path.iterdir())) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path, OURS, lambda name: interrupted)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EINVAL, errno.EIO])
def test_a_sync_that_fails_is_said_in_a_line_and_leaves_nothing(tmp_path: Path, error: int) -> None:
    def failing(_: int) -> None:
        raise OSError(error, os.strerror(error))

    with pytest.raises(EnvironmentFailure) as raised:
        measure(tmp_path, OURS, lambda name: failing)
    said = str(raised.value)
    assert str(tmp_path) in said and os.strerror(error) in said and "--dir" in said and "\n" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_or_is_a_file_is_said_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for folder in (tmp_path / "absent", file):
        with pytest.raises(EnvironmentFailure, match="cannot write and sync a file in"):
            measure(folder, OURS, lambda name: os.fsync)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_folder_that_cannot_be_written_is_said_in_a_line() -> None:
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
def test_the_call_is_the_one_that_sqlite_uses_there(system: str, fullfsync: bool, expected: str) -> None:
    assert primitives(system, fullfsync)[0] == expected


def test_a_call_that_the_file_system_refuses_gives_way_to_the_next(tmp_path: Path) -> None:
    def refused(_: int) -> None:
        raise OSError(errno.ENOTSUP, "not here")

    def call_of(name: str) -> Sync:
        return refused if name == "F_FULLFSYNC" else os.fsync

    assert measure(tmp_path, primitives("Darwin", True), call_of).primitive == "fsync"


@pytest.mark.skipif(sys.platform != "linux", reason="the calls of Linux")
def test_the_calls_of_linux_are_the_systems(tmp_path: Path) -> None:
    assert measure(tmp_path, primitives("Linux", False)).primitive == "fdatasync"
    assert measure(tmp_path, primitives("Darwin", True)).primitive == "fsync"
    made: list[int] = []
    with patch("os.fdatasync", made.append):
        call("fdatasync")(7)
    assert made == [7]
