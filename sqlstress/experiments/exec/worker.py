"""A worker's half of the experiment with commands: each operation is a process, from its start to its end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.exec import ENDED, EXIT_CODE, LEFT_BEHIND, STDERR, TOO_LATE
from sqlstress.experiments.exec.template import Given, filled, parsed
from sqlstress.system.child import when_orphaned
from sqlstress.user_work.loading import environment
from sqlstress.user_work.source import Kinds, UserSource

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Chunk, Findings, Stamps
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Directions

TRIAL = "SQLSTRESS_TRIAL"
"""The variable in the environment of a command that has the trial to which it belongs."""

# Commands are started one after the other. Each gets a process group of its own: a signal to that reaches
# what it started, and Ctrl-C does not reach the command. Windows has no such groups: there only the command
# itself is ended.


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
    """Starts the commands of one worker, waits for each, and ends what takes too long or is left behind."""

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
        self._closed.set()
        self._watching.join()
        os.close(self._nothing)

    def _started(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        with Path(self._stdin).open("rb") if self._stdin else nullcontext(self._nothing) as stdin:
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


# What commands write on standard error goes into one pipe for all commands of a worker, read by a thread. So
# nobody waits for what is read, and a command that writes without end fills neither a disk nor the memory.


_PIECE = 1 << 16
KEPT = 2048
"""Bytes of the beginning, and of the end, of what a command writes."""
_PATIENCE_S = 5.0


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
        until = time.monotonic() + _PATIENCE_S
        while self._heard_of < self._ended and time.monotonic() < until:
            time.sleep(_TICK_S)

    def close(self) -> None:
        """Wait until all of it is heard: a mark behind that of the last command says so."""
        os.write(self.theirs, self._mark)
        self._thread.join(_PATIENCE_S)
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


# What is alike in messages: numbers and paths say nothing of the kind.


OTHERS = "other kinds"
LONGEST = 200
"""Characters of a message that are kept."""
_TRACEBACK = "Traceback (most recent call last)"
_PATH = re.compile(r"(?<![\w<])(?:[A-Za-z]:|\.{1,2}|~)?[\\/][\w.\\/~+@%-]*\w")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![A-Za-z_])\d+(?:[.,:]\d+)*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def line_of(text: str) -> str:
    """Return the line that says what was wrong: the first one, of a traceback the exception; "" if none."""
    lines = [line for line in text.splitlines() if line.strip()]
    tracebacks = [place for place, line in enumerate(lines) if _TRACEBACK in line]
    if tracebacks:
        # It comes behind the frames of the last one, which are indented.
        behind = lines[tracebacks[-1] + 1 :]
        lines = [line for line in behind if not line[0].isspace()] or lines[-1:]
    return _CONTROL.sub(" ", lines[0]).strip()[:LONGEST] if lines else ""


def kind_of(line: str) -> str:
    """Return what such lines have in common."""
    return _NUMBER.sub("N", _PATH.sub("PATH", line))


# The source.


FAILED_ALIKE = 10
"""When so many commands of a worker have ended in the same way from the first one on, none will ever work."""
_BUSY = re.compile("locked|busy", re.IGNORECASE)


class Failed(Exception):
    """A command that did not exit with 0, or took too long."""


class ExecSource(UserSource):
    """Runs commands, one after the other, and counts how they ended and what they said."""

    _starter: Starter | None = None
    _ear: Ear

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        super().__init__(case, worker, salt, {"command": 1})
        self._words = parsed(case.spec.command or _does_nothing())
        self._number = worker - case.concurrency
        self._address = ""
        self._codes, self._messages = Counter[int](), Kinds(OTHERS)
        self._too_late = self._left_behind = 0
        # The first is not 0 as soon as a command of any worker has worked.
        *_, self._worked, trial = shared
        # Where nothing is stored no command is run.
        self.calls = (self._run if place.stores else lambda _: None,)
        if place.stores:
            self._begin(place.directions(), trial)

    def _begin(self, directions: Directions, trial: str) -> None:
        if sys.platform != "win32":
            # Commands begin with SIGINT as in a shell: what a worker does with it would be handed on to them.
            signal.signal(signal.SIGINT, lambda *_: None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        self._address = directions.address
        variables = {**environment(directions, os.environ), TRIAL: trial}
        self._ear = Ear(lambda text: self._keep(line_of(directions.hidden(text))))
        spec = self.case.spec
        self._starter = Starter(variables, spec.stdin, self._ear.theirs, spec.timeout_s)
        when_orphaned(self._starter.end)

    def _keep(self, line: str) -> None:
        if line:
            self._messages.add(kind_of(line), line)

    def prepared(self, picks: Sequence[int]) -> list[list[str]]:
        commands = []
        for _ in picks:
            # Each worker has numbers of its own, so that none need be asked for.
            self._number += self.case.concurrency
            given = Given(self._number, self.worker, self._address, self.random)
            commands.append(filled(self._words, given))
        return commands

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Take the numbers back of commands that were not run."""
        self._number -= (len(chunk.kinds) - done) * self.case.concurrency

    def _run(self, words: list[str]) -> None:
        """Run a command. Raises Failed, and EnvironmentFailure when it is clear that no command works."""
        assert self._starter
        ended = self._starter.run(words)
        self._ear.ended()
        self._left_behind += ended.left_behind
        if ended.too_late:
            self._too_late += 1
        else:
            self._codes[ended.code] += 1
            if ended.code == 0:
                self._worked[0] = 1
                return
        if self._codes.total() + self._too_late == FAILED_ALIKE:
            self._see_whether_any_works()
        raise Failed

    def _see_whether_any_works(self) -> None:
        """Raise EnvironmentFailure if all commands by now failed alike, and not for a lock that was taken."""
        if self.case.max_failed >= 1 or self._worked[0] or self._too_late or len(self._codes) > 1:
            return
        (code,) = self._codes
        self._ear.caught_up()
        examples = list(self._messages.examples.values())
        if len(examples) > 1 or any(map(_BUSY.search, examples)):
            return
        name = named(code)
        ending = f"with exit code {code}" if name == str(code) else f"by {name}"
        words = f": {examples[0].removesuffix('.')}" if examples else ""
        raise EnvironmentFailure(
            f"the first {FAILED_ALIKE} commands failed in the same way, {ending}{words}. Fix the command, "
            "or use --max-failed 100% if it is meant to fail"
        )

    def was_busy(self, error: Exception) -> bool:
        return isinstance(error, Failed)

    def findings(self) -> Findings:
        if self._starter:
            self._starter.close()
            self._ear.close()
        ends = ((TOO_LATE, self._too_late), (LEFT_BEHIND, self._left_behind))
        examples = self._messages.examples
        self.seen.sightings = [
            *((EXIT_CODE, named(code), count, "", {}) for code, count in sorted(self._codes.items())),
            *((ENDED, why, count, "", {}) for why, count in ends if count),
            *((STDERR, kind, count, examples[kind], {}) for kind, count in self._messages.counts.items()),
        ]
        return super().findings()


def _does_nothing() -> tuple[str, ...]:
    """Return a command that does nothing: what it takes is what starting a process costs."""
    if sys.platform == "win32":
        return os.environ.get("COMSPEC", "cmd.exe"), "/d", "/c", "exit 0"
    return (shutil.which("true") or "/bin/true",)


def named(code: int) -> str:
    """Return an exit code; where a signal ended the command, its name."""
    if code >= 0 or sys.platform == "win32":
        return str(code)
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
