"""Tests of hosts that load one server together: a real cluster, and a real server."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from sqlstress.report import read
from tests.cli.on_postgres import password, schemas
from tests.cluster.local_cluster import PATIENCE_S, LocalCluster
from tests.cluster.preload_skewed import SKEW_NS
from tests.servers import running_server

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform == "win32", reason="its workers are ended by a signal here"),
]

HOST, SKEWED, LATE = (Path(__file__).with_name(f"preload_{name}.py") for name in ("host", "skewed", "late"))
PLAN = """\
repeat = 2
duration = "1s"
warmup = "200ms"
key-space = 500
driver = "psycopg"
dsn = "{dsn}"
[[case]]
workload = "kv"
synchronous = "off"
concurrency = "1,2"
"""
ABC = ["anna", "bert", "carl"]
ATTEMPTS = 3


@pytest.fixture(scope="module")
def dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed")
    with running_server(tmp_path_factory.mktemp("together"), connections=60) as found:
        yield found


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    # Turns on a machine are taken there: hosts of one name in two tests at once would wait for each other.
    (turns := tmp_path / "turns").mkdir()
    monkeypatch.setenv("TMPDIR", str(turns))
    with LocalCluster(tmp_path.resolve()) as found:
        yield found


@contextmanager
def watched(dsn: str) -> Iterator[list[int]]:
    """Look, again and again, how many hosts' workers are busy at the same moment."""
    seen, stop = [0], threading.Event()

    def look() -> None:
        sql = (
            "SELECT count(DISTINCT application_name) FROM pg_stat_activity "
            "WHERE query_start > clock_timestamp() - interval '20 ms' AND application_name LIKE 'sqlstress%'"
        )
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not stop.wait(0.005):
                row = connection.execute(sql).fetchone()
                seen.append(row[0] if row else 0)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def told(cluster: LocalCluster) -> Any:
    return json.loads((cluster.folder / "fleet.json").read_text(encoding="utf-8"))


def test_hosts_load_one_server_together(cluster: LocalCluster, dsn: str) -> None:
    """One after the other on one cluster: a scheduler and a worker take seconds to start."""
    workers = {
        name: cluster.worker(f"{name}-1", preload)
        for name, preload in zip(ABC, (HOST, HOST, SKEWED), strict=True)
    }
    cluster.begin("late-1", LATE)
    their_total_is_the_sum_of_their_windows_and_no_password_is_told(cluster, dsn)
    ctrl_c_while_hosts_wait_for_each_other_leaves_nothing(cluster, dsn)
    one_that_joins_when_the_others_have_begun_is_left_out(cluster, dsn)
    one_that_is_lost_in_the_middle_is_named_and_left_out(cluster, dsn, workers["carl"])


def their_total_is_the_sum_of_their_windows_and_no_password_is_told(cluster: LocalCluster, dsn: str) -> None:
    for number in range(ATTEMPTS):
        reports = cluster.folder / f"reports-{number}"
        with watched(dsn) as busy:
            outputs = ("-o", "fleet.json", "-o", "f.html", "-o", "f.md")
            command = cluster.command(PLAN.format(dsn=dsn), reports, "--together", *outputs)
            out, err = command.communicate(timeout=PATIENCE_S)
        if "a total covers" not in err:  # on a busy machine a host may miss a window, and that is said
            break
    assert command.returncode == 0, err
    assert max(busy) == 3
    found = {name: read(reports / f"{name}.json") for name in ABC}
    totals = told(cluster)["totals"]
    assert [(one["processes_each"], one["hosts"], one["asked"]) for one in totals] == [
        (1, 3, ABC),
        (2, 3, ABC),
    ]
    for number, joint in enumerate(totals):
        own = [found[name].runs[number].trials for name in ABC]
        assert all(trial.together and trial.error is None for trials in own for trial in trials)
        # A list: two trials may have the same total.
        sums = [
            sum(trial.transactions / trial.seconds for trial in trials) for trials in zip(*own, strict=True)
        ]
        assert sorted(trial["total"] for trial in joint["trials"]) == pytest.approx(sorted(sums))
        assert joint["total"] == pytest.approx(min(sums)) and joint["without"] == []
        for trial in joint["trials"]:
            # On one machine a round trip is short, but others are at work here.
            assert 0 < trial["off_share"] < 0.1 and 0.9 < trial["common_s"] <= 1.001
            opens = [one["opens_ns"] for one in trial["hosts"]]
            assert max(opens) - min(opens) <= 2 * trial["error_ns"]
    # The server's clock is this machine's: so what is told of a clock can be held against what it is.
    for trial in (trial for run in found["carl"].runs for trial in run.trials):
        assert trial.together
        assert abs(trial.together.clock_ns - SKEW_NS) <= trial.together.clock_error_ns + 10**6
    for trial in (trial for run in found["anna"].runs for trial in run.trials):
        assert trial.together and abs(trial.together.clock_ns) <= trial.together.clock_error_ns + 10**6
    assert schemas(dsn) == []
    flat = " ".join(out.split())
    assert "TOTAL of 3 hosts on sqlstress@127.0.0.1:" in flat and "3 of 3" in flat
    assert "only figures called TOTAL are sums" in flat and all(len(line) <= 80 for line in out.splitlines())
    page = (cluster.folder / "f.html").read_text(encoding="utf-8")
    assert "TOTAL of 3 hosts" in page and "Each host has its own tables" in page
    (cluster.folder / "plan.toml").unlink()
    written = [path for path in cluster.folder.rglob("*") if path.is_file()]
    assert len(written) > 8
    for text in (out.encode(), err.encode(), *(path.read_bytes() for path in written)):
        assert password(dsn).encode() not in text


def ctrl_c_while_hosts_wait_for_each_other_leaves_nothing(cluster: LocalCluster, dsn: str) -> None:
    command = cluster.command(PLAN.format(dsn=dsn), cluster.folder / "stopped", "--together")
    cluster.wait_for(lambda: len(cluster.measuring()) == 3)
    cluster.wait_for(lambda: len(schemas(dsn)) > 1)
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=PATIENCE_S)
    assert (command.returncode, out) == (130, "") and "nothing runs on any host" in err
    cluster.wait_for(lambda: not cluster.measuring())
    assert schemas(dsn) == []


def one_that_joins_when_the_others_have_begun_is_left_out(cluster: LocalCluster, dsn: str) -> None:
    plan = PLAN.replace('"1s"', '"2s"').replace('"1,2"', "1")
    command = cluster.command(plan.format(dsn=dsn), cluster.folder / "late", "--together")
    cluster.wait_for(lambda: len(cluster.measuring()) == 3)
    (cluster.folder / "called").touch()
    out, err = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 4 and "late: it came when the others had begun together" in err
    assert "TOTAL of 3 hosts on" in " ".join(out.split())


def one_that_is_lost_in_the_middle_is_named_and_left_out(
    cluster: LocalCluster, dsn: str, carl: psutil.Process
) -> None:
    left = ("anna", "bert", "late")
    plan = PLAN.replace('"1s"', '"3s"').replace('"1,2"', "1")
    reports = cluster.folder / "lost"
    command = cluster.command(plan.format(dsn=dsn), reports, "--together", "-o", "fleet.json")
    with watched(dsn) as busy:
        cluster.wait_for(lambda: max(busy) == 4 or command.poll() is not None)
    carl.kill()
    out, err = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 4 and "carl: it disappeared while it was measuring" in err
    flat = " ".join(out.split())
    assert "TOTAL of 3 of 4 hosts" in flat
    assert "Not in the total: carl: it began with the others, and there is no trial of it." in flat
    (joint,) = told(cluster)["totals"]
    assert joint["hosts"] == 3 and [one["host"] for one in joint["without"]] == ["carl"]
    # The trial in which it was lost, and the one that the others began without it.
    assert [len(read(reports / f"{name}.json").runs[0].valid) for name in left] == [2, 2, 2]
    last = read(reports / "anna.json").runs[0].trials[-1].together
    assert last and last.began == left and sorted(last.asked) == sorted((*ABC, "late"))
    cluster.wait_for(lambda: not cluster.measuring())
    assert schemas(dsn) == []
