"""A fleet on a real scheduler with real workers: reports, losses and clean-up."""

import shutil
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from sqlstress.report import read
from tests.cluster.local_cluster import LONG, PATIENCE_S, PLAN, LocalCluster, certificates, tls_variables
from tests.engine.processes import environment

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform == "win32", reason="its workers are ended by a signal here"),
]


PASSWORD = "geheim"
"""A text of the plan that the cluster must not log."""
HOST, BARE = (Path(__file__).with_name(f"preload_{name}.py") for name in ("host", "bare"))


def finish(command: subprocess.Popen[str], code: int) -> tuple[str, str]:
    """Wait for the end of a fleet; return its standard output and standard error."""
    out, err = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == code, err
    return out, err


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.long
def test_hosts_measure_once_and_a_loss_costs_only_its_own_report(tmp_path: Path) -> None:
    """Run the checks in sequence on the same cluster: a scheduler and a worker take seconds to start."""
    pytest.importorskip("distributed")
    with LocalCluster(tmp_path.resolve()) as cluster:
        workers = {name: cluster.worker(name, HOST) for name in ("anna-1", "bert-1", "bert-2")}
        each_host_measures_once(cluster)
        ctrl_c_leaves_nothing_running(cluster)
        a_killed_client_leaves_nothing_running(cluster)
        killed_and_bare_hosts_are_lost(cluster, workers["anna-1"])
        a_scheduler_that_is_killed_ends_it(cluster)


def each_host_measures_once(cluster: LocalCluster) -> None:
    reports = cluster.folder / "reports"
    out, err = finish(cluster.command(f"# {PASSWORD}\n{PLAN}", reports), 0)
    assert names(reports) == ["anna.json", "bert.json"]
    saved = [read(path) for path in sorted(reports.iterdir())]
    assert all(run.error is None and len(run.trials) == 2 for report in saved for run in report.runs)
    # All have the same seed, although the plan has no seed.
    assert len({run.case.seed for report in saved for run in report.runs}) == 1
    saving = {f"{name}: saved in {reports / name}.json" for name in ("anna", "bert")}
    assert saving < set(err.splitlines()) and len(err.splitlines()) == 3
    assert "is on the same machine as bert: measured once" in err
    assert out == f"2 reports saved in {reports}.\n"
    compare = [sys.executable, "-m", "sqlstress", "compare", str(reports)]
    shown = subprocess.run(compare, env=environment(), text=True, capture_output=True, timeout=PATIENCE_S)
    assert shown.returncode == 0 and "A  anna" in shown.stdout and "B  bert" in shown.stdout
    assert not cluster.measuring()
    written = [path for path in cluster.folder.rglob("*") if path.is_file() and path.name != "plan.toml"]
    assert len(written) > 5 and not any(PASSWORD.encode() in path.read_bytes() for path in written)


def ctrl_c_leaves_nothing_running(cluster: LocalCluster) -> None:
    command = cluster.command(LONG, cluster.folder / "stopped")
    cluster.wait_for(lambda: len(cluster.measuring()) == 2)
    command.send_signal(signal.SIGINT)
    out, err = finish(command, 130)
    stop_message = "Error: stopped by SIGINT; 0 reports saved; nothing runs.\n"
    assert out == "" and err.endswith(stop_message) and "saved in" not in err
    assert not cluster.measuring() and not list(cluster.folder.glob("sqlstress-*"))


def a_killed_client_leaves_nothing_running(cluster: LocalCluster) -> None:
    command = cluster.command(LONG, cluster.folder / "killed")
    cluster.wait_for(lambda: len(cluster.measuring()) == 2)
    command.kill()
    command.communicate(timeout=PATIENCE_S)
    cluster.wait_for(lambda: not cluster.measuring())
    assert not list(cluster.folder.glob("sqlstress-*"))


def killed_and_bare_hosts_are_lost(cluster: LocalCluster, anna: psutil.Process) -> None:
    cluster.worker("bare-1", BARE)
    nanny = cluster.worker("dora-1", HOST, nanny=True)
    reports = cluster.folder / "some"
    command = cluster.command(PLAN.replace('"100ms"', '"4s"'), reports)
    cluster.wait_for(lambda: len(cluster.measuring()) == 3)
    # There may also be multiprocessing's resource tracker.
    (dora,) = (child for child in nanny.children() if "resource_tracker" not in " ".join(child.cmdline()))
    for killed_process in (anna, dora):
        killed_process.kill()
    _, err = finish(command, 4)
    for name in ("anna", "dora"):
        assert f"{name}: it disappeared while it was measuring" in err
    assert "No module named 'sqlstress'" in err
    assert names(reports) == ["bert.json"]
    assert all(read(path).runs[0].error is None for path in reports.iterdir())
    cluster.wait_for(lambda: not cluster.measuring())
    assert not list(cluster.folder.glob("sqlstress-*"))


def a_scheduler_that_is_killed_ends_it(cluster: LocalCluster) -> None:
    command = cluster.command(LONG, cluster.folder / "alone")
    cluster.wait_for(cluster.measuring)
    cluster.scheduler.kill()
    _, err = finish(command, 4)
    assert "bert: the scheduler no longer responds" in err and "distributed" not in err
    cluster.wait_for(lambda: not cluster.measuring())


def test_fleets_take_turns_on_a_machine_and_tls_needs_certificates(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here")
    for name in ("plain", "safe", "strange"):
        (tmp_path / name).mkdir()
    cert, key = certificates(tmp_path / "safe")
    # Reports have their start in whole seconds: each takes more than two.
    plan = PLAN.replace('"100ms"', '"1s"')
    tls_options = ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key)
    # A worker does a single task at a time: each fleet has its own worker.
    with (
        LocalCluster((tmp_path / "plain").resolve()) as plain,
        LocalCluster((tmp_path / "safe").resolve(), tls_options) as safe,
    ):
        for cluster in (plain, safe):
            cluster.worker("anna-1", HOST)
        assert safe.address.startswith("tls://")
        commands = [
            cluster.command(plan, cluster.folder / "reports", variables)
            for cluster, variables in ((plain, {}), (safe, tls_variables(cert, key)))
        ]
        for command in commands:
            finish(command, 0)
        first, second = (
            datetime.fromisoformat(read(cluster.folder / "reports" / "anna.json").created)
            for cluster in (plain, safe)
        )
        assert abs((first - second).total_seconds()) >= 2
        strange = certificates(tmp_path / "strange")
        no_folder = safe.folder / "none"
        for variables in ({}, tls_variables(*strange)):
            _, err = finish(safe.command(PLAN, no_folder, variables), 4)
            assert "no Dask scheduler responds" in err and len(err.splitlines()) == 1
            assert not no_folder.exists()
