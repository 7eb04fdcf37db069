"""Load of other programs on processors and disk: arithmetic by hand, and real neighbours."""

import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from sqlstress.machine.foreign_load import (
    MIN_SPAN_MS,
    CpuMonitor,
    CpuSample,
    DiskMonitor,
    DiskSample,
    Family,
    Shares,
    disk_of,
    disk_share,
    look,
    shares,
    throttled,
)
from tests.machine.test_family import running

S = 10**9
PATIENCE_S = 30.0


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (CpuSample(S, 0.0, 0.0, 0.0), Shares(0.0, 0.0)),
        (CpuSample(S, 2.0, 2.0, 0.0), Shares(0.0, 0.0)),
        (CpuSample(S, 2.0, 0.5, 0.0), Shares(0.75, 0.0)),
        (CpuSample(S, 1.0, 1.0, 0.5), Shares(0.0, 0.25)),
        (CpuSample(S, 1.0, 1.1, 0.0), Shares(0.0, 0.0)),
        (CpuSample(S, 9.0, 0.0, 9.0), Shares(1.0, 1.0)),
    ],
    ids=["idle", "all is ours", "others", "a hypervisor", "ticks that disagree", "more than there is"],
)
def test_busy_time_beyond_ours_is_foreign(last: CpuSample, expected: Shares) -> None:
    assert shares(CpuSample(0, 0.0, 0.0, 0.0), last, processors=2) == pytest.approx(expected)


def test_unknown_own_time_leaves_only_the_stolen_share() -> None:
    assert shares(CpuSample(0, 0.0, None, 0.0), CpuSample(S, 2.0, None, 0.5), processors=2) == Shares(
        None, 0.25
    )
    result = seen_at_last(None)
    assert result and result.foreign is None


BUSY = "while True: pass"


def seen_at_last(family: Family | None) -> Shares | None:
    """Watch for increasing times until there is a result: a look takes long on a busy machine."""
    seconds = 0.6
    while not (result := watched(family, seconds)) and seconds < PATIENCE_S:
        seconds *= 2
    return result


def watched(family: Family | None, seconds: float) -> Shares | None:
    start_ns = time.perf_counter_ns()
    watch = CpuMonitor(family, start_ns, start_ns + int(seconds * S))
    while time.perf_counter_ns() < start_ns + seconds * S:
        watch.pulse()
        time.sleep(0.02)
    return watch.shares()


@pytest.mark.thorough
def test_neighbour_that_uses_a_processor_is_seen() -> None:
    with running("import time; time.sleep(60)") as idle, running(BUSY):
        time.sleep(0.2)
        result = seen_at_last(Family(idle.pid))
    # The neighbour may share its processor with other tests.
    assert result and result.foreign is not None and result.foreign > 0.1 / (psutil.cpu_count() or 1)


def test_time_of_our_child_is_ours() -> None:
    with running(BUSY):
        family, until = Family(), time.monotonic() + PATIENCE_S
        first = last = look(family)
        assert first and first.own is not None
        own_s = time.process_time()
        while last and last.own is not None and last.own - first.own - (time.process_time() - own_s) < 0.1:
            assert time.monotonic() < until
            time.sleep(0.05)
            last = look(family)


@pytest.mark.thorough
def test_costly_looks_are_rare_and_an_ended_family_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    looks_taken: list[object] = []

    def costly(family: Family | None) -> CpuSample | None:
        looks_taken.append(family)
        time.sleep(0.03)
        return look(family)

    monkeypatch.setattr("sqlstress.machine.foreign_load.look", costly)
    watched(Family(), 0.6)
    assert 1 <= len(looks_taken) <= 2
    with running(BUSY) as process:
        family = Family(process.pid)
        assert look(family)
    assert look(family) is None
    assert watched(family, 0.15) is None


def test_looks_outside_the_window_or_too_close_give_no_shares() -> None:
    now = time.perf_counter_ns()
    for begins, ends in ((now + 100 * S, now + 200 * S), (now - 2 * S, now - S)):
        watch = CpuMonitor(Family(), begins, ends)
        watch.pulse()
        watch.pulse()
        assert watch.shares() is None
    now = time.perf_counter_ns()
    watch = CpuMonitor(Family(), now, now + S)
    watch.pulse()
    watch.pulse()
    assert watch.shares() is None


def test_throttling_by_heat_is_counted_over_all_processors(tmp_path: Path) -> None:
    assert throttled(tmp_path) is None
    for number in range(3):
        folder = tmp_path / f"cpu{number}" / "thermal_throttle"
        folder.mkdir(parents=True)
        (folder / "core_throttle_count").write_text(f"{number}\n")
        (folder / "package_throttle_count").write_text("1\n")
    assert throttled(tmp_path) == 6
    (tmp_path / "cpu0" / "thermal_throttle" / "core_throttle_count").write_text("hot\n")
    assert throttled(tmp_path) is None


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (DiskSample(S, 0, 0), 0.0),
        (DiskSample(S, 300, 250), 0.25),
        (DiskSample(S, 200, 250), 0.2),
        (DiskSample(S, 8000, 5000), 1.0),
        (DiskSample(S, -5, 100), 0.0),
        (DiskSample(S // 1000, 1, 4), 1 / MIN_SPAN_MS),
    ],
    ids=["quiet", "requests side by side", "ticks", "no more than all", "a new disk", "too short"],
)
def test_disk_share_uses_the_smaller_of_two_times(last: DiskSample, expected: float) -> None:
    assert disk_share(DiskSample(0, 0, 0), last) == pytest.approx(expected)


SYNCS = """
import os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
while True:
    os.pwrite(file, b"x" * 4096, 0)
    os.fsync(file)
"""


def test_syncs_of_another_program_keep_the_disk_busy(tmp_path: Path) -> None:
    disk = disk_of(tmp_path)
    if disk is None:
        pytest.skip("the disk of this folder is not known")
    with running(SYNCS, str(tmp_path / "theirs")):
        until, watch = time.monotonic() + PATIENCE_S, DiskMonitor(disk)
        while not watch.share():
            assert time.monotonic() < until
            time.sleep(0.05)


def test_unknown_disk_has_no_share(tmp_path: Path) -> None:
    assert DiskMonitor(None).share() is None
    assert DiskMonitor("no such disk").share() is None
    assert disk_of(tmp_path / "not there" / "kv") in (None, disk_of(tmp_path))


def test_request_times_count_if_there_is_no_busy_time(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = iter([SimpleNamespace(read_time=1, write_time=1), SimpleNamespace(read_time=9, write_time=11)])
    monkeypatch.setattr(psutil, "disk_io_counters", lambda **_: {"disk0": next(counters)})
    assert DiskMonitor("disk0").share() == pytest.approx(18 / MIN_SPAN_MS)
