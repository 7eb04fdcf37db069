"""Programs that are started, waited for and ended: no process of theirs stays.

They are started one after the other. Each gets a process group of its own: a signal to that reaches what it
started, and Ctrl-C does not reach the program. Windows has no such groups: there only the program itself is
ended.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from sqlstress.errors import EnvironmentFailure

_TICK_S = 0.05
"""How much too late a program may be ended."""

if sys.platform == "win32":
    _APART = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
else:
    _APART = {"process_group": 0}


class Ended(NamedTuple):
    """How a program ended."""

    code: int
    """Its exit code; below 0 the signal that ended it."""
    too_late: bool
    """Whether it was ended because it took too long."""
    left_behind: bool
    """Whether processes that it had started were left, which were ended then."""
    stayed: bool = False
    """Whether it was ended because it went on after its input or its output had ended."""


class Watched:
    """One program at a time, which is ended when it takes too long."""

    def __init__(self, environment: Mapping[str, str], error: int, timeout_s: float) -> None:
        """`error` is the descriptor of what programs get as their standard error."""
        self._environment, self._error, self._timeout_s = dict(environment), error, timeout_s
        self._nothing = os.open(os.devnull, os.O_RDWR)
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._running: subprocess.Popen[bytes] | None = None
        self._until, self._too_late = math.inf, False
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    @property
    def pid(self) -> int | None:
        """The program that runs now."""
        running = self._running
        return running.pid if running else None

    def end(self) -> None:
        """End what runs, and let nothing be started any more: for the last moment of the process."""
        self._lock.acquire()  # for good
        if self._running:
            _end(self._running)

    def close(self) -> None:
        self._closed.set()
        self._watching.join()
        os.close(self._nothing)

    def _start(self, words: Sequence[str], stdin: IO[bytes] | int, stdout: int) -> subprocess.Popen[bytes]:
        """Start a program. Raises EnvironmentFailure when that can't be."""
        try:
            # Nobody can be told to end a process that is being started.
            with self._lock:
                self._running = process = subprocess.Popen(
                    words,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=self._error,
                    env=self._environment,
                    **cast("dict[str, Any]", _APART),
                )
                self._until, self._too_late = time.monotonic() + self._timeout_s, False
        except OSError as error:
            raise EnvironmentFailure(f"cannot start {words[0]!r:.200}: {error.strerror or error}.") from error
        return process

    def _wait(self, process: subprocess.Popen[bytes]) -> Ended:
        code = process.wait()
        with self._lock:
            self._running, too_late = None, self._too_late
        anybody_left = _end_group(process.pid)
        # Of what was ended in the midst, some may take a moment longer: that was not left behind.
        return Ended(code, too_late, anybody_left and not too_late)

    def _watch(self) -> None:
        while not self._closed.wait(_TICK_S):
            with self._lock:
                if self._running and not self._too_late and time.monotonic() > self._until:
                    self._too_late = True
                    _end(self._running)


class Starter(Watched):
    """Runs commands to their ends."""

    def __init__(
        self, environment: Mapping[str, str], stdin: str | None, error: int, timeout_s: float
    ) -> None:
        super().__init__(environment, error, timeout_s)
        self._stdin = stdin

    def run(self, words: Sequence[str]) -> Ended:
        """Run a command to its end. Raises EnvironmentFailure when it can't be started."""
        with Path(self._stdin).open("rb") if self._stdin else nullcontext(self._nothing) as stdin:
            process = self._start(words, stdin, self._nothing)
        return self._wait(process)


LONGEST_ANSWER = 4096
"""Bytes."""
PATIENCE_S = 2.0
"""How long a program has to exit when its input or its output has ended."""


class Dialogue(Watched):
    """A program that reads a line, works, and answers with a line; when it has ended it is started again."""

    def __init__(
        self, environment: Mapping[str, str], words: Sequence[str], error: int, timeout_s: float
    ) -> None:
        super().__init__(environment, error, timeout_s)
        self._words = words

    def ask(self, line: bytes) -> str | Ended:
        """Return what the program answers; how it ended, if it does not. Raises EnvironmentFailure."""
        process = self._running or self._start(self._words, subprocess.PIPE, subprocess.PIPE)
        assert process.stdin and process.stdout
        with self._lock:
            self._until = time.monotonic() + self._timeout_s
        try:
            os.write(process.stdin.fileno(), line)
            answer = _answer(process.stdout.fileno())
        except OSError:  # it reads no more
            answer = b""
        with self._lock:
            self._until = math.inf
        # Windows' programs end a line with two characters.
        text = answer.removesuffix(b"\n").removesuffix(b"\r").decode(errors="replace")
        return text if answer else self.leave()

    def leave(self) -> Ended:
        """End the input of the program that runs, and the program too if it stays."""
        process = self._running
        assert process and process.stdin and process.stdout
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            _end(process)
            found = self._wait(process)._replace(stayed=True)
        else:
            found = self._wait(process)
        process.stdout.close()
        return found


def _answer(descriptor: int) -> bytes:
    """Return what is there when a line is; empty: its writer has ended."""
    answer = b""
    while b"\n" not in answer and len(answer) < LONGEST_ANSWER:
        piece = os.read(descriptor, LONGEST_ANSWER)
        if not piece:
            return b""
        answer += piece
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        with suppress(OSError):
            process.kill()
    else:
        _end_group(process.pid)


def _end_group(pid: int) -> bool:
    """End whoever is left of a command's process group; return whether there was anybody."""
    if sys.platform == "win32":
        return False
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:  # there is nobody; macOS says of those who have ended already that it is not allowed
        return False
    return True
