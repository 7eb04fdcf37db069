"""The parts of a fleet that need no cluster."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("distributed")

from sqlstress.cluster import fleet, job
from sqlstress.cluster.fleet import (
    FleetRequest,
    Member,
    Rounds,
    connected,
    file_name,
    problem,
    security_of,
)
from sqlstress.cluster.job import Turn, Watch, clean_environment, identity, machine
from sqlstress.errors import EnvironmentFailure, UsageError
from tests.cluster.local_cluster import LONG, PATIENCE_S, PLAN
from tests.drawing import CHARACTERS, examples
from tests.engine.fakes import FakeClock
from tests.engine.processes import environment


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:65535", "tcp://127.9.9.9:2"]
)
def test_this_machine_needs_no_certificates(address: str) -> None:
    assert not security_of(address, None, None, None).require_encryption


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
        security_of(address, None, None, None)


def test_a_file_without_a_certificate_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    with pytest.raises(UsageError, match="No such file"):
        security_of("tls://a:1", file, file, file)
    file.write_text("secret", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a PEM file"):
        security_of("tls://a:1", file, file, file)
    with pytest.raises(UsageError, match="needs tls://"):
        security_of("tcp://127.0.0.1:1", None, file, None)


@pytest.mark.parametrize(
    "greeting",
    [b"SSH-2.0-OpenSSH_9.2p1\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"\x01"],
    ids=["ssh", "http", "nothing", "a byte"],
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


def test_a_silent_server_is_refused_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert "no answer within" in assert_no_scheduler(server.getsockname()[1])


def test_a_closed_port_is_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    began = time.monotonic()
    assert_no_scheduler(port)
    assert time.monotonic() - began < fleet.CONNECT_S


def assert_no_scheduler(port: int) -> str:
    """Assert that a connection fails in one line; return the line."""
    address = f"tcp://127.0.0.1:{port}"
    with (
        pytest.raises(EnvironmentFailure, match="no Dask scheduler responds") as error,
        connected(address, security_of(address, None, None, None)),
    ):
        pass
    assert "\n" not in str(error.value)
    return str(error.value)


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


def test_a_machine_gives_one_turn_at_a_time_and_keeps_no_file(tmp_path: Path) -> None:
    first, second, elsewhere = (Turn(name, tmp_path) for name in "aab")
    assert first.take() and first.take() and elsewhere.take()
    assert not second.take()
    first.close()
    assert second.take()
    for turn in (first, second, elsewhere):
        turn.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_turn_writes_nothing_into_what_lies_under_its_name(tmp_path: Path) -> None:
    turn = Turn("a", tmp_path)
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    turn.path.symlink_to(mine)
    assert not turn.take()
    turn.close()
    assert mine.read_text(encoding="utf-8") == "mine" and turn.path.is_symlink()


def test_a_host_measures_while_the_heart_beats_and_no_longer_than_its_limit() -> None:
    clock, beats = FakeClock(), iter(range(10**6))
    watch = Watch(lambda: next(beats), 1000.0, clock)
    for clock.now in range(0, 1001, 10):
        watch.check()
    clock.now = 1001.0
    with pytest.raises(EnvironmentFailure, match="more than 1000 s and was stopped"):
        watch.check()
    with pytest.raises(EnvironmentFailure, match="the fleet was stopped"):
        Watch(lambda: job.STOP, 10.0, clock).check()


@pytest.mark.parametrize("silence", ["the same", "an error"])
def test_a_host_stops_without_a_new_heartbeat(silence: str) -> None:
    clock, broken = FakeClock(), False

    def read() -> int:
        if broken:
            raise OSError("the connection is gone")
        return 7

    watch = Watch(read, 10_000.0, clock)
    watch.check()
    broken = silence == "an error"
    clock.now = job.SILENT_S - 1
    watch.check()
    clock.now = job.SILENT_S + 1
    with pytest.raises(EnvironmentFailure, match="the fleet was stopped"):
        watch.check()


def test_variables_of_dask_are_removed_from_the_environment() -> None:
    given = {
        "OMP_NUM_THREADS": "1",
        "DASK_TEMPORARY_DIRECTORY": "/x",
        "MALLOC_TRIM_THRESHOLD_": "65536",
        "PATH": "p",
    }
    assert clean_environment(given) == {"PATH": "p"}


def test_a_host_reports_its_name_and_machine() -> None:
    assert identity() == (socket.gethostname(), machine()) and machine()


def test_a_host_without_sqlstress_gets_the_command_that_installs_it() -> None:
    missing = ModuleNotFoundError("No module named 'sqlstress'", name="sqlstress")
    assert "pip install sqlstress" in problem(missing, is_present=True)
    older = ModuleNotFoundError("No module named 'sqlstress.cluster'", name="sqlstress.cluster")
    assert "too old" in problem(older, is_present=True)
    assert problem(OSError("closed"), is_present=False) == "it disappeared"


def test_a_plan_goes_out_with_a_seed_that_all_hosts_share(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    request = FleetRequest.of(plan, tmp_path / "new", ".", "5m", None)
    assert request.plan.startswith("seed = ") and request.limit_s == 300
    assert request.plan.splitlines()[1:] == PLAN.splitlines() and not (tmp_path / "new").exists()
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
    # A guard that is stopped at its start may still begin to measure.
    assert process.returncode == 130 or not measuring
    assert not list(tmp_path.iterdir())


def await_workers(pid: int) -> None:
    """Wait until a process has children that have children: workers, forked by their server."""
    until = time.monotonic() + PATIENCE_S
    while not [one for child in psutil.Process(pid).children() for one in child.children()]:
        assert time.monotonic() < until
        time.sleep(0.01)


class FakeFuture:
    """A task that has ended with an answer or an error."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def done(self) -> bool:
        return True

    def cancel(self) -> None:
        pass

    def result(self, timeout: float) -> object:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class FakeRounds(Rounds):
    """Rounds without a cluster: they record tasks and tickets."""

    def __init__(self, folder: Path, plan: str = PLAN) -> None:
        self.tasks: list[str] = []
        self.tickets: list[str] = []
        self.lines: list[str] = []
        request = FleetRequest(plan, folder, ".", 60.0, None)
        super().__init__(None, request, self.lines.append)

    def _put_ticket(self, name: str, order: str) -> None:
        self.tickets.append(order)

    def _submit(self, expression: str, worker: str, key: str) -> None:
        self.tasks.append(f"{expression} {key}")

    def answer(self, name: str, answer: object, is_measuring: bool = True) -> None:
        """Let a worker answer."""
        member = Member(f"tcp://{name}:1", name, FakeFuture(answer), 0.0, is_measuring)
        self._members.append(member)
        self._advance(member, True)


def test_a_password_in_a_plan_is_in_no_task_of_the_cluster(tmp_path: Path) -> None:
    """Dask shows and logs the arguments of a task."""
    rounds = FakeRounds(tmp_path, 'dsn = "postgresql://me:geheim@127.0.0.1:1/mine"\n')
    for name in ("anna", "bert"):
        rounds.answer(name, (name, f"machine of {name}"), is_measuring=False)
    assert len(rounds.tasks) == 2 and not any("geheim" in task for task in rounds.tasks)
    assert all("geheim" in json.loads(ticket)["plan"] for ticket in rounds.tickets)


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
def test_the_exit_code_is_the_worst_of_the_hosts(
    tmp_path: Path, answers: dict[str, object], code: int
) -> None:
    rounds = FakeRounds(tmp_path)
    for name, answer in answers.items():
        rounds.answer(name, answer)
    assert rounds.exit_code() == code
    assert [line.partition(":")[0] for line in rounds.lines] == ["anna", "bert"]
    for line, (name, answer) in zip(rounds.lines, answers.items(), strict=True):
        match answer:
            case (int(), str(reason), bytes()):
                assert reason in line and (tmp_path / f"{name}.json").read_text() == "{}"
            case Exception():
                assert str(answer) in line and not (tmp_path / f"{name}.json").exists()


def test_fewer_hosts_than_requested_exit_4(tmp_path: Path) -> None:
    rounds = FakeRounds(tmp_path)
    rounds.request = replace(rounds.request, hosts=2, limit_s=-1.0)
    rounds.answer("anna", (0, "", b"{}"))
    rounds.go(lambda: None)
    assert rounds.exit_code() == 4 and rounds.lines[-1] == "0 of 2 hosts joined"
