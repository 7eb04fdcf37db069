"""Start and end of the user's programs, with a time limit.

Each program has a process group of its own. When the program ends, the other processes of its group are
killed, so that none is left running. On Windows, only the program itself can be killed. Ctrl-C does not reach
the group: sqlstress itself ends the program.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from sqlstress.errors import EnvironmentFailure

_TICK_S = 0.05
"""Interval between checks of the time limit, in seconds."""

if sys.platform == "win32":
    _NEW_GROUP = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
else:
    _NEW_GROUP = {"process_group": 0}


class CommandExit(NamedTuple):
    """Exit code of a program, and the reason if sqlstress killed it."""

    code: int
    """Exit code; negative for a signal, such as -9 for SIGKILL."""
    too_late: bool
    """Whether the program was killed because it exceeded its time limit."""
    left_behind: bool
    """Whether descendants outlived the program and were killed."""
    stayed: bool = False
    """Whether the program was killed because it ran on after the end of its input or output."""


class WatchedProgram:
    """Base class of runners of programs, one at a time, with a time limit."""

    def __init__(self, environment: Mapping[str, str], error: int, timeout_s: float) -> None:
        """`error` is a descriptor for standard error. `timeout_s` is the time limit of each program."""
        self._environment, self._error, self._timeout_s = dict(environment), error, timeout_s
        self._null = os.open(os.devnull, os.O_RDWR)
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._running: subprocess.Popen[bytes] | None = None
        self._until, self._too_late = math.inf, False
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    @property
    def pid(self) -> int | None:
        """Process ID of the running program; None if no program runs."""
        running = self._running
        return running.pid if running else None

    def end(self) -> None:
        """Kill the running program, and let no further program start. Call it before this process exits."""
        self._lock.acquire()  # The lock is never released, so no program can start.
        if self._running:
            _kill(self._running)

    def close(self) -> None:
        self._closed.set()
        self._watcher.join()
        os.close(self._null)

    def _start(self, words: Sequence[str], stdin: IO[bytes] | int, stdout: int) -> subprocess.Popen[bytes]:
        """Start the program `words`. Raises EnvironmentFailure if it cannot start."""
        try:
            # The lock is needed because `end` cannot kill a process that is just being started.
            with self._lock:
                self._running = process = subprocess.Popen(
                    words,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=self._error,
                    env=self._environment,
                    **cast("dict[str, Any]", _NEW_GROUP),
                )
                self._until, self._too_late = time.monotonic() + self._timeout_s, False
        except OSError as error:
            raise EnvironmentFailure(f"cannot start {words[0]!r:.200}: {error.strerror or error}.") from error
        return process

    def _wait(self, process: subprocess.Popen[bytes]) -> CommandExit:
        code = process.wait()
        with self._lock:
            self._running, too_late = None, self._too_late
        group_remained = _end_group(process.pid)
        # After a kill at the time limit, processes of the group may take a moment to end. So these processes
        # do not count as left behind.
        return CommandExit(code, too_late, group_remained and not too_late)

    def _watch(self) -> None:
        while not self._closed.wait(_TICK_S):
            with self._lock:
                if self._running and not self._too_late and time.monotonic() > self._until:
                    self._too_late = True
                    _kill(self._running)


class CommandStarter(WatchedProgram):
    """Runner of a worker's commands, each in a new process, one after the other."""

    def __init__(
        self, environment: Mapping[str, str], stdin: str | None, error: int, timeout_s: float
    ) -> None:
        super().__init__(environment, error, timeout_s)
        self._stdin = stdin

    def run(self, words: Sequence[str]) -> CommandExit:
        """Run a command to its end. Raises EnvironmentFailure if it cannot start."""
        with Path(self._stdin).open("rb") if self._stdin else nullcontext(self._null) as stdin:
            process = self._start(words, stdin, self._null)
        return self._wait(process)


LONGEST_ANSWER = 4096
"""Maximum length of a program's answer, in bytes."""
PATIENCE_S = 2.0
"""Time limit for a program to exit after its input or output has ended, in seconds."""


class Dialogue(WatchedProgram):
    """Runner of the program of --lines, which answers each line of input with a line.

    If the program has ended, the next line restarts it.
    """

    def __init__(
        self, environment: Mapping[str, str], words: Sequence[str], error: int, timeout_s: float
    ) -> None:
        super().__init__(environment, error, timeout_s)
        self._words = words

    def ask(self, line: bytes) -> str | CommandExit:
        """Write a line to the program; return the answer, or the exit of a program that did not answer.

        Raises EnvironmentFailure if the program cannot start.
        """
        process = self._running or self._start(self._words, subprocess.PIPE, subprocess.PIPE)
        assert process.stdin and process.stdout
        with self._lock:
            self._until = time.monotonic() + self._timeout_s
        try:
            os.write(process.stdin.fileno(), line)
            answer = _read_line(process.stdout.fileno())
        except OSError:  # The program has closed its input.
            answer = b""
        with self._lock:
            self._until = math.inf
        # Programs on Windows end a line with two characters.
        text = answer.removesuffix(b"\n").removesuffix(b"\r").decode(errors="replace")
        return text if answer else self.leave()

    def leave(self) -> CommandExit:
        """Close the program's input, wait for the end of the program, and return the program's exit.

        A program that runs on for PATIENCE_S seconds is killed.
        """
        process = self._running
        assert process and process.stdin and process.stdout
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            _kill(process)
            ended = self._wait(process)._replace(stayed=True)
        else:
            ended = self._wait(process)
        process.stdout.close()
        return ended


def _read_line(descriptor: int) -> bytes:
    """Return the next line, and further output if it was read at the same time.

    If the output ends before a line break, return b"". After LONGEST_ANSWER bytes without a line break,
    return the bytes read so far.
    """
    received = b""
    while b"\n" not in received and len(received) < LONGEST_ANSWER:
        piece = os.read(descriptor, LONGEST_ANSWER)
        if not piece:
            return b""
        received += piece
    return received


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        with suppress(OSError):
            process.kill()
    else:
        _end_group(process.pid)


def _end_group(pid: int) -> bool:
    """Kill the remaining processes of a program's process group; return whether there were any."""
    if sys.platform == "win32":
        return False
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:  # The group is empty; macOS reports EPERM for processes that have ended already.
        return False
    return True


# All commands of a worker write their standard error into one pipe, which a thread of the worker reads. So no
# command waits for a reader, and a command that writes without end fills neither a disk nor the memory.


_PIECE = 1 << 16
KEPT = 2048
"""Number of bytes that are kept of the beginning, and also of the end, of a command's output."""
_READ_S = 5.0
"""Time limit for reading the rest of the output, in seconds."""


class OutputReader:
    """Reader of the standard error of a worker's commands, which a thread reads from one pipe.

    The worker writes a mark, random bytes, into the pipe between the outputs of two commands.
    """

    def __init__(self, handle: Callable[[str], None]) -> None:
        """`handle` is called on the reading thread with the (perhaps empty) output of each command."""
        self._handle = handle
        self._mark = os.urandom(16)
        self._ended = self._read_texts = 0
        self._ours, self.theirs = os.pipe()
        self._unread, self._begin, self._end = b"", b"", b""
        self._thread = threading.Thread(target=self._read_pipe, daemon=True)
        self._thread.start()

    def mark_end(self) -> None:
        """Mark the end of a command's output. Call this when the command has ended."""
        self._ended += 1
        os.write(self.theirs, self._mark)

    def await_texts(self) -> None:
        """Wait until the output of all ended commands is read, but at most _READ_S.

        Without this limit, the wait may not end: a process that outlives its command may write for ever.
        """
        until = time.monotonic() + _READ_S
        while self._read_texts < self._ended and time.monotonic() < until:
            time.sleep(0.05)

    def close(self) -> None:
        """Read the rest of the output, for at most _READ_S, and close the pipe."""
        os.write(self.theirs, self._mark)
        self._thread.join(_READ_S)
        os.close(self.theirs)
        if not self._thread.is_alive():
            os.close(self._ours)

    def _read_pipe(self) -> None:
        with suppress(OSError):  # The worker has ended.
            while piece := os.read(self._ours, _PIECE):
                *texts, self._unread = (self._unread + piece).split(self._mark)
                for text in texts:
                    if self._read_texts == self._ended:
                        return
                    self._keep(text)
                    self._handle((self._begin + self._end).decode(errors="replace"))
                    self._read_texts += 1
                    self._begin = self._end = b""
                # The last bytes may be the beginning of a mark, so they stay unread.
                sure = max(0, len(self._unread) - len(self._mark) + 1)
                self._keep(self._unread[:sure])
                self._unread = self._unread[sure:]

    def _keep(self, text: bytes) -> None:
        room = KEPT - len(self._begin)
        self._begin += text[:room]
        self._end = (self._end + text[room:])[-KEPT:]
