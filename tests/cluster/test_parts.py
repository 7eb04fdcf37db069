"""Parts of a fleet that need no cluster."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("distributed")

from sqlstress.cluster import fleet, job
from sqlstress.cluster.fleet import Fleet, connected, file_name, order_of, security_of
from sqlstress.cluster.job import HeartbeatMonitor, identity, take_turn
from sqlstress.errors import EnvironmentFailure, UsageError
from tests.cluster.local_cluster import LONG, PATIENCE_S, PLAN
from tests.drawing import CHARACTERS, examples
from tests.engine.fakes import FakeClock
from tests.engine.processes import environment
from tests.rows import thorough


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:65535"])
def test_local_address_needs_no_certificates(address: str) -> None:
    assert not security_of(address).require_encryption


def test_remote_address_needs_encryption() -> None:
    assert security_of("tls://scheduler:8786").require_encryption


@pytest.mark.parametrize(
    "address",
    [
        "tcp://10.0.0.1:8786",
        "tcp://scheduler:8786",
        "tcp://127.0.0.1.example.org:8786",
        "tcp://127.0.0.1@evil:8786",
        "tcp://evil:1@127.0.0.1:2",
        "tls://scheduler",
        "127.0.0.1:8786",
        "tcp://" + "x" * 9999,
    ],
)
def test_unencrypted_address_of_another_machine_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="Without TLS, anyone on the network can run code") as error:
        security_of(address)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    "greeting",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2p1\r\n", id="ssh"),
        thorough(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="http"),
        thorough(b"", id="nothing"),
        thorough(b"\x01", id="a byte"),
    ],
)
def test_another_server_is_refused_at_once(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=greet, args=(server, greeting), daemon=True).start()
        began = time.monotonic()
        assert_no_scheduler(server.getsockname()[1])
        assert time.monotonic() - began < fleet.CONNECT_S


def greet(server: socket.socket, greeting: bytes) -> None:
    """Send a greeting on each connection, and close it, until the server is closed."""
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(greeting)


def test_silent_server_is_refused_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert_no_scheduler(server.getsockname()[1])


def assert_no_scheduler(port: int) -> None:
    """Assert that a connection fails with a message of a single line."""
    address = f"tcp://127.0.0.1:{port}"
    with pytest.raises(EnvironmentFailure, match="no Dask scheduler responds") as error, connected(address):
        pass
    assert "\n" not in str(error.value)


@settings(max_examples=examples(0.5))
@given(st.text(CHARACTERS, max_size=200), st.sets(st.text(CHARACTERS, max_size=8), max_size=2))
def test_any_host_name_gives_a_unique_file_in_the_folder(host: str, others: set[str]) -> None:
    file_names: list[str] = []
    for host_name in (*others, host, host, host.upper()):
        file_names.append(file_name(host_name, file_names))
    assert len({name.lower() for name in file_names}) == len(file_names)
    for name in file_names:
        assert Path("folder", f"{name}.json").parent == Path("folder")
        assert name.isascii() and name.isprintable() and not set(name) & set('/\\:*?"<>| ') and len(name) < 80
        assert not name.startswith(".")


def test_machine_gives_a_single_turn_at_a_time() -> None:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        port = first.getsockname()[1]
        assert not take_turn(second, port)
        first.close()
        assert take_turn(second, port)


def test_host_measures_while_there_are_heartbeats() -> None:
    clock, beats = FakeClock(), iter(range(10**6))
    watch = HeartbeatMonitor(lambda: next(beats), clock)
    for clock.now in range(0, 1001, 10):
        watch.check()
    with pytest.raises(EnvironmentFailure, match="the fleet was stopped"):
        HeartbeatMonitor(lambda: job.STOP, clock).check()


@pytest.mark.parametrize("silence", ["the same", "an error"])
def test_host_stops_without_a_new_heartbeat(silence: str) -> None:
    clock, broken = FakeClock(), False

    def read() -> int:
        if broken:
            raise OSError("the connection is gone")
        return 7

    watch = HeartbeatMonitor(read, clock)
    watch.check()
    broken = silence == "an error"
    clock.now = job.SILENT_S - 1
    watch.check()
    clock.now = job.SILENT_S + 1
    with pytest.raises(EnvironmentFailure, match="the fleet was stopped"):
        watch.check()


def test_host_reports_its_name_and_machine() -> None:
    name, machine = identity()
    assert name == socket.gethostname() and machine and identity() == (name, machine)


def test_plan_is_sent_with_a_seed_that_all_hosts_share(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    seed, *lines = order_of(plan, ".")["plan"].splitlines()
    assert seed.startswith("seed = ") and lines == PLAN.splitlines()
    plan.write_text(f"seed = 5\n{PLAN}", encoding="utf-8")
    assert order_of(plan, "/data") == {"plan": f"seed = 5\n{PLAN}", "directory": "/data"}


@pytest.mark.parametrize("measuring", [False, True])
def test_guard_stops_at_the_end_of_its_input_and_leaves_nothing(tmp_path: Path, measuring: bool) -> None:
    order = json.dumps({"plan": LONG, "directory": ".", "port": 0}).encode() + b"\n"
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
        # Otherwise it is stopped at its start, in any state.
        _, err = process.communicate(timeout=PATIENCE_S)
    assert b"Traceback" not in err
    # A guard that is stopped at its start may still begin to measure.
    assert process.returncode == 130 or not measuring
    assert not list(tmp_path.iterdir())


def await_workers(pid: int) -> None:
    """Wait until a process has grandchildren: workers, forked by their server."""
    until = time.monotonic() + PATIENCE_S
    while not [grandchild for child in psutil.Process(pid).children() for grandchild in child.children()]:
        assert time.monotonic() < until
        time.sleep(0.01)


class FakeFuture:
    """A task that has ended with an answer or an error."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def done(self) -> bool:
        return True

    def result(self, timeout: float) -> object:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class FakeClient:
    """A cluster whose tasks have ended; it records the text that Dask would log of them."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers = answers
        self.logged: list[str] = []

    def submit(self, function: object, text: str, **options: object) -> FakeFuture:
        self.logged.append(f"{text} {options}")
        return FakeFuture(next(answer for name, answer in self.answers.items() if name in str(options)))

    def nthreads(self, callback_timeout: float) -> dict[str, int]:
        return {}


class FakeVariable:
    """A variable of a cluster."""

    texts: ClassVar[list[object]] = []

    def __init__(self, name: str, client: object) -> None:
        pass

    def set(self, value: object, timeout: float) -> None:
        self.texts.append(value)


def run_fleet(
    monkeypatch: pytest.MonkeyPatch, folder: Path, answers: Mapping[str, object], plan: str = PLAN
) -> tuple[Fleet, FakeClient, list[str]]:
    """Run a fleet on hosts with these answers; return the fleet, its client and its output lines."""
    monkeypatch.setattr("distributed.Variable", FakeVariable)
    client, lines = FakeClient(answers), list[str]()
    fleet = Fleet(client, folder, lines.append)
    fleet.start({f"tcp://{name}:1": (name, f"machine of {name}") for name in answers}, {"plan": plan})
    fleet.wait(lambda: None)
    return fleet, client, lines


def test_password_of_a_plan_is_in_no_task_of_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask shows and logs the arguments of a task."""
    plan = 'dsn = "postgresql://me:geheim@127.0.0.1:1/mine"\n'
    answers = dict.fromkeys(("anna", "bert"), (0, "", b"{}"))
    _, client, _ = run_fleet(monkeypatch, tmp_path, answers, plan)
    assert len(client.logged) == 2 and not any("geheim" in text for text in client.logged)
    assert any("geheim" in str(text) for text in FakeVariable.texts)


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"anna": (0, "", b"{}"), "bert": (0, "", b"{}")}, 0),
        ({"anna": (3, "suspicious", b"{}"), "bert": (0, "", b"{}")}, 3),
        ({"anna": (3, "suspicious", b"{}"), "bert": (4, "no disk", b"{}")}, 4),
        ({"anna": (4, "no disk", b"{}"), "bert": (1, "wrong data", b"{}")}, 1),
        ({"anna": (0, "", b"{}"), "bert": EnvironmentFailure("no report")}, 4),
        ({"anna": (0, "", b"{}"), "bert": (130, "stopped", b"{}")}, 4),
        ({"anna": (0, "", b"{}"), "bert": ("answer", "of another version")}, 4),
    ],
    ids=["fine", "inconclusive", "failure", "wrong data", "lost", "stopped on the host", "another version"],
)
def test_exit_code_is_the_worst_of_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, object], code: int
) -> None:
    fleet, _, lines = run_fleet(monkeypatch, tmp_path, answers)
    assert fleet.exit_code() == code
    assert [line.partition(":")[0] for line in lines] == ["anna", "bert"]
    for line, (name, answer) in zip(lines, answers.items(), strict=True):
        match answer:
            case (int(), str(reason), bytes()):
                assert reason in line and (tmp_path / f"{name}.json").read_text() == "{}"
            case Exception():
                assert str(answer) in line and not (tmp_path / f"{name}.json").exists()
