"""Tests of a fleet on a real scheduler with real workers: what comes back, what is lost, what stays."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.fleet.cluster import LONG, PATIENCE_S, PLAN, LocalCluster, certificates
from sqlstress.report import read

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform == "win32", reason="its workers are ended by a signal here"),
]


HOST, BARE = (Path(__file__).with_name(f"preload_{name}.py") for name in ("host", "bare"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    pytest.importorskip("distributed")
    with LocalCluster(tmp_path.resolve()) as found:
        yield found


def test_each_host_measures_once_and_its_report_is_whole(cluster: LocalCluster) -> None:
    for name in ("anna-1", "bert-1", "bert-2"):
        cluster.worker(name, HOST)
    reports = cluster.folder / "reports"
    command = cluster.command(PLAN, reports, "-o", "fleet.json")
    out, err = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 0, err
    assert sorted(path.name for path in reports.iterdir()) == ["anna.json", "bert.json"]
    found = [read(path) for path in sorted(reports.iterdir())]
    assert all(run.error is None and len(run.trials) == 2 for one in found for run in one.runs)
    # One seed for all, though the plan has none.
    assert len({run.case.seed for one in found for run in one.runs}) == 1
    assert "is on the same machine as bert: measured once." in " ".join(out.split())
    assert {f"{name}: saved in {reports / name}.json" for name in ("anna", "bert")} == set(err.splitlines())
    assert {host["name"] for host in json.loads((cluster.folder / "fleet.json").read_text())["hosts"]} == {
        "anna", "bert",
    }  # fmt: skip
    assert not cluster.measuring()


def test_over_tls_and_not_without_it(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here")
    cert, key = certificates(tmp_path)
    with LocalCluster(
        tmp_path.resolve(), ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key)
    ) as cluster:
        cluster.worker("anna-1", HOST)
        assert cluster.address.startswith("tls://")
        ours = ("--tls-ca", cert, "--tls-cert", cert, "--tls-key", key)
        command = cluster.command(PLAN, cluster.folder / "reports", *ours)
        _, err = command.communicate(timeout=PATIENCE_S)
        assert command.returncode == 0, err
        (tmp_path / "other").mkdir()
        stranger, strange_key = certificates(tmp_path / "other")
        command = cluster.command(
            PLAN,
            cluster.folder / "none",
            "--tls-ca",
            stranger,
            "--tls-cert",
            stranger,
            "--tls-key",
            strange_key,
        )
        _, err = command.communicate(timeout=PATIENCE_S)
        assert (
            command.returncode == 4 and "no scheduler of Dask's answers" in err and len(err.splitlines()) == 1
        )
        assert not (cluster.folder / "none").exists()


@pytest.mark.parametrize("nanny", [False, True], ids=["alone", "with a nanny"])
def test_a_worker_that_is_killed_costs_its_own_report_only(cluster: LocalCluster, nanny: bool) -> None:
    killed = cluster.worker("anna-1", HOST, nanny=nanny)
    cluster.worker("bert-1", HOST)
    reports = cluster.folder / "reports"
    command = cluster.command(PLAN.replace('"100ms"', '"4s"'), reports)
    cluster.wait_for(lambda: len(cluster.measuring()) == 2)
    if nanny:
        # Beside it there may be multiprocessing's tracker.
        (killed,) = (one for one in killed.children() if "resource_tracker" not in " ".join(one.cmdline()))
    killed.kill()
    _, err = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 4
    assert "anna: it disappeared while it was measuring" in err
    assert [path.name for path in reports.iterdir()] == ["bert.json"]
    assert read(reports / "bert.json").runs[0].error is None
    cluster.wait_for(lambda: not cluster.measuring())
    assert not list(cluster.folder.glob("sqlstress-*"))


def test_ctrl_c_leaves_nothing_running(cluster: LocalCluster) -> None:
    for name in ("anna-1", "bert-1"):
        cluster.worker(name, HOST)
    command = cluster.command(LONG, cluster.folder / "reports")
    cluster.wait_for(lambda: len(cluster.measuring()) == 2)
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=PATIENCE_S)
    assert (command.returncode, out) == (130, "")
    assert err == "Error: stopped by SIGINT; no host had ended; nothing runs on any host.\n"
    assert not cluster.measuring() and not list(cluster.folder.glob("sqlstress-*"))


def test_a_scheduler_that_is_killed_ends_it(cluster: LocalCluster) -> None:
    cluster.worker("anna-1", HOST)
    command = cluster.command(LONG, cluster.folder / "reports")
    cluster.wait_for(lambda: len(cluster.measuring()) == 1)
    cluster.scheduler.kill()
    _, err = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 4 and "anna: the scheduler does not answer any more" in err
    cluster.wait_for(lambda: not cluster.measuring())


def test_a_host_without_sqlstress_a_slow_one_and_a_late_one(cluster: LocalCluster) -> None:
    cluster.worker("bare-1", BARE)
    cluster.worker("anna-1", HOST)
    command = cluster.command(
        PLAN.replace('"100ms"', '"3s"'), cluster.folder / "reports", "--hosts", "2", "--limit", "60s"
    )
    cluster.wait_for(lambda: len(cluster.measuring()) == 1)
    cluster.worker("late-1", HOST)
    _, err = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 4
    assert "sqlstress is not installed there: python -m pip install sqlstress" in err
    assert sorted(path.name for path in (cluster.folder / "reports").iterdir()) == ["anna.json", "late.json"]

    command = cluster.command(LONG, cluster.folder / "slow", "--limit", "5s")
    _, err = command.communicate(timeout=PATIENCE_S)
    assert "anna: it took more than 5 s and was stopped (--limit)" in err and command.returncode == 4
    assert not cluster.measuring()


def test_two_fleets_take_turns_on_a_machine(cluster: LocalCluster) -> None:
    # Reports say the second in which they were begun: each takes more than two.
    plan = PLAN.replace('"100ms"', '"1s"')
    apart = cluster.folder / "apart"
    apart.mkdir()
    # One worker does one task at a time: each fleet has a worker of its own.
    with LocalCluster(apart) as another:
        commands = []
        for one in (cluster, another):
            one.worker("anna-1", HOST)
            commands.append(one.command(plan, one.folder / "reports"))
        for command in commands:
            _, err = command.communicate(timeout=PATIENCE_S)
            assert command.returncode == 0, err
    first, second = (
        datetime.fromisoformat(read(one.folder / "reports" / "anna.json").created)
        for one in (cluster, another)
    )
    assert abs((first - second).total_seconds()) >= 2
