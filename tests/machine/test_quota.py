"""CPU quotas of control groups: made-up trees of both versions, and a real throttled group."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlstress.machine.quota import ControlGroup, QuotaMonitor, Stat, read_stat, tightest_group
from tests.brief import PROGRAM
from tests.engine.processes import sqlstress


class Tree:
    """A process's folder in /proc, and a mounted tree of control groups."""

    def __init__(self, folder: Path, *, unified: bool, root: str, path: str) -> None:
        self.proc, self.mounted, self._unified = folder / "proc", folder / "mounted", unified
        self.proc.mkdir()
        self.mounted.mkdir()
        membership = f"0::{path}" if unified else f"4:cpu,cpuacct:{path}\n3:cpuset:/other"
        (self.proc / "cgroup").write_text(f"{membership}\n")
        kind = "cgroup2 cgroup2 rw" if unified else "cgroup cgroup rw,cpu,cpuacct"
        (self.proc / "mountinfo").write_text(
            f"30 20 0:1 / / rw - ext4 /dev/a rw\n31 30 0:2 {root} {self.mounted} rw shared:1 - {kind}\n"
        )

    def limit(self, inner: str, quota_us: int, stat: str = "") -> Path:
        """Set a group's quota per 100 ms; a negative quota means no limit."""
        folder = self.mounted / inner
        folder.mkdir(parents=True, exist_ok=True)
        if self._unified:
            quota = "max" if quota_us < 0 else str(quota_us)
            (folder / "cpu.max").write_text(f"{quota} 100000\n")
        else:
            (folder / "cpu.cfs_quota_us").write_text(f"{quota_us}\n")
            (folder / "cpu.cfs_period_us").write_text("100000\n")
        (folder / "cpu.stat").write_text(stat)
        return folder


@pytest.mark.parametrize("unified", [True, False])
@pytest.mark.parametrize(
    ("root", "path", "inner"),
    [("/", "/pod/app", "pod/app"), ("/pod", "/pod/app", "app"), ("/pod/app", "/pod/app", ""), ("/", "/", "")],
)
def test_quota_of_the_process_group_is_read(
    tmp_path: Path, unified: bool, root: str, path: str, inner: str
) -> None:
    tree = Tree(tmp_path, unified=unified, root=root, path=path)
    assert tightest_group(tree.proc) is None
    folder = tree.limit(inner, -1)
    assert tightest_group(tree.proc) is None
    tree.limit(inner, 50_000)
    assert tightest_group(tree.proc) == ControlGroup(folder, 0.5)


@pytest.mark.parametrize("unified", [True, False])
def test_lowest_quota_of_the_ancestors_applies(tmp_path: Path, unified: bool) -> None:
    tree = Tree(tmp_path, unified=unified, root="/", path="/pod/app")
    parent = tree.limit("pod", 25_000)
    tree.limit("pod/app", 150_000)
    tree.limit("pod/app/child", 1_000)
    assert tightest_group(tree.proc) == ControlGroup(parent, 0.25)


def test_process_without_readable_groups_has_no_quota(tmp_path: Path) -> None:
    assert tightest_group(tmp_path) is None
    tree = Tree(tmp_path, unified=True, root="/", path="/app")
    (tree.limit("app", 5) / "cpu.max").write_text("nonsense")
    assert tightest_group(tree.proc) is None


def test_counters_of_both_versions_are_in_seconds(tmp_path: Path) -> None:
    tree = Tree(tmp_path, unified=True, root="/", path="/app")
    second = "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1500000\n"
    first = "nr_periods 10\nnr_throttled 4\nthrottled_time 1500000000\n"
    for text in (second, first):
        assert read_stat(ControlGroup(tree.limit("app", 50_000, text), 0.5)) == Stat(10, 4, 1.5)
    assert read_stat(ControlGroup(tree.limit("app", 50_000), 0.5)) is None


def test_watch_counts_only_its_window(tmp_path: Path) -> None:
    tree = Tree(tmp_path, unified=True, root="/", path="/app")

    def group_with_periods(periods: int) -> ControlGroup:
        text = f"nr_periods {periods}\nnr_throttled {periods // 2}\nthrottled_usec {periods * 1000}\n"
        return ControlGroup(tree.limit("app", 50_000, text), 0.5)

    before, at_first, later, never = group_with_periods(10), 0, 1 << 62, 1 << 61
    watch = QuotaMonitor(at_first, later, before)
    group_with_periods(20)
    watch.pulse()  # the window is open
    group_with_periods(50)
    throttling = watch.throttling()
    assert throttling and (throttling.periods, throttling.throttled, throttling.stopped_s) == (30, 15, 0.03)
    over = QuotaMonitor(at_first, at_first, group_with_periods(60))
    over.pulse()  # the window has closed
    group_with_periods(90)
    closed = over.throttling()
    assert closed and closed.periods == 0
    assert QuotaMonitor(never, later, ControlGroup(tmp_path, 0.5)).throttling() is None


TREES = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


@pytest.fixture
def limited_program() -> Iterator[tuple[str, ...]]:
    """A program that runs sqlstress with half a core, which it gets also on a busy machine."""
    name = f"sqlstress-test-{os.getpid()}"
    for tree in TREES if sys.platform == "linux" else ():
        settings = {"cpu.max": "50000 100000", "cpu.cfs_quota_us": "50000"}
        weights = {"cpu.weight": "10000", "cpu.shares": "102400"}
        group_folder = tree / name
        try:
            group_folder.mkdir()
        except OSError:
            continue
        limits = [name_of_limit for name_of_limit in settings if (group_folder / name_of_limit).exists()]
        try:
            for name_of_limit in limits:
                (group_folder / name_of_limit).write_text(settings[name_of_limit])
            for weight in weights:
                if (group_folder / weight).exists():
                    (group_folder / weight).write_text(weights[weight])
        except OSError:
            limits = []
        if limits:
            break
        group_folder.rmdir()
    else:
        pytest.skip("no control group with a CPU quota can be made here: that needs Linux and root")
    script = f'echo $BASHPID > {group_folder}/cgroup.procs && exec {" ".join(PROGRAM)} "$@"'
    yield ("bash", "-c", script, "bash")
    while (group_folder / "cgroup.procs").read_text():
        pass  # helpers of the command that are ending
    group_folder.rmdir()


@pytest.mark.thorough
def test_real_quota_is_reported(tmp_path: Path, limited_program: tuple[str, ...]) -> None:
    load = ("kv", "-c", "4", "--repeat", "2", "--duration", "500ms", "--driver", "dry", "-o", "q.json")
    code, output, _ = sqlstress(tmp_path, *load, program=limited_program)
    assert code == 0
    report = json.loads((tmp_path / "q.json").read_text())
    assert report["environment"]["host"]["cpu_quota"] == 0.5
    trials = report["runs"][0]["trials"]
    assert all(trial["quota"]["throttled"] > 0 for trial in trials)
    text = " ".join(output.split())
    assert "limited to 0.5 by a CPU quota" in text
    assert "The CPU quota of 0.5 cores stopped the processes in up to" in text
    assert "Other programs" not in text and "the disk became" not in text
