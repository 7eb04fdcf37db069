"""Our child processes: calls, ends, descriptions of ends, and messages."""

import errno
import itertools
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe, connection
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import EnvironmentFailure, Interrupted, UsageError
from sqlstress.experiments.exec.work import end_marked
from sqlstress.system.child import MORE, PIECE, send
from sqlstress.system.interrupt import StopSignals
from sqlstress.system.processes import Inbox, blocked_signal, call_in_subprocess, exit_clause, wait_readable
from tests.conftest import own_processes
from tests.pulses import nothing

PATIENCE_S = 60.0


@pytest.mark.parametrize(
    ("exitcode", "expected"),
    [
        (None, "closed its pipe without a result"),
        (1, "ended with exit code 1 and no result"),
        (-11, "was killed by SIGSEGV"),
        (-40, "was killed by signal 40"),
        (3221225477, "ended with exit code 3221225477 and no result"),
    ],
)
def test_death_is_described_by_the_name_of_its_signal(exitcode: int | None, expected: str) -> None:
    assert exit_clause(exitcode) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="signals can't be held back there")
def test_interrupt_is_held_back_and_comes_afterwards() -> None:
    if sys.platform != "win32":
        with StopSignals() as signals:
            with blocked_signal("SIGINT"):
                signal.raise_signal(signal.SIGINT)
                assert signal.SIGINT in signal.sigpending()
                signals.check()
            with pytest.raises(Interrupted):
                signals.check()


@pytest.mark.skipif(sys.platform == "win32", reason="signals can't be held back there")
def test_signals_are_let_through_again_after_an_error() -> None:
    if sys.platform != "win32":
        before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
        with pytest.raises(OSError, match="full"), blocked_signal("SIGINT"):
            raise OSError("full")
        assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before


def add(left: int, right: int, *, times: int = 1) -> tuple[int, int]:
    return os.getpid(), (left + right) * times


def refuse() -> None:
    raise UsageError("not like this")


def die() -> None:
    os._exit(7)


def survive(name: str) -> str:
    signal.raise_signal(signal.Signals[name])
    return "alive"


def dawdle(place: str) -> None:
    Path(place).touch()
    time.sleep(PATIENCE_S)


def answer_by_half() -> bytes:
    """Stop this process after the first piece of the answer has been sent."""
    send, sent = Connection.__dict__["_send"], list[int]()

    def send_once(self: Connection, data: bytes) -> None:
        if sent:
            os.kill(os.getpid(), signal.Signals["SIGSTOP"])
        sent.append(len(data))
        send(self, data)

    setattr(Connection, "_send", send_once)  # noqa: B010 - mypy minds an assignment
    return bytes(1_000_000)


def test_result_error_or_death_of_a_child_call_is_returned() -> None:
    process, result = call_in_subprocess(nothing, add, 1, 2, times=5)
    assert result == 15
    assert process != os.getpid() and not psutil.pid_exists(process)
    with pytest.raises(UsageError, match=r"^not like this$"):
        call_in_subprocess(nothing, refuse)
    with pytest.raises(EnvironmentFailure, match="ended with exit code 7 and no result"):
        call_in_subprocess(nothing, die)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["SIGINT", "SIGBREAK"] if sys.platform == "win32" else ["SIGINT"])
def test_child_ignores_an_interrupt(name: str) -> None:
    assert call_in_subprocess(nothing, survive, name) == "alive"


@pytest.mark.skipif(sys.platform == "win32", reason="processes can't stop themselves there")
def test_interruption_during_an_answer_leaves_no_process() -> None:
    stopped, before = False, own_processes()

    def interrupt() -> None:
        nonlocal stopped
        if stopped:
            raise Interrupted("stopped")
        stopped = any(process.status() == psutil.STATUS_STOPPED for process in own_processes())

    with pytest.raises(Interrupted):
        call_in_subprocess(interrupt, answer_by_half)
    assert own_processes() == before  # An earlier test may have started the fork server.


@pytest.mark.thorough
def test_interruption_during_a_wait_leaves_no_process(tmp_path: Path) -> None:
    started, before = tmp_path / "begun", own_processes()

    def interrupt() -> None:
        if started.exists():
            raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        call_in_subprocess(interrupt, dawdle, str(started))
    assert own_processes() == before  # An earlier test may have started the fork server.


@pytest.fixture
def waits_end_by_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """End every third wait as Windows does in the main thread at Ctrl-C; return the waits that ended so."""
    wait, calls, ended = connection.wait, itertools.count(), list[int]()

    def interrupted(pipes: Sequence[Any], timeout: float | None = None) -> list[Any]:
        if (call := next(calls)) % 3 == 0:
            ended.append(call)
            raise InterruptedError(errno.EINTR, "Interrupted function call")
        return wait(pipes, timeout)

    monkeypatch.setattr(connection, "wait", interrupted)
    return ended


def test_wait_ended_by_ctrl_c_returns_nothing(waits_end_by_ctrl_c: list[int]) -> None:
    ours, theirs = Pipe()
    with ours, theirs:
        theirs.send("here")
        assert [wait_readable([ours], 0.0) for _ in range(2)] == [[], [ours]]
    assert waits_end_by_ctrl_c == [0]


def test_answer_survives_waits_that_ctrl_c_ends(waits_end_by_ctrl_c: list[int]) -> None:
    assert call_in_subprocess(nothing, bytes, 10_000) == bytes(10_000)
    assert waits_end_by_ctrl_c


Ends = tuple[Inbox, Any]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """An inbox, and the pipe's other end."""
    ours, theirs = Pipe()
    yield Inbox(ours), theirs
    ours.close()
    theirs.close()


def send_all(pipe: Any, messages: list[object]) -> None:
    for message in messages:
        send(pipe, [message])


@given(st.lists(st.one_of(st.integers(), st.binary(), st.integers(0, 8 * PIECE).map(bytes)), max_size=5))
def test_messages_of_any_length_come_in_their_order(messages: list[object]) -> None:
    ours, theirs = Pipe()
    with ours, theirs:
        inbox = Inbox(ours)
        sender = Thread(target=send_all, args=(theirs, messages))
        sender.start()  # a pipe of Windows holds 8 KiB, so the inbox must be read at the same time
        received = list[object]()
        while len(received) < len(messages):
            if wait_readable([ours], PATIENCE_S):
                received.extend(inbox.receive() or [])
        sender.join()
        assert received == messages
        assert inbox.receive() is None


def test_half_message_is_not_waited_for_and_its_loss_is_an_error(ends: Ends) -> None:
    inbox, theirs = ends
    theirs.send_bytes(MORE + bytes(PIECE))
    assert inbox.receive() is None
    inbox, theirs = ends
    theirs.send_bytes(MORE + bytes(PIECE))
    theirs.close()
    with pytest.raises((EOFError, ConnectionError)):
        inbox.receive()


SLEEP = "import time; print(flush=True); time.sleep(1000)"


def test_only_marked_processes_are_ended() -> None:
    mark = secrets.token_hex(8)
    processes = [
        subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", SLEEP],
            env={**os.environ, "SQLSTRESS_TRIAL": value},
            start_new_session=True,
            stdout=subprocess.PIPE,
        )
        for value in (mark, mark + "0")
    ]
    marked, other = processes
    try:
        for process in processes:  # the system may show a process before its variables
            assert process.stdout and process.stdout.readline()
        assert end_marked("SQLSTRESS_TRIAL", mark) == 1
        marked.wait(10)
        assert other.poll() is None
        assert end_marked("SQLSTRESS_TRIAL", mark) == 0
    finally:
        for process in processes:
            process.kill()
            process.communicate()
