"""Programs that are started, observed from outside, and ended: no process of theirs stays.

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.exec import CLOSED, MOMENTS, OPEN
from sqlstress.user_work.source import Plain

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


# What commands write on standard error goes into one pipe for all commands of a worker, read by a thread. So
# nobody waits for what is read, and a command that writes without end fills neither a disk nor the memory.


_PIECE = 1 << 16
KEPT = 2048
"""Bytes of the beginning, and of the end, of what a command writes."""
_HEARD_S = 5.0
"""How long it may take until all is read that was written."""


class Ear:
    """Hears the commands of one worker: behind each, a mark is written into the pipe."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        """`heard` is called on another thread with what each command wrote, "" where it is nothing."""
        self._heard = heard
        self._mark = os.urandom(16)
        self._ended = self._heard_of = 0
        self._ours, self.theirs = os.pipe()
        self._unread, self._begin, self._end = b"", b"", b""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def ended(self) -> None:
        """Say that a command has ended."""
        self._ended += 1
        os.write(self.theirs, self._mark)

    def caught_up(self) -> None:
        """Wait until what has ended is heard, but not for ever: a process left behind may still write."""
        until = time.monotonic() + _HEARD_S
        while self._heard_of < self._ended and time.monotonic() < until:
            time.sleep(0.05)

    def close(self) -> None:
        """Wait until all of it is heard: a mark behind that of the last command says so."""
        os.write(self.theirs, self._mark)
        self._thread.join(_HEARD_S)
        os.close(self.theirs)
        if not self._thread.is_alive():
            os.close(self._ours)

    def _listen(self) -> None:
        with suppress(OSError):  # the worker has ended
            while piece := os.read(self._ours, _PIECE):
                *texts, self._unread = (self._unread + piece).split(self._mark)
                for text in texts:
                    if self._heard_of == self._ended:
                        return
                    self._keep(text)
                    self._heard((self._begin + self._end).decode(errors="replace"))
                    self._heard_of += 1
                    self._begin = self._end = b""
                # A mark may have come in part.
                sure = max(0, len(self._unread) - len(self._mark) + 1)
                self._keep(self._unread[:sure])
                self._unread = self._unread[sure:]

    def _keep(self, text: bytes) -> None:
        room = KEPT - len(self._begin)
        self._begin += text[:room]
        self._end = (self._end + text[room:])[-KEPT:]


# How much of its time a command has the database open (the rest is starting and ending), and whether it has
# the original of a copy open.
#
# Looked at now and then, where Linux lists the files of a process: nothing is asked of the command, and the
# database is not opened. Other systems do not tell.


EVERY_S = 0.02
"""A look takes about 0.1 ms: half a percent of a processor."""


WORKED, STRAYED, REACHED = range(3)
"""Places in the shared flags of a trial: an operation has worked; a command had the original of the copy
open; a command had the database of the trial open."""


class Opened:
    """Looks at the commands of one worker while they run."""

    def __init__(self, database: str, original: str, pid: Callable[[], int | None], flags: Any) -> None:
        """`pid` returns the command that runs now; `original` is a path, or empty if there is no copy."""
        self._database, self._pid, self._flags = os.path.realpath(database), pid, flags
        self._original = Path(original) if original else None
        self._open = self._closed = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        if sys.platform == "linux" and Path(database).is_file():  # no server's address
            self._thread.start()

    def sightings(self) -> list[Plain]:
        """End; return at how many moments a command had the database open, and at how many it had not."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()
        found = ((OPEN, self._open), (CLOSED, self._closed))
        return [(MOMENTS, what, count, "", {}) for what, count in found if count]

    def _look_on(self) -> None:
        while not self._ends.wait(EVERY_S):
            pid = self._pid()
            if pid is None:
                continue
            processes = family(pid)
            has_it = any(has_open(one, self._database) for one in processes)
            if self._original and any(has_file_open(one, self._original) for one in processes):
                self._flags[STRAYED] = 1
            if has_it:
                self._flags[REACHED] = 1
            if pid == self._pid():  # else the command has ended meanwhile
                self._open += has_it
                self._closed += not has_it


def family(pid: int) -> list[int]:
    """Return a process and those that it has started, and they."""
    found = [pid]
    for one in found:  # which grows
        with suppress(OSError):
            children = Path(f"/proc/{one}/task/{one}/children").read_text(encoding="ascii")
            found += map(int, children.split())
    return found


def has_open(pid: int, database: str) -> bool:
    """Return whether a process has a database open."""
    with suppress(OSError):  # it has ended
        return any(str(one.readlink()) == database for one in Path(f"/proc/{pid}/fd").iterdir())
    return False


def has_file_open(pid: int, file: Path) -> bool:
    """Return whether a process has a file open, by any name of the file."""
    with suppress(OSError):  # the process has ended, or the file is missing
        wanted = file.stat()
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found = link.stat()
                if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                    return True
    return False
