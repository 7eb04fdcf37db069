"""Starts commands one after the other, waits for each, and ends what takes too long or is left behind.

A command gets a process group of its own: a signal to that reaches what it started, and Ctrl-C does not reach
the command. Windows has no such groups: there only the command itself is ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from sqlstress.errors import EnvironmentFailure

_TICK_S = 0.05
"""How much too late a command may be ended."""

if sys.platform == "win32":
    _APART = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
else:
    _APART = {"process_group": 0}


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    """Its exit code; below 0 the signal that ended it."""
    too_late: bool
    """Whether it was ended because it took too long."""
    left_behind: bool
    """Whether processes that it had started were left, which were ended then."""


class Starter:
    """Starts the commands of one worker; no two at once."""

    def __init__(
        self, environment: Mapping[str, str], stdin: str | None, error: int, timeout_s: float
    ) -> None:
        """`error` is the descriptor of what commands get as their standard error."""
        self._environment, self._stdin, self._timeout_s = dict(environment), stdin, timeout_s
        self._error, self._nothing = error, os.open(os.devnull, os.O_RDWR)
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._running: subprocess.Popen[bytes] | None = None
        self._until, self._too_late = 0.0, False
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def run(self, words: Sequence[str]) -> Ended:
        """Run a command to its end. Raises EnvironmentFailure when it can't be started."""
        try:
            # Nobody can be told to end a process that is being started.
            with self._lock:
                self._running = process = self._started(words)
                self._until, self._too_late = time.monotonic() + self._timeout_s, False
        except OSError as error:
            raise EnvironmentFailure(f"cannot start {words[0]!r:.200}: {error.strerror or error}.") from error
        code = process.wait()
        with self._lock:
            self._running, too_late = None, self._too_late
        anybody_left = _end_group(process.pid)
        # Of what was ended in the midst, some may take a moment longer: that was not left behind.
        return Ended(code, too_late, anybody_left and not too_late)

    def end(self) -> None:
        """End what runs, and let nothing be started any more: for the last moment of the process."""
        self._lock.acquire()  # for good
        if self._running:
            _end(self._running)

    def close(self) -> None:
        """Let nothing of ours stay."""
        self._closed.set()
        self._watching.join()
        os.close(self._nothing)

    def _started(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        if self._stdin is None:
            return self._popen(words, self._nothing)
        with Path(self._stdin).open("rb") as file:
            return self._popen(words, file.fileno())

    def _popen(self, words: Sequence[str], stdin: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            stdin=stdin,
            stdout=self._nothing,
            stderr=self._error,
            env=self._environment,
            **cast("dict[str, Any]", _APART),
        )

    def _watch(self) -> None:
        while not self._closed.wait(_TICK_S):
            with self._lock:
                if self._running and not self._too_late and time.monotonic() > self._until:
                    self._too_late = True
                    _end(self._running)


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
