"""A worker's half of the experiment with commands: each operation is a process, from its start to its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.exec.nothing import does_nothing
from sqlstress.experiments.exec.template import Given, filled, parsed
from sqlstress.experiments.exec.topics import ENDED, EXIT_CODE, LEFT_BEHIND, STDERR, TOO_LATE
from sqlstress.system.child import when_orphaned
from sqlstress.user_work.loading import environment
from sqlstress.user_work.source import OwnSource

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Chunk, Findings, Stamps
    from sqlstress.report.case import Case
    from sqlstress.targets.directions import Directions
    from sqlstress.targets.dry.store import DryPlace
    from sqlstress.targets.place import SqlPlace


# Starts commands one after the other, waits for each, and ends what takes too long or is left behind.
#
# A command gets a process group of its own: a signal to that reaches what it started, and Ctrl-C does not
# reach
# the command. Windows has no such groups: there only the command itself is ended.


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


# Hears what commands write on standard error: one pipe for all commands of a worker, read by a thread.
#
# Behind each command a mark is written into the pipe, with its number: what stands before it the command
# wrote.
# So nobody waits for what is read, and a command that writes without end fills neither a disk nor the
# memory.


_CODE = 8
_OVER = 1
_PIECE = 1 << 16
KEPT = 2048
"""Bytes of the beginning, and of the end, of what a command writes."""
_PATIENCE_S = 5.0


class Ear:
    """Hears the commands of one worker."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        """`heard` is called on another thread with what each command wrote, "" where it is nothing."""
        self._heard = heard
        self._mark = os.urandom(16)
        self._ended = self._heard_of = 0
        self._ours, self.theirs = os.pipe()
        self._before, self._begin, self._end = b"", b"", b""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def ended(self) -> None:
        """Say that a command has ended."""
        self._ended += 1
        os.write(self.theirs, self._mark + bytes(_CODE))

    def caught_up(self) -> None:
        """Wait until what has ended is heard, but not for ever: a process left behind may still write."""
        until = time.monotonic() + _PATIENCE_S
        while self._heard_of < self._ended and time.monotonic() < until:
            time.sleep(_TICK_S)

    def close(self) -> None:
        """Wait until all of it is heard."""
        os.write(self.theirs, self._mark + _OVER.to_bytes(_CODE, "little"))
        self._thread.join(_PATIENCE_S)
        os.close(self.theirs)
        if not self._thread.is_alive():
            os.close(self._ours)

    def _listen(self) -> None:
        with suppress(OSError):  # the worker has ended
            while piece := os.read(self._ours, _PIECE):
                self._before += piece
                if self._is_over():
                    return

    def _is_over(self) -> bool:
        """Take in what has come, mark by mark; return whether the last mark was there."""
        length = len(self._mark) + _CODE
        while (place := self._before.find(self._mark)) >= 0:
            if len(self._before) < place + length:
                break
            self._keep(self._before[:place])
            code = int.from_bytes(self._before[place + len(self._mark) : place + length], "little")
            self._before = self._before[place + length :]
            if code == _OVER:
                return True
            self._heard((self._begin + self._end).decode(errors="replace"))
            self._heard_of += 1
            self._begin = self._end = b""
        if place < 0:
            # A mark may have come in part.
            sure = max(0, len(self._before) - len(self._mark) + 1)
            self._keep(self._before[:sure])
            self._before = self._before[sure:]
        return False

    def _keep(self, text: bytes) -> None:
        room = KEPT - len(self._begin)
        self._begin += text[:room]
        self._end = (self._end + text[room:])[-KEPT:]


# What commands write on standard error, by kind: numbers and paths say nothing of the kind.


MOST_KINDS = 20
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
    if not lines:
        return ""
    line = _raised(lines) if _TRACEBACK in text else lines[0]
    return _CONTROL.sub(" ", line).strip()[:LONGEST]


def _raised(lines: Sequence[str]) -> str:
    """Return the exception of the last traceback: what comes behind its frames, which are indented."""
    last = max(place for place, line in enumerate(lines) if _TRACEBACK in line)
    return next((line for line in lines[last + 1 :] if not line[0].isspace()), lines[-1])


def kind_of(line: str) -> str:
    """Return what such lines have in common."""
    return _NUMBER.sub("N", _PATH.sub("PATH", line))


class Messages:
    """Counts messages by kind: of each the first is kept, and so many kinds."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        """`hidden` takes out of a text what may not be shown."""
        self._hidden = hidden
        self.counts: dict[str, int] = {}
        self.examples: dict[str, str] = {}

    def add(self, text: str) -> None:
        """Count what a command wrote; nothing is not counted."""
        line = line_of(self._hidden(text))
        if not line:
            return
        kind = kind_of(line)
        if kind not in self.counts and len(self.counts) >= MOST_KINDS:
            kind = OTHERS
        self.examples.setdefault(kind, line)
        self.counts[kind] = self.counts.get(kind, 0) + 1


DATABASE, TRIAL = "SQLSTRESS_DB", "SQLSTRESS_TRIAL"
"""Variables of the environment of a command: where the database is, and to which trial it belongs."""


FAILED_ALIKE = 10
"""When so many commands of a worker have ended in the same way from the first one on, none will ever work."""
_BUSY = re.compile("locked|busy", re.IGNORECASE)


class Failed(Exception):
    """A command that did not exit with 0, or took too long."""


class ExecSource(OwnSource):
    """Runs commands, one after the other."""

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        super().__init__(case, worker, salt, ("command",), (1,))
        self._words = parsed(case.spec.command or does_nothing())
        self._number = worker - case.concurrency
        self._db, self._commands = "", None
        if place.stores:
            found = place.directions()
            self._db = found.address
            self._commands = Commands(case, found, shared[-2], shared[-1])
        self.calls = (self._commands.run if self._commands else _nothing,)

    def prepared(self, picks: Sequence[int]) -> list[list[str]]:
        return [self._next() for _ in picks]

    def _next(self) -> list[str]:
        # Each worker has numbers of its own, so that none need be asked for.
        self._number += self.case.concurrency
        return filled(self._words, Given(self._number, self.worker, self._db, self.random))

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Take the numbers back of commands that were not run."""
        self._number -= (len(chunk.kinds) - done) * self.case.concurrency

    def was_busy(self, error: Exception) -> bool:
        return isinstance(error, Failed)

    def busy_counts(self) -> tuple[int, int]:
        return 0, 0

    def effective(self) -> dict[str, str]:
        return {}

    def findings(self) -> Findings:
        if self._commands:
            self._commands.close()
            self.seen.sightings = self._commands.sightings()
        return super().findings()

    def close(self) -> None:
        """Everything is closed when the findings are known."""


class Commands:
    """Runs commands with one environment, and counts how they ended and what they said."""

    def __init__(self, case: Case, directions: Directions, worked: Any, trial: str) -> None:
        """`worked` is not 0 as soon as a command of any worker has worked."""
        _let_interrupts_through()
        variables = {**environment(directions, DATABASE, os.environ), TRIAL: trial}
        self._messages, self._codes = Messages(directions.hidden), Counter[int]()
        self._too_late = self._left_behind = 0
        self._worked = worked
        self._may_all_fail = case.max_failed >= 1
        self._ear = Ear(self._messages.add)
        self._starter = Starter(variables, case.spec.stdin, self._ear.theirs, case.spec.timeout_s)
        when_orphaned(self._starter.end)

    def run(self, words: list[str]) -> None:
        """Run a command. Raises Failed, and EnvironmentFailure when it is clear that no command works."""
        ended = self._starter.run(words)
        self._ear.ended()
        self._count(ended)
        if not (ended.code or ended.too_late):
            self._worked[0] = 1
        else:
            if sum(self._codes.values()) + self._too_late == FAILED_ALIKE:
                self._see_whether_any_works()
            raise Failed

    def _see_whether_any_works(self) -> None:
        """Raise EnvironmentFailure if all commands by now failed alike, and not for a lock that was taken."""
        if self._may_all_fail or self._worked[0] or self._too_late or len(self._codes) > 1:
            return
        (code,) = self._codes
        self._ear.caught_up()
        kinds = list(self._messages.examples.items())
        if len(kinds) > 1 or any(_BUSY.search(example) for _, example in kinds):
            return
        words = f": {kinds[0][1].removesuffix('.')}" if kinds else ""
        raise EnvironmentFailure(
            f"the first {FAILED_ALIKE} commands failed alike, {_ending(code)}{words}. Mend the command, or "
            "give --max-failed 100% where it is meant to fail"
        )

    def _count(self, ended: Ended) -> None:
        self._left_behind += ended.left_behind
        if ended.too_late:
            self._too_late += 1
        else:
            self._codes[ended.code] += 1

    def sightings(self) -> list[tuple[str, str, int, str, dict[str, str]]]:
        """Return what is known of all commands, as the fields of Sightings."""
        ends = ((TOO_LATE, self._too_late), (LEFT_BEHIND, self._left_behind))
        return [
            *((EXIT_CODE, named(code), count, "", {}) for code, count in sorted(self._codes.items())),
            *((ENDED, why, count, "", {}) for why, count in ends if count),
            *(
                (STDERR, kind, count, self._messages.examples[kind], {})
                for kind, count in self._messages.counts.items()
            ),
        ]

    def close(self) -> None:
        """Hear the last of it."""
        self._starter.close()
        self._ear.close()


def _ending(code: int) -> str:
    return f"with exit code {code}" if code >= 0 or sys.platform == "win32" else f"by {named(code)}"


def named(code: int) -> str:
    """Return an exit code; where a signal ended the command, its name."""
    if code >= 0 or sys.platform == "win32":
        return str(code)
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _let_interrupts_through() -> None:
    """Let commands begin with SIGINT as in a shell: what a worker does with it would be handed on to them."""
    if sys.platform != "win32":
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _nothing(params: object) -> None:
    """Stand for a command where nothing is stored."""
