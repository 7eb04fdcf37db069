"""Commands are run to their end, ended when they take too long, and nothing that they started stays."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.exec.worker import Ended, Starter

PYTHON = [sys.executable, "-S", "-E", "-c"]
posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups")


@contextmanager
def starter(timeout_s: float = 30.0, stdin: str | None = None, error: int = 2) -> Iterator[Starter]:
    one = Starter(os.environ, stdin, error, timeout_s)
    try:
        yield one
    finally:
        one.close()


@pytest.mark.parametrize("code", [0, 1, 77])
def test_a_command_ends_with_its_exit_code(code: int) -> None:
    with starter() as one:
        assert one.run([*PYTHON, f"raise SystemExit({code})"]) == Ended(code, False, False)


def test_a_command_that_is_not_there_is_told_in_a_line() -> None:
    with starter() as one, pytest.raises(EnvironmentFailure, match=r"^cannot start 'nowhere/tool': "):
        one.run(["nowhere/tool"])


def test_standard_input_is_empty_unless_a_file_is_given_which_each_command_reads_anew(tmp_path: Path) -> None:
    code = "import sys; raise SystemExit(len(sys.stdin.read()))"
    with starter() as one:
        assert one.run([*PYTHON, code]).code == 0
    (tmp_path / "input").write_bytes(b"seven..")
    with starter(stdin=str(tmp_path / "input")) as one:
        assert [one.run([*PYTHON, code]).code for _ in range(2)] == [7, 7]


def test_a_command_that_never_ends_is_ended() -> None:
    with starter(timeout_s=0.2) as one:
        ended = one.run([*PYTHON, "import time; time.sleep(1000)"])
    assert ended.too_late and not ended.left_behind
    assert ended.code != 0


@posix
def test_what_a_command_started_is_ended_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    with starter(timeout_s=0.5) as one:
        assert one.run(["sh", "-c", f"sleep 1000 & echo $! > {child}; wait"]).too_late
    assert has_ended(int(child.read_text()))


@posix
def test_what_a_command_leaves_behind_is_ended_and_told(tmp_path: Path) -> None:
    child = tmp_path / "child"
    with starter() as one:
        assert one.run(["sh", "-c", f"sleep 1000 & echo $! > {child}"]) == Ended(0, False, True)
    assert has_ended(int(child.read_text()))


@posix
def test_in_the_last_moment_the_command_is_ended_and_none_is_started_any_more(tmp_path: Path) -> None:
    child = tmp_path / "child"
    one = Starter(os.environ, None, 2, 30.0)
    words = ["sh", "-c", f"echo $$ > {child}.new; mv {child}.new {child}; exec sleep 1000"]
    # The thread stays where it would start the next command, as it does until its process has ended.
    threading.Thread(target=lambda: (one.run(words), one.run(words)), daemon=True).start()
    while not child.exists():
        time.sleep(0.01)
    pid = int(child.read_text())
    one.end()
    assert has_ended(pid)
    time.sleep(0.1)
    assert int(child.read_text()) == pid


def has_ended(pid: int) -> bool:
    """Wait until a process has ended; one that nobody has asked how it ended has ended."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False
