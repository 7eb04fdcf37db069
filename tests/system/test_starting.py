"""Starting of processes: the same contract for forked and spawned processes."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import pytest

from sqlstress import measure
from sqlstress.system.processes import SPAWNING, ChildCaller, Died, Starter, process_starter
from sqlstress.system.sharing import shared_array
from tests.conftest import own_processes
from tests.engine.processes import ROOT, environment, gone
from tests.pulses import nothing
from tests.system import begun

PATIENCE_S = 60.0
AHEAD = 16
"""Number of processes that are requested before the first must exist."""
forked = pytest.mark.skipif(sys.platform == "win32", reason="nothing is forked there")


@pytest.fixture(params=["spawned", pytest.param("forked", marks=forked)])
def starter(request: pytest.FixtureRequest) -> Iterator[Starter]:
    if request.param == "spawned":
        yield SPAWNING
    else:
        with process_starter(["tests.system.begun"]) as server:
            yield server


@contextmanager
def started_process(starter: Starter) -> Iterator[tuple[BaseProcess, dict[str, Any]]]:
    """Yield a process and the state that it sends; end it afterwards."""
    ours, theirs = Pipe()
    process = starter.start(begun.tell, (theirs,))
    theirs.close()
    with ours:
        try:
            assert ours.poll(PATIENCE_S)
            yield process, ours.recv()
            ours.send("end")
        finally:
            process.join(PATIENCE_S)
    assert process.exitcode == 0


def server_of(pid: int) -> psutil.Process:
    """Return the process that forked the process `pid`."""
    parent = psutil.Process(pid).parent()
    assert parent
    return parent


def test_process_has_the_current_folder_paths_and_arguments(
    starter: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["sqlstress", "kv"])
    with started_process(starter) as (process, state):
        assert state["pid"] == process.pid
        assert state["cwd"] == str(tmp_path)
        assert state["path"] == sys.path
        assert state["argv"] == ["sqlstress", "kv"]


def test_process_has_no_open_files_and_its_own_random_state(starter: Starter, tmp_path: Path) -> None:
    with (
        (tmp_path / "ours").open("w") as stream,
        started_process(starter),
        started_process(starter) as (_, state),
    ):
        assert stream.name not in state["files"]
        # The second thread waits for the end of the parent.
        assert state["threads"] == 2
        assert state["main"] is None
    with started_process(starter) as (_, first), started_process(starter) as (_, second):
        assert first["random"] != second["random"]


def test_process_answers_many_calls_and_is_replaced_after_its_death(starter: Starter) -> None:
    with ChildCaller("the helper") as helper:
        first = helper.call(nothing, os.getpid)
        assert first != os.getpid() and helper.call(nothing, os.getpid) == first
        assert (own_processes() == [psutil.Process(first)]) == (starter is SPAWNING)
        with pytest.raises(ZeroDivisionError):
            helper.call(nothing, divmod, 1, 0)
        assert helper.call(nothing, os.getpid) == first
        with pytest.raises(Died, match=r"^the helper ended with exit code 7 and no result\."):
            helper.call(nothing, os._exit, 7)
        second = helper.call(nothing, os.getpid)
        assert second != first
        assert helper.call(nothing, gc.isenabled)
    assert not psutil.pid_exists(second)


def test_many_processes_start_and_share_memory(starter: Starter) -> None:
    count = 8 if starter is SPAWNING else AHEAD + 4
    numbers = shared_array("q", count)
    processes = [starter.start(begun.add, (numbers, place)) for place in range(count)]
    assert len({process.pid for process in processes}) == count
    for process in processes:
        process.join(PATIENCE_S)
    assert list(numbers) == list(range(count))


@pytest.mark.parametrize(("how", "exitcode"), [("0", 0), ("3", 3), ("error", 1), ("SIGKILL", -9)])
def test_exit_code_of_a_process_is_known(
    starter: Starter, capfd: pytest.CaptureFixture[str], how: str, exitcode: int
) -> None:
    if sys.platform == "win32" and how == "SIGKILL":
        pytest.skip("there is no such signal there")
    process = starter.start(begun.end, (how,))
    process.join(PATIENCE_S)
    assert process.exitcode == exitcode
    assert not process.is_alive()


@pytest.mark.parametrize("act", [BaseProcess.terminate, BaseProcess.kill])
def test_process_ignores_interrupts_and_can_be_ended(starter: Starter, act: Any) -> None:
    ours, theirs = Pipe()
    process = starter.start(begun.linger, (theirs,))
    with ours, theirs:
        assert ours.recv() == "alive"
        process.join(0.01)
        assert process.is_alive()
        act(process)
        process.join(PATIENCE_S)
    assert process.exitcode == (-signal.SIGTERM if act is BaseProcess.terminate else -9) or os.name == "nt"
    act(process)  # its id may belong to another process by now


@pytest.mark.parametrize("method", ["spawned", pytest.param("forked", marks=forked)])
def test_killed_parent_leaves_no_process(method: str) -> None:
    spawning = "forkserver.is_possible = lambda: False" if method == "spawned" else ""
    script = f"""
from sqlstress import measure
from sqlstress.system import forkserver
from tests.system.begun import hold
{spawning}
hold(["tests.system.begun"])
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        children = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        parent.kill()
        began = time.monotonic()
        assert gone(children)
    # multiprocessing's resource tracker is among them.
    assert len(children) == (4 if method == "forked" else 3) or sys.platform == "win32"
    assert time.monotonic() - began < PATIENCE_S


@forked
def test_fork_server_leaves_no_process_behind() -> None:
    with process_starter(["tests.system.begun"]) as server, started_process(server) as (process, _):
        assert process.pid and server_of(process.pid) in own_processes()
    assert own_processes() == []


@forked
def test_fork_server_has_imports_one_thread_and_no_open_file() -> None:
    modules = ["sqlstress.targets.sqlite.drivers.sqlite3_driver", "not_there_at_all", "tests.system.begun"]
    with process_starter(modules) as server, started_process(server) as (process, state):
        assert {*modules, "sqlite3"} - state["modules"] == {"not_there_at_all"}
        assert process.pid
        forks = server_of(process.pid)
        assert forks.num_threads() == 1
        assert [file.path for file in forks.open_files() if "tests" not in file.path] == []


@forked
def test_each_measurement_has_its_own_environment_and_streams(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for value in ("first", "second"):
        monkeypatch.setenv("SQLSTRESS_TEST_VALUE", value)
        with process_starter(["tests.system.begun"]) as server:
            with started_process(server) as (_, state):
                assert state["value"] == value
            server.start(begun.complain, (value,)).join(PATIENCE_S)
    assert capfd.readouterr().err == "firstsecond"


@forked
def test_fork_server_killed_a_moment_ago_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's channel is closed, while the system still reports the server as running."""
    with process_starter(["tests.system.begun"]) as starter:
        server: Any = starter
        server._process.kill()
        server._process.join()
        monkeypatch.setattr(server._process, "is_alive", lambda: True)
        with started_process(starter) as (process, state):
            assert state["pid"] == process.pid
    assert own_processes() == []


@forked
def test_fork_server_is_not_that_of_multiprocessing() -> None:
    from multiprocessing import forkserver as pythons

    theirs = vars(pythons)["_forkserver"]
    with process_starter(["tests.system.begun"]) as server, started_process(server):
        assert vars(theirs)["_forkserver_pid"] is None


@forked
def test_killed_fork_server_ends_its_processes_and_is_replaced() -> None:
    with process_starter(["tests.system.begun"]) as server:
        ours, theirs = Pipe()
        process = server.start(begun.linger, (theirs,))
        theirs.close()
        with ours:
            assert ours.recv() == "alive"
            assert process.pid
            child = psutil.Process(process.pid)
            server_of(process.pid).kill()
            process.join(PATIENCE_S)
            assert process.exitcode == 255
            assert ours.poll(PATIENCE_S)
            with pytest.raises(EOFError):  # the child has ended
                ours.recv()
        assert gone([child])
        with started_process(server) as (_, state):
            assert state["pid"] != child.pid
    assert own_processes() == []


@forked
@pytest.mark.parametrize(
    ("home", "name"),
    [
        ("multiprocessing.spawn", "_main"),
        ("multiprocessing.spawn", "get_preparation_data"),
        ("multiprocessing.forkserver", "write_signed"),
        ("multiprocessing.forkserver", "_forkserver"),
        ("multiprocessing.reduction", "recvfds"),
        ("multiprocessing.popen_forkserver", "Popen.duplicate_for_child"),
    ],
)
def test_missing_internals_of_multiprocessing_cause_spawning(
    home: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(f"{home}.{name}")
    with process_starter(["tests.system.begun"]) as starter:
        assert starter is SPAWNING


@forked
def test_changed_internals_of_multiprocessing_cause_spawning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spawned = []

    def start(main: Any, args: Any) -> BaseProcess:
        spawned.append(main)
        return Starter().start(main, args)

    monkeypatch.setattr("multiprocessing.forkserver.read_signed", lambda fd, size: 0)
    monkeypatch.setattr(SPAWNING, "start", start)
    report = measure(concurrency=2, ops=20, repeat=1, directory=tmp_path)
    assert report.ok and len(spawned) >= 2
    assert capfd.readouterr() == ("", "") and own_processes() == []


@forked
def test_process_that_the_system_denies_is_an_error() -> None:
    with process_starter(["tests.system.refusing"]) as server:
        process = server.start(begun.add, (shared_array("q", 1), 0))
        with pytest.raises(BlockingIOError):
            process.pid  # noqa: B018
        process.join(PATIENCE_S)
        assert not process.is_alive()
        process.kill()
