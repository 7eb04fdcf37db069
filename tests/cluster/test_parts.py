"""The parts of a fleet that need no cluster."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import cast

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.cluster import job
from sqlstress.cluster.connection import Cluster, Connection, Identity, Member, file_name, probe
from sqlstress.cluster.job import Turn, Watch, clean_environment, machine, parsed, problem, who, why_no_report
from sqlstress.cluster.rounds import FleetRequest, Rounds
from sqlstress.errors import EnvironmentFailure, UsageError
from tests.cluster.local_cluster import LONG, PATIENCE_S, PLAN
from tests.drawing import CHARACTERS, examples
from tests.engine.fakes import FakeClock
from tests.engine.processes import environment


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:65535", "tcp://127.9.9.9:2"]
)
def test_this_machine_needs_no_certificates(address: str) -> None:
    assert Cluster.of(address, None, None, None) == Cluster(address)


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("tcp://10.0.0.1:8786", "without TLS, anyone on the network can run code"),
        ("tcp://scheduler:8786", "without TLS"),
        ("tcp://127.0.0.1.example.org:8786", "without TLS"),
        ("tcp://127.0.0.1@evil:8786", "Write tls://"),
        ("tls://scheduler:8786", "--tls-ca is missing"),
        ("tcp://127.0.0.1:0", "Write tls://"),
        ("tcp://127.0.0.1:99999", "Write tls://"),
        ("tcp://" + "x" * 9999, "Write tls://"),
    ],
)
def test_an_address_that_anybody_could_listen_to_is_refused(address: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        Cluster.of(address, None, None, None)


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    with pytest.raises(UsageError, match="No such file"):
        Cluster.of("tls://a:1", file, file, file)
    file.write_text("secret", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a PEM file"):
        Cluster.of("tls://a:1", file, file, file)
    with pytest.raises(UsageError, match="needs tls://"):
        Cluster.of("tcp://127.0.0.1:1", None, file, None)


@pytest.mark.parametrize(
    "greeting", [b"SSH-2.0-OpenSSH_9.2p1\r\n", b"", b"\x01"], ids=["ssh", "nothing", "a byte"]
)
def test_a_server_that_is_no_scheduler_is_told_at_once(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(greeting)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(EnvironmentFailure, match="is not a Dask scheduler"):
            probe(Cluster(f"tcp://127.0.0.1:{server.getsockname()[1]}"))
        thread.join()


def test_nobody_there_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(EnvironmentFailure, match="no Dask scheduler responds"):
        probe(Cluster(f"tcp://127.0.0.1:{port}"))


@settings(max_examples=examples(0.5))
@given(st.text(CHARACTERS, max_size=200), st.sets(st.text(CHARACTERS, max_size=8), max_size=2))
def test_any_name_of_a_host_is_one_file_of_the_folder(host: str, others: set[str]) -> None:
    taken: list[str] = []
    for one in (*others, host, host, host.upper()):
        taken.append(file_name(one, taken))
    assert len({name.lower() for name in taken}) == len(taken)
    for name in taken:
        assert Path("folder", f"{name}.json").parent == Path("folder")
        assert name.isascii() and name.isprintable() and not set(name) & set('/\\:*?"<>| ') and len(name) < 80
        assert not name.startswith(".") and name.lower() not in ("con", "nul", "com1")


def test_one_turn_at_a_time_and_no_file_stays(tmp_path: Path) -> None:
    first, second, elsewhere = (Turn(name, tmp_path) for name in "aab")
    assert first.is_ours() and first.is_ours() and elsewhere.is_ours()
    assert not second.is_ours()
    first.close()
    assert second.is_ours()
    for turn in (first, second, elsewhere):
        turn.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_turn_writes_nothing_into_what_lies_under_its_name(tmp_path: Path) -> None:
    turn = Turn("a", tmp_path)
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    turn.path.symlink_to(mine)
    assert not turn.is_ours()
    turn.close()
    assert mine.read_text(encoding="utf-8") == "mine" and turn.path.is_symlink()


def test_a_host_goes_on_while_the_pulse_beats_and_no_longer_than_its_limit() -> None:
    clock, beats = FakeClock(), iter(range(10**6))
    watch = Watch(lambda: next(beats), 1000.0, clock)
    for clock.now in range(0, 1001, 10):
        assert watch.why_stop() == ""
    clock.now = 1001.0
    assert watch.why_stop() == job.SLOW
    assert Watch(lambda: job.STOP, 10.0, clock).why_stop() == job.STOPPED


@pytest.mark.parametrize("silence", ["the same", "an error"])
def test_a_host_stops_when_nobody_is_heard(silence: str) -> None:
    clock, broken = FakeClock(), False

    def pulse() -> int:
        if broken:
            raise OSError("the connection is gone")
        return 7

    watch = Watch(pulse, 10_000.0, clock)
    assert watch.why_stop() == ""
    broken = silence == "an error"
    clock.now = job.SILENT_S - 1
    assert watch.why_stop() == ""
    clock.now = job.SILENT_S + 1
    assert watch.why_stop() == job.STOPPED


def test_what_dask_puts_into_the_environment_is_taken_out() -> None:
    given = {
        "OMP_NUM_THREADS": "1",
        "DASK_TEMPORARY_DIRECTORY": "/x",
        "MALLOC_TRIM_THRESHOLD_": "65536",
        "PATH": "p",
    }
    assert clean_environment(given) == {"PATH": "p"}


def test_a_host_says_who_it_is() -> None:
    identity = Identity.of(who())
    assert identity.host == socket.gethostname() and identity.machine == machine() != ""
    for text in (None, 7, "[]", "x" * 20_000):
        with pytest.raises(ValueError):
            Identity.of(text)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((job.DONE, 0, "", b"{}"), ""),
        ((job.DONE, 4, "Error: no disk", b""), "exit code 4 and no report: Error: no disk"),
        ((job.SLOW, 130, "", b""), "took more than 5 s"),
        ((job.TWICE, 0, "", b""), "did not do it twice"),
        (("other", 0, "", b""), "not known here"),
    ],
)
def test_an_answer_without_a_report_says_why(answer: job.Answer, told: str) -> None:
    assert parsed(answer) == answer
    assert [parsed(other) for other in (None, "text", (1, 2), (1, "a", "b", b""))] == [None] * 4
    assert told in why_no_report(answer, 5.0) and bool(told) == bool(why_no_report(answer, 5.0))


def test_a_host_without_sqlstress_is_told_what_to_install() -> None:
    missing = ModuleNotFoundError("No module named 'sqlstress'", name="sqlstress")
    assert "pip install sqlstress" in problem(missing, is_there=True)
    older = ModuleNotFoundError("No module named 'sqlstress.cluster'", name="sqlstress.cluster")
    assert "too old" in problem(older, is_there=True)
    assert problem(OSError("closed"), is_there=False) == "it disappeared"


def test_a_plan_goes_out_with_a_seed_that_all_hosts_share(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    asked = FleetRequest.of(plan, tmp_path / "new", ".", "5m", None)
    assert asked.plan.startswith("seed = ") and asked.limit_s == 300
    assert asked.plan.splitlines()[1:] == PLAN.splitlines()
    assert not (tmp_path / "new").exists() and asked.make_folder() and not asked.make_folder()
    plan.write_text(f"seed = 5\n{PLAN}", encoding="utf-8")
    assert FleetRequest.of(plan, tmp_path / "new", ".", "5m", None).plan == f"seed = 5\n{PLAN}"
    with pytest.raises(UsageError, match="is not empty"):
        FleetRequest.of(plan, tmp_path, ".", "5m", None)
    with pytest.raises(UsageError, match="--limit"):
        FleetRequest.of(plan, tmp_path / "new", ".", "long", None)


@pytest.mark.parametrize("measuring", [False, True])
def test_the_guard_is_stopped_by_the_end_of_its_input_and_leaves_nothing(
    tmp_path: Path, measuring: bool
) -> None:
    order = json.dumps({"plan": LONG, "directory": ".", "machine": str(tmp_path)}).encode() + b"\n"
    with subprocess.Popen(
        [sys.executable, "-m", "sqlstress.cluster.job"],
        cwd=tmp_path, env={**environment(), "TMPDIR": str(tmp_path)}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin
        process.stdin.write(order)
        process.stdin.flush()
        if measuring:
            await_workers(process.pid)
        # Else it is stopped at its very start, whatever it does then.
        _, err = process.communicate(timeout=PATIENCE_S)
    assert b"Traceback" not in err
    # At its very start it may have begun to measure all the same.
    assert process.returncode == 130 or not measuring
    assert not list(tmp_path.iterdir())


def await_workers(pid: int) -> None:
    """Wait until a process has children that have children: workers, forked by their server."""
    until = time.monotonic() + PATIENCE_S
    while not [one for child in psutil.Process(pid).children() for one in child.children()]:
        assert time.monotonic() < until
        time.sleep(0.01)


# Tests of what is asked of hosts that load one server together; they need no cluster.


SERVER = 'driver = "psycopg"\ndsn = "postgresql://me:geheim@127.0.0.1:1/mine"\n[[case]]\nworkload = "kv"\n'


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        ('[[case]]\nworkload = "kv"\n', "every case needs target"),
        (SERVER.replace('dsn = "postgresql://me:geheim@127.0.0.1:1/mine"\n', ""), "every case needs target"),
        (
            f'{SERVER}[[case]]\nworkload = "kv"\ndsn = "postgresql://me:geheim@127.0.0.1:2/mine"\n',
            "one server",
        ),
        (SERVER.replace("[[case]]", "[[case]]\nops = 10"), "needs a duration"),
        (SERVER.replace("[[case]]", '[[case]]\nwarmup = "0s"'), "needs a warmup"),
    ],
    ids=["no server", "one of our own", "two servers", "no window", "no warm-up"],
)
def test_what_hosts_can_t_do_together_is_refused(tmp_path: Path, plan: str, named: str) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    file = tmp_path / "plan.toml"
    file.write_text(plan, encoding="utf-8")
    with pytest.raises(UsageError, match=named) as found:
        FleetRequest.of(file, tmp_path / "new", ".", "5m", None, together=True)
    assert "geheim" not in str(found.value)
    file.write_text(SERVER, encoding="utf-8")
    assert FleetRequest.of(file, tmp_path / "new", ".", "5m", None, together=True).together


def test_a_plan_may_hold_a_password_and_is_in_no_task_of_the_cluster(tmp_path: Path) -> None:
    """Dask tells and logs what a task was called with."""
    found: dict[str, list[str]] = {"tasks": [], "tickets": []}

    class Cluster:
        def submit(self, expression: str, worker: str, key: str) -> None:
            found["tasks"].append(f"{expression} {key}")

        def put_ticket(self, name: str, order: str) -> None:
            found["tickets"].append(order)

    asked = FleetRequest(SERVER, tmp_path, ".", 60.0, None, together=True)
    rounds = Rounds(cast(Connection, Cluster()), asked, lambda text: None)
    for name in ("anna", "bert"):
        rounds._introduced.append(Member(f"tcp://{name}:1", None, 0.0, name))
    rounds._begin({"tcp://anna:1", "tcp://bert:1"}, 0.0)
    assert len(found["tasks"]) == 2 and not any("geheim" in task for task in found["tasks"])
    orders = [json.loads(order) for order in found["tickets"]]
    assert [json.loads(one["together"])["host"] for one in orders] == ["anna", "bert"]
    assert all(json.loads(one["together"])["asked"] == ["anna", "bert"] for one in orders)
    assert all("geheim" in one["plan"] for one in orders)
